"""tests/cuda/registers.txt: what every kernel takes, and what it is held to."""
import hashlib
import os

from .build import COUNTED_FOR, TOP

TABLE = os.path.join(TOP, "tests", "cuda", "registers.txt")

# Whose instructions are counted: kernel, part of it, and how many steps that part is.
#   largest   the largest loop outside of others; what it jumps to counts, loops inside count once
#   loops     all loops outside of others
#   all       all of the kernel
COUNTED = [
    ("scan_frames<float, 16, 1>", "largest", 15, "frame"),  # a stage of 8, and one that is not full
    ("scan_frames<float, 16, 4>", "largest", 15, "frame"),  # a stage of 8, and one that is not full
    ("scan_frames<__nv_bfloat16, 16, 1>", "largest", 15, "frame"),  # a stage of 8, and one that is not full
    ("scan_step<float, 16, true, true>", "all", 1, "frame"),
    ("scan_grad<float, 16>", "loops", 8, "frame"),
    ("scan_grad<__nv_bfloat16, 16>", "loops", 8, "frame"),
    # two channels, eight frames; and the same once more, with conditions
    ("conv_frames<float, 4, 2>", "largest", 16, "frame"),
    ("conv_frames<__nv_bfloat16, 4, 2>", "largest", 16, "frame"),
    ("conv_grad<float, 4, 2>", "largest", 16, "frame"),
    ("conv_grad<__nv_bfloat16, 4, 2>", "largest", 16, "frame"),
    # with SiLU and without
    ("norm_rows<float, 8, 2>", "all", 16, "column"),
    ("norm_rows<__nv_bfloat16, 8, 2>", "all", 16, "column"),
    ("norm_grad<float, 8, 2>", "loops", 16, "column"),
    ("norm_grad<__nv_bfloat16, 8, 2>", "loops", 16, "column"),
    ("adam", "all", 4, "number"),
    # tiles of 64 keys, or frames
    ("attention_tile<float_unit, float, 64>", "largest", 64, "key"),
    ("attention_tile<bf16_unit, __nv_bfloat16, 64>", "largest", 64, "key"),
    ("attention_back_keys<float_unit, float, 64>", "largest", 64, "frame"),
    ("attention_back_keys<bf16_unit, __nv_bfloat16, 64>", "largest", 64, "frame"),
    ("attention_back_frames<float_unit, float, 64>", "largest", 64, "key"),
    ("attention_back_frames<bf16_unit, __nv_bfloat16, 64>", "largest", 64, "key"),
    # along the hidden units
    ("rnn_frame_tensor<float, by_tf32, 4>", "largest", 1, "turn"),
    ("rnn_frame_tensor<__nv_bfloat16, by_bf16, 4>", "largest", 1, "turn"),
    ("rnn_frame_back_tensor<__nv_bfloat16, by_bf16, 4>", "largest", 1, "turn"),
    ("linear<float, 64>", "largest", 16, "column"),
]
# Of them these may not reach for spilled registers in a loop; the others, and what lies outside of loops, are held to the table.
NEVER_SPILL = ("scan", "conv", "norm", "adam", "rnn", "linear")


HEAD = """\
# Registers of every kernel for every target (a * is a spill, its bytes behind it), static shared memory, and instructions
# of a lane per step, as CUDA {release} makes them: tools/cuda-gate --update, which says what they are held to.
"""


def cell(facts):
    return str(facts["registers"]) + (f"*{facts['spill']}" if facts["spill"] else "")


