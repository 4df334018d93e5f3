"""Instructions, sectors and operations of launches, from the machine code: blocks of each launch are run by the machine
(machine/*.c, compiled here), and scaled to the grid.

Blocks at an end of the grid are classes of their own, as they may be part full. Sectors of 32 bytes that a launch touches are
counted once: each belongs to the instruction of a block that touches it first, and what a block has in common with its
neighbours along x, y and z says how many different ones the grid has.
"""
import collections
import glob
import hashlib
import os
import re
import shutil
import subprocess

from . import decode
from .flow import listing_of
from .launches import Copy, Launch

HERE = os.path.dirname(os.path.abspath(__file__))
PARAMETERS = 0x210  # where they begin in constant memory, sm_90
SECTOR = 32
FEW, MANY = 6, 96  # blocks that are looked at besides those at the ends; many where they differ
DIFFER = 0.02
# Jumps whose predicate is not known are not taken, but for those over a call (the long way of a division) and these: pattern of
# the kernel, number of the instruction or None, taken.
HINTS = []

# meetings: barriers of a cluster that a block comes to.
Total = collections.namedtuple(
    "Total", "instructions longest bytes reads writes asked unknown operations blocks assumed meetings")


def machine(folder):
    """The program, compiled when its sources are new."""
    sources = sorted(glob.glob(os.path.join(HERE, "machine", "*.[ch]")))
    digest = hashlib.sha256()
    for source in sources:
        with open(source, "rb") as file:
            digest.update(file.read())
    program = os.path.join(folder, "machine-" + digest.hexdigest()[:16])
    if not os.path.exists(program):
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        code = [source for source in sources if source.endswith(".c")]
        new = f"{program}.{os.getpid()}"
        subprocess.run([compiler, "-std=c11", "-O2", "-o", new, *code, "-lm"], check=True)
        os.replace(new, program)
    return program


# ---- code ----


class Code:
    """A kernel's instructions, by place, and what they are called."""

    def __init__(self, name, lines):
        self.name, self.lines, self.labels = name, [], {}
        for line in lines:
            if isinstance(line, str):
                self.labels[line] = len(self.lines)
            else:
                self.lines.append(line)
        self.text = decode.text_of(decode.Decoder(self.lines, self.labels, self.rule).all())

    def calls(self, at):
        """Whether what begins there calls before it jumps."""
        for guard, name, _ in self.lines[at:at + 64]:
            base = name.split(".")[0]
            if base == "CALL":
                return True
            if base in ("BRA", "EXIT", "RET", "BSYNC", "BSSY") and not guard:
                return False
        return False

    def rule(self, index):
        for pattern, place, taken in HINTS:
            if re.match(pattern, self.name) and place in (None, index):
                return int(taken)
        return int(self.lines[index][1].startswith("BRA") and self.calls(index + 1))

    def base(self, at):
        return self.lines[at][1].split(".")[0]


class Codes:
    """Lines of kernels, read from the cubins when they are asked for. keys: {key of a cubin: its kernels}."""

    def __init__(self, nvdisasm, folder, keys):
        self.nvdisasm, self.folder, self.lines = nvdisasm, folder, {}
        self.key_of = {kernel: key for key, kernels in keys.items() for kernel in kernels}
        self.built = {}

    def code(self, kernel):
        if kernel not in self.key_of:
            raise SystemExit(f"{kernel} is launched, but not among the compiled kernels")
        if kernel not in self.lines:
            self.lines.update(listing_of(self.nvdisasm, os.path.join(self.folder, self.key_of[kernel] + ".cubin")))
        if kernel not in self.built:
            try:
                self.built[kernel] = Code(kernel, self.lines[kernel])
            except decode.Unknown as what:
                raise SystemExit(f"{kernel} cannot be counted: {what} (tools/cuda_gate/decode.py)") from None
        return self.built[kernel]


# ---- which blocks ----


def class_of(block, grid):
    return tuple(n > 1 and at == n - 1 for at, n in zip(block, grid))


def size_of(kind, grid):
    size = 1
    for last, n in zip(kind, grid):
        size *= 1 if last or n == 1 else n - 1
    return size


