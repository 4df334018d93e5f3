"""Machine code as nvdisasm writes it: its basic blocks, its loops, and how many instructions they have."""
import collections
import os
import re
import subprocess

from . import enter
from .build import keep, kept, plain_names


def listing_of(nvdisasm, cubin):
    """{kernel: lines}, a line a label or (predicate, instruction, operands)."""
    text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    kernels, lines = {}, None
    for line in text.splitlines():
        if found := re.match(r"\.text\.(\S+):", line):
            lines = kernels.setdefault(found[1], [])
        elif line.startswith("//---"):
            lines = None
        elif lines is None:
            continue
        elif found := re.match(r"(\S+):\s*$", line):
            lines.append(found[1])
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@(!?U?P\w+)\s+)?([^\s;]+)(.*?)\s*;", line):
            lines.append(found.groups())
    names = plain_names(list(kernels))
    return {names[raw]: lines for raw, lines in kernels.items()}


class Flow:
    """The basic blocks of a kernel, [first, end) in instructions, and where each may go on."""

    ENDS = ("BRA", "EXIT", "RET", "JMP", "BRX")

    def __init__(self, lines):
        self.code, labels = [], {}
        self.labels = labels
        for line in lines:
            if isinstance(line, str):
                labels[line] = len(self.code)
            else:
                self.code.append(line)
        # Behind the last instruction the assembler fills up: a jump to itself, then nothing.
        while self.code and self.base(-1) == "NOP":
            self.code.pop()
        count = len(self.code)
        leaders = {0} | {i + 1 for i in range(count) if self.base(i) in self.ENDS} | set(labels.values())
        leaders = sorted(i for i in leaders if i < count)
        self.blocks = list(zip(leaders, leaders[1:] + [count]))
        self.number = {first: n for n, (first, _) in enumerate(self.blocks)}
        self.next = [self.targets(n, labels) for n in range(len(self.blocks))]

    def base(self, i):
        return self.code[i][1].split(".")[0]

    def targets(self, n, labels):
        predicate, _, operands = self.code[self.blocks[n][1] - 1]
        last, to = self.base(self.blocks[n][1] - 1), []
        falls = last not in self.ENDS or predicate is not None
        if last == "BRA":
            falls = falls or bool(re.match(r"\s*!?U?P", operands))
            to = [self.number[labels[label]] for label in re.findall(r"`\((\.L_\w+)\)", operands) if labels[label] in self.number]
        return to + ([n + 1] if falls and n + 1 < len(self.blocks) else [])

    def size(self, blocks):
        return sum(self.blocks[n][1] - self.blocks[n][0] for n in blocks)

    def spilled(self, blocks):
        """Instructions that reach for what registers could not hold."""
        return sum(self.base(i) in ("LDL", "STL") for n in blocks for i in range(*self.blocks[n]))

    def order(self):
        """Blocks that can be reached, each before those it leads to but for jumps back."""
        done, seen, stack = [], {0}, [(0, iter(self.next[0]))]
        while stack:
            block, more = stack[-1]
            to = next((n for n in more if n not in seen), None)
            if to is None:
                done.append(block)
                stack.pop()
            else:
                seen.add(to)
                stack.append((to, iter(self.next[to])))
        return done[::-1]

    def dominators(self, order, before):
        place, above = {block: i for i, block in enumerate(order)}, {0: 0}
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                ways, best = [p for p in before[block] if p in above], None
                for p in ways:
                    other = p if best is None else best
                    while p != other:
                        if place[p] > place[other]:
                            p = above[p]
                        else:
                            other = above[other]
                    best = p
                if above.get(block) != best:
                    above[block], changed = best, True
        return above

    def loops(self):
        """{head: blocks}: what leads back to a head without passing it."""
        order, before, found = self.order(), collections.defaultdict(list), {}
        for block in order:
            for to in self.next[block]:
                before[to].append(block)
        above = self.dominators(order, before)
        for block in order:
            for head in self.next[block]:
                walk = block
                while walk != head and walk:
                    walk = above[walk]
                if walk != head:
                    continue
                body, stack = found.setdefault(head, {head}), [block]
                while stack:
                    n = stack.pop()
                    if n not in body:
                        body.add(n)
                        stack += before[n]
        return found


def outer(loops):
    return {h: body for h, body in loops.items() if not any(h in other for g, other in loops.items() if g != h)}


def counts_of(nvdisasm, cubin):
    """{kernel: instructions, and what touches memory before it has waited}"""
    counts = {}
    for kernel, lines in listing_of(nvdisasm, cubin).items():
        flow = Flow(lines)
        loops = outer(flow.loops())
        sizes = sorted(flow.size(body) for body in loops.values())
        counts[kernel] = {"all": len(flow.code), "loops": sum(sizes), "largest": sizes[-1] if sizes else 0,
                          "spilled": sum(flow.spilled(body) for body in loops.values()), "early": enter.before_wait(flow)}
    return counts


def count_all(nvdisasm, folder, keys):
    counts = {}
    for key in keys:
        known = kept(folder, key + ".count")
        if known is None or any("early" not in one for one in known.values()):
            known = counts_of(nvdisasm, os.path.join(folder, key + ".cubin"))
            keep(folder, key + ".count", known)
        counts.update(known)
    return counts


def show_loops(nvdisasm, folder, keys, wanted):
    for key in keys:
        for kernel, lines in listing_of(nvdisasm, os.path.join(folder, key + ".cubin")).items():
            if wanted not in kernel:
                continue
            flow = Flow(lines)
            loops = flow.loops()
            print(f"{kernel}: {len(flow.code)}")
            for head in sorted(loops):
                depth = sum(head in body for body in loops.values())
                often = collections.Counter(flow.base(i) for n in loops[head] for i in range(*flow.blocks[n]))
                words = " ".join(f"{name} {count}" for name, count in often.most_common(10))
                print(f"{'  ' * depth}loop at {flow.blocks[head][0]}: {flow.size(loops[head])} ({words})")
