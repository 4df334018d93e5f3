"""tools/cuda-gate by its parts, on machine code that is written here: kernels that touch memory too early are found, warps are
counted as they run, what is not known is refused or said, and a table that is not right any more is told.

usage: gate_parts.py SOURCE BUILD
"""
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile

source, build = map(os.path.abspath, sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(source, "tools"))
from cuda_gate import costs, count, decode, enter, flow, launches, rates  # noqa: E402


def must(so, what):
    if not so:
        sys.exit(f"FAILED: {what}")


def lines_of(text):
    """As flow.listing_of gives them."""
    lines = []
    for line in text.strip().splitlines():
        if found := re.match(r"(\S+):$", line.strip()):
            lines.append(found[1])
        else:
            lines.append(re.match(r"\s*(?:@(!?U?P\w+)\s+)?([^\s;]+)(.*?)\s*;", line).groups())
    return lines


# ---- XPH_ENTER ----

ENTERS = """
        PREEXIT ;
        S2R R0, SR_TID.X ;
        ISETP.GE.AND P0, PT, R0, 0x4, PT ;
{early}
        @P0 BRA `(.L_x_1) ;
{inside}
        ACQBULK ;
        LDG.E R2, desc[UR4][R4.64] ;
        EXIT ;
.L_x_1:
{other}
        STG.E desc[UR4][R4.64], R2 ;
        EXIT ;
"""


def early(**parts):
    text = ENTERS.format(**{"early": "", "inside": "", "other": "        ACQBULK ;", **parts})
    return enter.before_wait(flow.Flow(lines_of("\n".join(line for line in text.splitlines() if line.strip()))))


def test_enter():
    must(early() is None, f"a kernel that waits on all ways: {early()}")
    load = "        LDG.E.CONSTANT R6, desc[UR4][R4.64] ;"
    must("LDG" in (early(early=load) or ""), "a load before the wait is not found")
    must("LDG" in (early(inside=load) or ""), "a load behind a jump is not found")
    must("STG" in (early(other="        NOP ;") or ""), "a way without a wait is not found")
    must("STG" in (early(other="        @P0 ACQBULK ;") or ""), "a wait of some lanes counts")
    for one in ("RED.E.ADD.STRONG.GPU desc[UR4][R4.64], R2", "ATOMG.E.ADD PT, R6, desc[UR4][R4.64], R9",
                "LDGSTS.E [R2], desc[UR4][R4.64]", "UTMALDG.2D [UR8], [UR4]", "LDL R2, [R1]", "ST.E desc[UR4][R4.64], R2"):
        must(early(early=f"        {one} ;"), f"{one} before the wait is not found")
    for one in ("LDS R2, [R1]", "LDC R2, c[0x0][0x210]", "STS [R1], R2", "CCTL.E.PF1 [R4]"):
        must(early(early=f"        {one} ;") is None, f"{one} touches nothing of another kernel")


# ---- warps ----


class Bed:
    """A list of launches of one kernel, in a folder, with what the host copied."""

    def __init__(self, folder, grid, block, arguments, content=b"", at=0x1000):
        self.path = os.path.join(folder, "list")
        with open(self.path + ".bytes", "wb") as file:
            file.write(content)
        copies = [(False, launches.Copy("s", at, 0, len(content), "up", 0))] if content else []
        self.launch = launches.Launch("s", "kernel", grid, block, 1, 0, arguments.hex())
        self.operations = copies + [(True, self.launch)]

    def counted(self):
        return [self.launch]


class OneCode:
    def __init__(self, text):
        self.one = count.Code("kernel", lines_of(text))

    def code(self, _):
        return self.one


def total(text, grid=(1, 1, 1), block=(32, 1, 1), arguments=b"", content=b""):
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(folder, grid, block, arguments, content)
        return count.totals(program, bed, OneCode(text))[0]


def words(*numbers):
    return b"".join(n.to_bytes(4, "little") for n in numbers)