def sample(grid, more):
    """The first is that which the next, one along each axis that has one, are compared with."""
    first = tuple((n - 2) // 2 if n > 2 else 0 for n in grid)
    blocks = [first]
    for axis in range(3):
        if grid[axis] > 1:
            blocks.append(tuple(at + (i == axis) for i, at in enumerate(first)))
    ends = [(first[i], grid[i] - 1) for i in range(3)]
    blocks += [(x, y, z) for x in ends[0] for y in ends[1] for z in ends[2]]
    count = grid[0] * grid[1] * grid[2]
    for i in range(min(more, count)):
        at = i * count // min(more, count)
        blocks.append((at % grid[0], at // grid[0] % grid[1], at // grid[0] // grid[1]))
    return list(dict.fromkeys(blocks))


# ---- running ----

Row = collections.namedtuple("Row", "executed reads writes new_reads new_writes sectors unknown taken passed least most")


def run(program, listing, codes, wanted, more):
    """[(block, executed, longest, {place: Row})] for each launch whose number is wanted."""
    names = sorted({operation.kernel for _, operation in listing.operations if isinstance(operation, Launch)})
    number = {name: i for i, name in enumerate(names)}
    text = [f"bytes {listing.path}.bytes"]
    for name in names:
        code = codes[name]
        text += [f"kernel {name.replace(' ', '')} {PARAMETERS} {len(code.lines)}", code.text]
    launches, samples = 0, []
    for _, operation in listing.operations:
        if isinstance(operation, Copy) and operation.at >= 0:
            text.append(f"upload {operation.to} {operation.bytes} {operation.at}")
        if isinstance(operation, Launch):
            if launches in wanted:
                blocks = sample(operation.grid, more)
                samples.append(blocks)
                numbers = [number[operation.kernel], *operation.grid, *operation.block, operation.cluster]
                arguments = f"{len(operation.arguments) // 2} {operation.arguments}"
                text.append(f"launch {' '.join(map(str, numbers))} {arguments} {len(blocks)}")
                text += [" ".join(map(str, block)) for block in blocks]
            launches += 1
    done = subprocess.run([program], input="\n".join(text) + "\n", capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"machine code that cannot be counted: {done.stderr.strip().splitlines()[-1:]}")
    return read(done.stdout, samples)


def read(text, samples):
    found = []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "launch":
            found.append([])
        elif words[0] == "block":
            found[-1].append((samples[len(found) - 1][len(found[-1])], int(words[1]), int(words[2]), {}))
        else:
            numbers = list(map(int, words))
            found[-1][-1][3][numbers[0]] = Row(*numbers[1:])
    return found


# ---- scaling ----


def means(blocks, grid, value):
    """The sum of value(block) over the grid, by the mean of each class of blocks."""
    by_class = collections.defaultdict(list)
    for one in blocks:
        by_class[class_of(one[0], grid)].append(value(one))
    inner = by_class.get((False,) * 3)
    total = 0.0
    kinds = [(x, y, z) for x in (False, True) for y in (False, True) for z in (False, True)]
    for kind in kinds:
        if any(last and n == 1 for last, n in zip(kind, grid)):
            continue
        values = by_class.get(kind) or inner or next(iter(by_class.values()))
        total += size_of(kind, grid) * sum(values) / len(values)
    return total


def share(blocks, grid, place, writes):
    """Of the sectors that an instruction touches in all blocks how many are different ones."""
    by_block, first = {b[0]: b[3] for b in blocks}, blocks[0][0]
    part = 1.0
    for axis in range(3):
        n = grid[axis]
        if n == 1:
            continue
        row = by_block[tuple(at + (i == axis) for i, at in enumerate(first))].get(place)
        new, all_of_it = ((row.new_writes, row.writes) if writes else (row.new_reads, row.reads)) if row else (1, 1)
        part *= (1 + (n - 1) * new / all_of_it) / n if all_of_it else 1
    return part


def sectors_of(blocks, grid, writes):
    places = {place for b in blocks for place in b[3]}
    total = 0.0
    for place in places:
        rows = [b[3][place] for b in blocks if place in b[3]]
        if not any(r.writes if writes else r.reads for r in rows):
            continue

        def touched(block, place=place):
            row = block[3].get(place)
            return 0 if row is None else row.writes if writes else row.reads

        extent = max(r.most for r in rows) - min(r.least for r in rows if r.sectors) + 1
        total += min(means(blocks, grid, touched) * share(blocks, grid, place, writes), extent)
    return total


# Operations of an instruction of a warp, and their kind.
FLOPS = {"FFMA": ("f32", 64), "FADD": ("f32", 32), "FMUL": ("f32", 32), "MUFU": ("mufu", 32), "DFMA": ("f64", 64),
         "DADD": ("f64", 32), "DMUL": ("f64", 32)}
MATRIX = {"HMMA.1688.F32.TF32": ("tf32", 2048), "HMMA.1684.F32.TF32": ("tf32", 1024)}


def operation_of(name):
    base = name.split(".")[0]
    if base == "HMMA":
        if name in MATRIX:
            return MATRIX[name]
        return ("half", 4096) if ".16816" in name else ("half", 2048)
    return FLOPS.get(base, (None, 0))


def bytes_of_lane(name):
    return decode.bytes_of(name.split(".")[1:])


def total_of(blocks, grid, warps, code):
    operations, assumed, unknown, met = collections.Counter(), collections.Counter(), 0.0, 0.0
    for place in {place for b in blocks for place in b[3]}:
        executed = means(blocks, grid, lambda b, at=place: b[3][at].executed if at in b[3] else 0)
        kind, each = operation_of(code.lines[place][1])
        if kind:
            operations[kind] += executed * each
        if code.lines[place][1].startswith("UCGABAR_ARV"):
            met += executed
        lanes = means(blocks, grid, lambda b, at=place: b[3][at].unknown if at in b[3] else 0)
        unknown += lanes * bytes_of_lane(code.lines[place][1])
        for what in ("taken", "passed"):
            if count := sum(getattr(b[3][place], what) for b in blocks if place in b[3]):
                assumed[place, what] += count
    reads, writes = (SECTOR * sectors_of(blocks, grid, w) for w in (False, True))
    asked = SECTOR * means(blocks, grid, lambda b: sum(r.sectors for r in b[3].values()))
    instructions, longest = means(blocks, grid, lambda b: b[1]), max(b[2] for b in blocks)
    count = grid[0] * grid[1] * grid[2]
    return Total(instructions, longest, reads + writes + unknown, reads, writes, asked, unknown, dict(operations), len(blocks),
                 dict(assumed), met / count / warps)


def warps_of(launch):
    return -(-launch.block[0] * launch.block[1] * launch.block[2] // 32)


def differ(blocks, grid):
    inner = [b[1] for b in blocks if not any(class_of(b[0], grid))]
    return len(inner) > 1 and max(inner) - min(inner) > DIFFER * max(inner)


def totals(program, listing, codes):
    """A Total for each launch of the list, in order."""
    launches = [operation for _, operation in listing.operations if isinstance(operation, Launch)]
    built = {name: codes.code(name) for name in sorted({launch.kernel for launch in launches})}
    found = run(program, listing, built, set(range(len(launches))), FEW)
    varied = [i for i, launch in enumerate(launches) if differ(found[i], launch.grid)]
    for i, blocks in zip(varied, run(program, listing, built, set(varied), MANY) if varied else []):
        found[i] = blocks
    return [total_of(blocks, launch.grid, warps_of(launch), built[launch.kernel]) for launch, blocks in zip(launches, found)]


def explained(launch, total, code):
    """What was assumed of a launch, in words."""
    for (place, what), lanes in sorted(total.assumed.items()):
        guard, name, operands = code.lines[place]
        yield (f"{launch.kernel}, instruction {place}: {'@' + guard + ' ' if guard else ''}{name}{operands}: not known, "
               f"{'taken' if what == 'taken' else 'not taken'}, {lanes} lanes of {total.blocks} blocks")
    if total.unknown:
        yield f"{launch.kernel}: addresses of {total.unknown * 1e-6:.2f} MB are not known: each counts as another one"
