#!/usr/bin/env python3
"""Counts what a decision executes with NEON and with AVX2, for machines that have no processor of the one to be timed on: the
instructions of exphil_session_step (without the C library's), one by one, by callgrind and by qemu's record of executed blocks:
all, those in the inner loops of the kernels, and those of each such loop.

A register of AVX2 has 8 lanes, one of NEON 4, so instructions are compared per operation of lanes: instructions times lanes of
a register, divided by the multiply-adds of single lanes. That is how many instructions it takes for each multiply-add of a
register; the bar is that NEON takes at most 1.5 times as many.

Usage: neon.py X86_PROGRAM AARCH64_PROGRAM [--loops] [BLOCKS:HIDDEN:TYPE[:ISA]]...

Needs valgrind, qemu-aarch64-static and both objdumps. --loops lists the loops too.
"""
import bisect
import collections
import os
import re
import subprocess
import sys
import tempfile

BAR = 1.5
STEPS = 2
CASES = ["mamba*2:256:f32", "mamba*2:256:bf16", "mamba*2:256:int8", "mamba*2:256:int8:neondot", "lstm:256:f32", "lstm:256:bf16",
         "lstm:256:int8", "gru:256:f32", "mlp:256:f32", "attention:256:f32"]
LANES = {"x86": 8, "arm": 4}
OBJDUMP = {"x86": "objdump", "arm": "aarch64-linux-gnu-objdump"}
# What multiplies and adds in all lanes of a register, or the last of what does so together, and how much each lane does.
PRODUCTS = {"x86": [(r"vfn?m(add|sub)\d+ps\s.*%ymm", 1), (r"vpmaddwd\s.*%ymm", 4), (r"vpdpbusd\s.*%ymm", 4)],
            "arm": [(r"fml[as]\s+v\d+\.4s", 1), (r"sadalp\s+v\d+\.4s", 4), (r"sdot\s+v\d+\.4s", 4)]}
BRANCH = {"x86": r"j[a-z]+\s+([0-9a-f]+)", "arm": r"(?:b|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+, #\d+,)\s+([0-9a-f]+)\b"}