LOOP = """
        LDC R1, c[0x0][0x210] ;
        IMAD.MOV.U32 R2, RZ, RZ, RZ ;
.L_x_0:
        IADD3 R2, R2, 0x1, RZ ;
        ISETP.LT.U32.AND P0, PT, R2, R1, PT ;
        @P0 BRA `(.L_x_0) ;
        EXIT ;
"""
# Lane l of warp w goes through the loop l + 1 times: the warp until its last lane is done; then all lanes together.
LANES = """
        S2R R0, SR_LANEID ;
        BSSY B0, `(.L_x_1) ;
.L_x_0:
        VIADD R0, R0, 0xffffffff ;
        ISETP.GE.AND P0, PT, R0, RZ, PT ;
        @P0 BRA `(.L_x_0) ;
        BSYNC B0 ;
.L_x_1:
        NOP ;
        EXIT ;
"""
# The compiler's division of two arguments of 32 bits, and a loop of so many turns.
DIVIDE = """
        LDC R4, c[0x0][0x214] ;
        I2F.U32.RP R0, R4 ;
        ISETP.NE.U32.AND P2, PT, R4, RZ, PT ;
        MUFU.RCP R0, R0 ;
        VIADD R2, R0, 0xffffffe ;
        F2I.FTZ.U32.TRUNC.NTZ R3, R2 ;
        IMAD.MOV.U32 R2, RZ, RZ, RZ ;
        IMAD.MOV R5, RZ, RZ, -R3 ;
        IMAD R5, R5, R4, RZ ;
        IMAD.HI.U32 R3, R3, R5, R2 ;
        LDC R6, c[0x0][0x210] ;
        IMAD.HI.U32 R3, R3, R6, RZ ;
        IMAD.MOV R5, RZ, RZ, -R3 ;
        IMAD R5, R4, R5, R6 ;
        ISETP.GE.U32.AND P0, PT, R5, R4, PT ;
        @P0 IMAD.IADD R5, R5, 0x1, -R4 ;
        @P0 VIADD R3, R3, 0x1 ;
        ISETP.GE.U32.AND P1, PT, R5, R4, PT ;
        @P1 VIADD R3, R3, 0x1 ;
.L_x_0:
        IADD3 R3, R3, -0x1, RZ ;
        ISETP.NE.AND P0, PT, R3, RZ, PT ;
        @P0 BRA `(.L_x_0) ;
        EXIT ;
"""
# Numbers that the host copied decide; one warp leaves what the other reads in shared memory.
TOLD = """
        S2R R0, SR_TID.X ;
        UMOV UR4, 0x400 ;
        IMAD.MOV.U32 R2, RZ, RZ, 0x1000 ;
        IMAD.MOV.U32 R3, RZ, RZ, RZ ;
        LDG.E R4, desc[UR8][R2.64] ;
        ISETP.NE.AND P0, PT, R0, 0x20, PT ;
        @!P0 STS [UR4], R4 ;
        BAR.SYNC.DEFER_BLOCKING 0x0 ;
        LDS R5, [UR4] ;
.L_x_0:
        VIADD R5, R5, 0xffffffff ;
        ISETP.NE.AND P1, PT, R5, RZ, PT ;
        @P1 BRA `(.L_x_0) ;
        EXIT ;
"""
FLOATS = """
        FADD R0, R1, R2 ;
        FSETP.GT.AND P0, PT, R0, 1, PT ;
        @P0 BRA `(.L_x_0) ;
        HMMA.16816.F32.BF16 R4, R8, R12, R4 ;
        MUFU.EX2 R0, R0 ;
        EXIT ;
.L_x_0:
        EXIT ;
"""
# Block b writes 128 bytes at 1024 + 128 b and reads the same 64 as all others.
SECTORS = """
        S2R R0, SR_TID.X ;
        S2R R1, SR_CTAID.X ;
        IMAD R2, R1, 0x20, R0 ;
        IMAD.WIDE.U32 R4, R2, 0x4, RZ ;
        STG.E desc[UR4][R4.64+0x400], R9 ;
        LOP3.LUT R6, R0, 0xf, RZ, 0xc0, !PT ;
        IMAD.WIDE.U32 R6, R6, 0x4, RZ ;
        LDG.E R8, desc[UR4][R6.64] ;
        EXIT ;
"""