def seal_of(keys):
    """What passed: sources, flags and compiler."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).hexdigest()[:20]


def write_seal(keys):
    with open(TABLE) as file:
        lines = [line for line in file if not line.startswith("passed ")]
    lines.insert(next(i for i, line in enumerate(lines) if line.startswith("release ")) + 1, f"passed {seal_of(keys)}\n")
    with open(TABLE, "w") as file:
        file.writelines(lines)


def write_table(release, targets, found, counts):
    with open(TABLE, "w") as file:
        file.write(HEAD.format(release=release) + f"release {release}\n\n")
        kernels = sorted(set().union(*found.values()))
        width = max(map(len, kernels))
        file.write(f"{'kernel':{width}} | shared | " + " | ".join(f"sm_{t:<4}" for t in targets).rstrip() + "\n")
        for k in kernels:
            cells = " | ".join(f"{cell(found[t][k]) if k in found[t] else '-':<7}" for t in targets)
            file.write(f"{k:{width}} | {found[COUNTED_FOR][k]['shared']:>6} | {cells}".rstrip() + "\n")
        file.write(f"\ninstructions on sm_{COUNTED_FOR}\n")
        for kernel, part, steps, unit in COUNTED:
            file.write(f"{kernel:{width}} | {counts[kernel][part] / steps:>7.1f} per {unit} ({part} of the kernel)\n")


def read_table():
    table = {"release": None, "passed": None, "registers": {}, "counts": {}}
    targets = []
    for line in open(TABLE):
        cells = [c.strip() for c in line.split(" | ")]
        if line.startswith("release "):
            table["release"] = line.split()[1]
        elif line.startswith("passed "):
            table["passed"] = line.split()[1]
        elif cells[0] == "kernel":
            targets = [int(c[3:]) for c in cells[2:]]
        elif len(cells) == 2:
            table["counts"][cells[0]] = float(cells[1].split()[0])
        elif len(cells) > 2:
            table["registers"][cells[0]] = dict(zip(targets, cells[2:]))
    return table


# ---- judging ----


def by_eight(registers):
    return -(-registers // 8) * 8


def judge_kernel(kernel, target, facts, before, same_release):
    if before in (None, "-"):
        return
    registers, spill = (int(n) for n in (before.split("*") + ["0"])[:2])
    if facts["spill"] > spill:
        yield f"{kernel} spills {facts['spill']} bytes on sm_{target}, before: {spill}"
    if same_release and facts["registers"] > by_eight(int(registers * 1.05)):
        yield f"{kernel} takes {facts['registers']} registers on sm_{target}, before: {registers}"


def judge_counts(counts, table):
    for kernel, part, steps, unit in COUNTED:
        if kernel not in counts:
            yield f"{kernel} is counted in tools/cuda-gate, but not there"
            continue
        if counts[kernel]["spilled"] and kernel.startswith(NEVER_SPILL):
            yield f"{kernel} spills in a loop, {counts[kernel]['spilled']} instructions"
        now, before = counts[kernel][part] / steps, table["counts"].get(kernel)
        if before is None or abs(now - before) > 0.05 * before:
            yield f"{kernel} has {now:.1f} instructions per {unit}, before: {before}"


def judge(found, counts, table, release):
    wrong, same = [], release == table["release"]
    for target, kernels in found.items():
        for kernel, facts in kernels.items():
            known = table["registers"].get(kernel)
            if known is None:
                wrong.append(f"{kernel} is not in the table")
            wrong += judge_kernel(kernel, target, facts, (known or {}).get(target), same)
        wrong += [f"{kernel} is in the table, but not there any more" for kernel in table["registers"] if kernel not in kernels]
    if counts is not None:
        wrong += [f"{kernel} touches memory before it has waited for the kernel before it (XPH_ENTER): {facts['early']}"
                  for kernel, facts in counts.items() if facts["early"]]
    if counts is not None and same:
        wrong += judge_counts(counts, table)
    return list(dict.fromkeys(wrong))


def say(found, counts, table, version, release):
    """What was looked at."""
    print(f"CUDA {version}: {len(found[COUNTED_FOR])} kernels for " + ", ".join(f"sm_{t}" for t in found))
    print("most registers:", max((f["registers"], k) for k, f in found[COUNTED_FOR].items()))
    for kernel, part, steps, unit in COUNTED if counts else []:
        if kernel in counts:
            print(f"  {kernel}: {counts[kernel][part] / steps:.1f} instructions per {unit}")
    if release != table["release"]:
        print(f"SKIPPED: the table is that of CUDA {table['release']}: registers and instructions are not compared")
    if counts is None:
        print("SKIPPED: no nvdisasm here or on PyPI: instructions are not counted")