class Code:
    """The instructions of a program, and the loops in it that hold no other."""

    def __init__(self, kind, program):
        self.kind, self.text, self.starts, self.names, self.loops = kind, {}, [], [], []
        out = subprocess.run([OBJDUMP[kind], "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE, check=True, text=True)
        ends = {}
        for line in out.stdout.splitlines():
            head = re.match(r"([0-9a-f]+) <(.*)>:$", line)
            at = re.match(r" +([0-9a-f]+):\t(.*)$", line)
            if head:
                self.add_loops(ends)
                self.starts.append(int(head.group(1), 16))
                self.names.append(head.group(2))
                ends = {}
            elif at:
                here, text = int(at.group(1), 16), at.group(2)
                self.text[here] = text
                jump = re.match(BRANCH[kind], text)
                begin = int(jump.group(1), 16) if jump else here
                if self.starts[-1] <= begin < here:
                    ends[begin] = max(here, ends.get(begin, here))
        self.add_loops(ends)

    def add_loops(self, ends):
        for begin, end in ends.items():
            if not any(b != begin and begin <= b and e <= end for b, e in ends.items()):
                self.loops.append((begin, end))

    def function(self, at):
        return self.names[bisect.bisect_right(self.starts, at) - 1]

    def operations(self, at):
        """Multiply-adds of single lanes."""
        return next((LANES[self.kind] * each for form, each in PRODUCTS[self.kind] if re.match(form, self.text[at])), 0)


def serve(program, case, folder):
    blocks, hidden, kind = case.split(":")[:3]
    return [program, "bench", "--plain", "--folder", folder, "serve", "decision", blocks, hidden, kind]


ORDERS = "run %d\nquit\n" % (STEPS - 1)


def callgrind(program, case, isa, *options):
    """Address -> how often."""
    counts, own, cost = collections.Counter(), False, False
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no",
                        "--callgrind-out-file=" + out, *options] + serve(program, case, folder), input=ORDERS,
                       env=dict(os.environ, EXPHIL_CPU_ISA=isa), text=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        for line in open(out):
            if line.startswith("ob="):
                own = os.path.basename(line.strip()) == os.path.basename(program)
            at = re.match(r"(0x[0-9a-f]+) \d+ (\d+)$", line)
            if at and own and not cost:
                counts[int(at.group(1), 16)] += int(at.group(2))
            cost = line.startswith("calls=")  # the line after it is what the call took, in and below it
    return counts


def executed_x86(code, program, case, isa):
    """What STEPS steps execute; and functions that take long before the first step and nothing in a step."""
    steps = callgrind(program, case, isa, "--toggle-collect=exphil_session_step")
    used, took = {code.function(at) for at in steps}, collections.Counter()
    for at, count in callgrind(program, case, isa).items():
        took[code.function(at)] += count
    return steps, {name for name, count in took.items() if count > 20000 and name not in used}


def base_of(program):
    """Where qemu puts it: a program of type ET_DYN (3) may lie anywhere."""
    with open(program, "rb") as file:
        return 0x5500000000 if file.read(18)[16] == 3 else 0


def executed_arm(code, program, case, isa, unused):
    """The same from qemu's record: the instructions of every block it translates, then the start of each that runs. It leaves
    out what is not used in a step, or the record of all that comes before would be a hundred times as long."""
    base = base_of(program)
    counts, size, inside, listed, back, last, first = collections.Counter(), {}, False, None, None, None, 0
    step, ranges, begin = base + code.starts[code.names.index("exphil_session_step")], [], None
    for at, name in zip(code.starts, code.names):
        if name in unused and begin is not None:
            ranges.append("0x%x..0x%x" % (base + begin, base + at - 1))
            begin = None
        elif name not in unused and begin is None:
            begin = at
    ranges.append("0x%x..0x%x" % (base + begin, base + max(code.text) + 3))
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        run = subprocess.Popen(["qemu-aarch64-static", "-cpu", "max", "-d", "in_asm,exec,nochain", "-D", pipe, "-dfilter",
                                ",".join(ranges)] + serve(program, case, folder), stdin=subprocess.PIPE,
                               env=dict(os.environ, EXPHIL_CPU_ISA=isa), text=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        run.stdin.write(ORDERS)
        run.stdin.close()
        for line in open(pipe, errors="replace"):
            if line.startswith("Trace"):
                at = int(line.split("/")[1], 16)
                if not inside and at == step:
                    inside, back = True, last + 4 * size[last]
                elif inside and at == back:
                    inside = False
                if inside:
                    counts[at] += 1
                last, listed = at, None
            elif line.startswith("IN:"):
                listed = 0
            elif line.startswith("0x") and listed is not None:
                listed += 1
                if listed == 1:
                    first = int(line.split(":")[0], 16)
                size[first] = listed
        if run.wait() != 0:
            sys.exit("%s does not run" % program)
    if not counts:
        sys.exit("%s: no step is in the record of qemu" % program)
    single = collections.Counter()
    for at, count in counts.items():
        for here in range(at - base, at - base + 4 * size[at], 4):
            single[here] += count
    return single


def loops_of(code, counts):
    """(instructions, multiply-adds of lanes, function, instructions of one pass, multiply-adds of one), of each inner loop
    that multiplies."""
    rows, places = [], sorted(counts)
    for begin, end in code.loops:
        here = places[bisect.bisect_left(places, begin):bisect.bisect_right(places, end)]
        done = sum(counts[at] * code.operations(at) for at in here)
        if done:
            times = max(counts[at] for at in here)
            rows.append((sum(counts[at] for at in here), done, code.function(begin), times))
    return sorted(rows, reverse=True)


def main():
    words = [word for word in sys.argv[1:] if word != "--loops"]
    if len(words) < 2:
        sys.exit(__doc__)
    codes = {"x86": Code("x86", words[0]), "arm": Code("arm", words[1])}
    failed = False
    print("| decision | sets | instructions | in inner loops | per multiply-add of a register | times |")
    print("| --- | --- | --- | --- | --- | --- |")
    listed = []
    for case in words[2:] or CASES:
        isa = {"x86": "avx2", "arm": (case.split(":") + ["neon"])[3]}
        all_of, inner, each = {}, {}, {}
        unused = None
        for kind in codes:
            if kind == "x86":
                counts, unused = executed_x86(codes[kind], words[0], case, isa[kind])
            else:
                counts = executed_arm(codes[kind], words[1], case, isa[kind], unused)
            rows = loops_of(codes[kind], counts)
            all_of[kind] = sum(counts.values()) / STEPS
            inner[kind] = sum(row[0] for row in rows) / STEPS
            each[kind] = sum(row[0] for row in rows) * LANES[kind] / sum(row[1] for row in rows)
            listed += [(case, isa[kind], row[2], row[0] / STEPS, row[3] / STEPS, row[0] / row[3], row[1] / row[3] / LANES[kind])
                       for row in rows if row[0] > 0.02 * inner[kind] * STEPS]
        times = each["arm"] / each["x86"]
        failed = failed or times > BAR
        print("| `%s` | %s, %s | %d, %d | %d, %d | %.2f, %.2f | %.2f |" % (
            " ".join(case.split(":")[:3]), isa["x86"], isa["arm"], all_of["x86"], all_of["arm"], inner["x86"], inner["arm"],
            each["x86"], each["arm"], times), flush=True)
    if "--loops" in sys.argv:
        print("\n| decision | set | loop in | instructions | passes | of a pass | multiply-adds of registers | per multiply-add |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for case, isa, function, executed, times, instructions, products in listed:
            print("| `%s` | %s | `%s` | %d | %d | %.1f | %.1f | %.2f |" % (
                " ".join(case.split(":")[:3]), isa, function, executed, times, instructions, products, instructions / products))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