def test_warps():
    must(total(LOOP, arguments=words(7)).instructions == 3 + 7 * 3, "turns of a loop are not as the argument says")
    found = total(LOOP, grid=(5, 3, 2), block=(64, 2, 1), arguments=words(7))
    must(found.instructions == 30 * 4 * 24, "not of all warps of the grid")
    must(total(LANES).instructions == 2 + 32 * 3 + 32 + 2, f"lanes that part: {total(LANES).instructions}")
    must(total(TOLD, block=(64, 1, 1), content=words(9)).instructions == 2 * (10 + 9 * 3), "what the host copied does not decide")
    found = total(FLOATS)
    must(found.instructions == 6 and len(found.assumed) == 1, "a jump on a float is not said")
    must(found.operations == {"f32": 32, "half": 4096, "mufu": 32}, f"operations: {found.operations}")
    found = total(SECTORS, grid=(100, 1, 1))
    must((found.writes, found.reads) == (12800, 64), f"{found.writes} bytes written, {found.reads} read")


def test_division():
    random.seed(5)
    for _ in range(40):
        b = random.choice([1, 2, 3, 7, random.randrange(1, 1 << 8), random.randrange(1, 1 << 20)])
        a = b * random.randrange(1, 200) + random.randrange(b)
        must(total(DIVIDE, arguments=words(a, b)).instructions == 20 + 3 * (a // b), f"{a} / {b}")


def refuses(text, word, **how):
    with contextlib.redirect_stderr(None):
        try:
            total(text, **how)
        except (SystemExit, decode.Unknown) as why:
            must(word in str(why), f"'{why}' has no '{word}'")
            return
    must(False, f"nothing was refused for {word}")


def test_refused():
    refuses("        FROB.E R0, R1 ;\n        EXIT ;", "FROB")
    refuses("        IADD3.FROB R0, R1, R2, RZ ;\n        EXIT ;", "FROB")
    refuses("        S2R R0, SR_FROB ;\n        EXIT ;", "SR_FROB")
    refuses("        LDC R0, c[0x0][0x220] ;\n        EXIT ;", "arguments", arguments=words(1))
    refuses(".L_x_0:\n        BRA `(.L_x_0) ;", "without end")


# ---- estimates and tables ----


def cost(name, us, head=None, grid=(1, 1, 1), instructions=100.0, place=None):
    both = {card: us * 1e-6 for card in rates.BANDWIDTH}
    return costs.Cost(name, head or name, 1, grid, 32, 16, 1.0, 0, 0, instructions, both, both, place)


def test_estimates():
    launch = launches.Launch("s", "kernel", (132, 1, 1), (128, 1, 1), 1, 0, "")
    found = count.Total(132 * 4e6, 1e6, 0, 0, 0, 0, 0, {}, 1, {}, 0)

    def clocks(launch, instructions):
        return round(costs.issue_seconds(launch, found._replace(instructions=instructions), 4) * rates.CLOCK)

    must(clocks(launch, 132 * 4e6) == 1e6, "four warps of a block issue four instructions a clock")
    must(clocks(launch._replace(block=(32, 1, 1)), 132e6) == 1e6, "a warp issues one a clock")
    must(clocks(launch._replace(grid=(133, 1, 1)), 133 * 4e6) == 2e6, "blocks of a multiprocessor share its clocks")
    must(clocks(launch._replace(grid=(661, 1, 1)), 661 * 4e6) == 6e6, "the sixth block is a tail")
    must(rates.residents(128, 0, 128) == 4 and rates.residents(32, 100 * 1024, 128) == 2, "blocks of a multiprocessor")


def test_tables():
    grad = cost("scan_grad<float>", 100)
    case = [cost("scan_frames<float>", 50), cost("heads_rows", 30), grad, cost("fold_rows", 20, grad.name)]
    value = costs.bar_value(case, "H100", r"scan_(?!pack)", costs.FORWARD, "scan_grad")
    must(round(value) == 120, "the gradient with its folds, without the forward")
    before = costs.kept_form({"x": case})
    must(not list(costs.compare(before, before)), "the same is not the same")
    gone = costs.kept_form({"x": case[1:]})
    must("not launched any more" in next(costs.compare(gone, before)), "a kernel that is gone")
    must("not in the table" in next(costs.compare(before, gone)), "a new kernel")
    slower = costs.kept_form({"x": [case[0]._replace(instructions=106.0), *case[1:]]})
    must("executes 106" in next(costs.compare(slower, before)), "6 % more instructions")
    must([w for w, _ in costs.judge_bar("x", 11, 10, "", True)] == ["FAILED"], "a bar that is broken")
    must([w for w, _ in costs.judge_bar("x", 11, 10, "", False)] == ["NOT REACHED"], "a bar that is not reached")
    must([w for w, _ in costs.judge_bar("x", 9, 10, "", False)] == ["FAILED"], "a bar that is reached and not marked")
    must(not list(costs.judge_bar("x", 9, 10, "", True)), "a bar that holds")
    must(list(costs.judge_spills({"x": case}, {"heads_rows": 3, "not launched": 4}))[0].startswith("heads_rows"), "a spill")


# ---- what a card measured ----


def result(*rows, **machine):
    """Lines of a file of tools/gpu-check."""
    rows = [{"kind": "machine", "rehearsal": False, "quick": False, **machine},
            *({"kind": "row", "task": "x", "n": n, **row} for n, row in enumerate(rows, 1))]
    return "".join(json.dumps(row) + "\n" for row in rows)


def of_launch(case, launch, kernel, us):
    return {"subject": "launch", "case": case, "kernel": kernel, "launch": launch, "us": us}


def test_measured():
    case = [cost("scan", 50, place=0), cost("pack", 10, place=1), cost("fold", 30, place=1), cost("set", 5)]
    known = {"H200": {"x": {0: ("scan", 7e-6), 1: ("heads/a.b", 8e-6), 2: ("more", 1e-6)}}}
    found = costs.with_measured("x", case, known, ["scan", "heads"])
    must([round(r.estimate["H200"] * 1e6, 6) for r in found] == [7, 2, 6, 5], "of a call all launches by their estimates")
    must([r.estimate["H100"] for r in found] == [r.estimate["H100"] for r in case], "an H200 says nothing of an H100")
    must([r.measured for r in found] == [("H200",)] * 3 + [()], "what was measured is marked")
    form = costs.kept_form({"x": found})
    text = "\n".join(costs.table_of("x", form["x"]))
    must("| 50.0 | 7.0* |" in text and "| 5.0 | 5.0 |" in text, f"a star for what was measured:\n{text}")
    must(costs.with_measured("x", case, known, ["conv", "loss"]) == case, "times of other kernels are taken")
    told = list(costs.not_taken("x", known, ["conv", "heads"]))
    must(len(told) == 2 and "scan" in told[0] and "conv" in told[0] and "more" in told[1], f"not taken: {told}")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("nvidia-h100-2000-01-01", result(of_launch("x", 0, "a", 1), of_launch("y", 0, "b", 2))),
                           ("nvidia-h100-2000-01-02", result(of_launch("x", 1, "c", 3), {"subject": "tick"})),
                           ("nvidia-h100-2000-01-03", result(of_launch("x", 0, "d", 9), quick=True)),
                           ("rehearsal-h100-2000-01-04", result(of_launch("x", 0, "d", 9), rehearsal=True)),
                           ("amd-epyc", result(of_launch("x", 0, "d", 9)))):
            with open(os.path.join(folder, name + ".jsonl"), "w") as file:
                file.write(text)
        found = costs.measured(folder)
        must(found == {"H100": {"x": {1: ("c", 3e-6)}, "y": {0: ("b", 2e-6)}}, "H200": {}}, f"of a case the last file: {found}")


def test_times():
    """What the program writes that runs on a card fits what is counted."""
    program = os.path.join(build, "bin", "cuda_times")
    folder = os.path.join(build, "tests", "plugin-emulated")
    if not os.path.exists(program):
        return
    env = {**os.environ, "EXPHIL_BACKEND_DIR": folder, "EXPHIL_CUBLASLT": os.path.join(folder, "libfake_cublasLt.so")}
    told = subprocess.run([program, "--cases"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    must(told == launches.TIMED, f"cases that a card times: {told}")
    for case in ("update-tf32", "melee2-bf16", "step-16"):
        out = subprocess.run([program, "--json", "--smoke", case], env=env, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        with tempfile.TemporaryDirectory() as work:
            with open(os.path.join(work, "nvidia-h100-2000-01-01.jsonl"), "w") as file:
                file.write(result(*rows))
            known, listing = costs.measured(work), launches.listing(build, work, case, "small")
        candidates = listing.candidates
        must([row["kernel"] for row in rows] == candidates, f"{case}: {rows} for {candidates}")
        must(not list(costs.not_taken(case, known, candidates)), "nothing is left")
        counted = [cost(getattr(o, "kernel", "other"), 1, place=place) for o, place in zip(listing.counted(), listing.places)]
        found = costs.with_measured(case, counted, known, candidates)
        must(all(("H100" in row.measured) == (row.place is not None) for row in found), "launches without a time")
        took = sum(row.estimate["H100"] for row in found if row.measured)
        given = sum(row["us"] for row in rows if row["launch"] in listing.places)  # some calls find nothing to launch
        must(abs(took - given * 1e-6) < 1e-9, f"{case}: times do not add up")


# ---- launches ----


def test_transposed():
    """A product of a gradient in tf32 has two operands transposed first, or one; a copy is counted by its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        plain, chosen = (launches.listing(build, folder, case) for case in ("update-tf32", "update-tf32-transposed"))
        if plain is None:
            return
        products = [[o for o in one.counted() if isinstance(o, launches.Product)] for one in (plain, chosen)]
        must([(p.m, p.n, p.k) for p in products[0]] == [(p.m, p.n, p.k) for p in products[1]], "other products")
        must(all(p.transposed == (1, 0) for p in products[1]), "operands that do not lie along the sum")
        turned = sum(p.transposed != (1, 0) for p in products[0])
        copies = [o for o in chosen.counted() if isinstance(o, launches.Launch) and o.kernel == "transpose"]
        must(turned > 10 and len(copies) == turned, f"{len(copies)} launches of copies for {turned} products")
        must(not any(getattr(o, "kernel", "") == "transpose" for o in plain.counted()), "copies without a choice")
        must(any("cublaslt/" in c and c.count(".ta") == 2 for c in chosen.candidates), f"names: {chosen.candidates}")


def test_launches():
    with tempfile.TemporaryDirectory() as folder:
        listing = launches.listing(build, folder, "update-bf16")
        if listing is None:
            return
        found = [o for o in listing.counted() if isinstance(o, launches.Launch)]
        must(len(found) > 10 and not [o for o in found if "unknown" in o.kernel], "kernels without a name")
        must(any(isinstance(o, launches.Product) for o in listing.counted()), "no products")
        again = [o for o in launches.listing(build, folder, "update-bf16").counted() if isinstance(o, launches.Launch)]
        must([(o.kernel, o.grid) for o in again] == [(o.kernel, o.grid) for o in found], "two runs differ")


work = tempfile.TemporaryDirectory()
program = count.machine(work.name)
for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
print("ok")
