"""What an update and a step cost by count: of each launch the largest of bytes / (0.9 of the bandwidth), operations / (0.7 of the
peak) and instructions at full issue with the barriers of clusters, and 2.7 us for the launch; products of cuBLASLt by bytes and
operations. Rates: rates.py.

Instructions at full issue: the busiest multiprocessor gives four of them a clock, but no warp more than one; blocks come as
many at a time as registers and shared memory allow, and the last of them may leave it half idle.
"""
import collections
import json
import math
import os
import re

from . import rates
from .build import TOP
from .count import warps_of
from .launches import FLOAT, Copy, Launch, Product, Set

KEPT = os.path.join(TOP, "tests", "cuda", "costs.json")
RESULTS = os.path.join(TOP, "bench", "results")
PAGE = os.path.join(TOP, "doc", "cuda.md")
BEGIN, END = "<!-- costs: tools/cuda-gate --update-table -->", "<!-- end of costs -->"
CHANGED = 0.05

# A row of the table: launches of one kernel with one grid. head: the kernel whose partial sums a fold adds; place: the call of
# table A that it belongs to; measured: the cards whose estimate was.
Cost = collections.namedtuple(
    "Cost", "name head launches grid threads registers waves bytes operations instructions floor estimate place measured",
    defaults=(None, ()))


class Facts:
    """Registers and static shared memory of the kernels."""

    def __init__(self, kernels):
        self.kernels = kernels

    def residents(self, launch):
        facts = self.kernels[launch.kernel]
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        return rates.residents(facts["registers"], facts["shared"] + launch.shared, threads)


def blocks_of(launch):
    return launch.grid[0] * launch.grid[1] * launch.grid[2]


def issue_seconds(launch, total, residents):
    blocks, warps = blocks_of(launch), warps_of(launch)
    each, busiest = total.instructions / blocks, -(-blocks // rates.MULTIPROCESSORS)
    whole, rest = divmod(busiest, residents)
    clocks = whole * residents * each / min(rates.SCHEDULERS, residents * warps)
    clocks += rest * each / min(rates.SCHEDULERS, max(1, rest * warps))
    return max(clocks, total.longest) / rates.CLOCK


def operation_seconds(operations, blocks):
    """At the peak, spread over multiprocessors as blocks are."""
    uneven = -(-blocks // rates.MULTIPROCESSORS) * rates.MULTIPROCESSORS / blocks
    return max([count * uneven / rates.PEAK[kind] for kind, count in operations.items()], default=0.0)


def launch_cost(launch, total, facts, head):
    residents, blocks = facts.residents(launch), blocks_of(launch)
    waves = blocks / (residents * rates.MULTIPROCESSORS)
    worked = operation_seconds(total.operations, blocks)
    issued = issue_seconds(launch, total, residents) + total.meetings * math.ceil(waves) * rates.MEETING
    floor = {card: max(total.bytes / rate, worked) for card, rate in rates.BANDWIDTH.items()}
    estimate = {card: max(total.bytes / rate / rates.OF_BANDWIDTH, worked / rates.OF_PEAK, issued) + rates.LAUNCH
                for card, rate in rates.BANDWIDTH.items()}
    work = sum(n for kind, n in total.operations.items() if kind != "mufu")
    return Cost(launch.kernel, head, 1, launch.grid, warps_of(launch) * 32, facts.kernels[launch.kernel]["registers"], waves,
                total.bytes, work, total.instructions, floor, estimate)


def product_name(p):
    return f"cuBLASLt {p.m} x {p.n} x {p.k}"


def product_cost(p):
    wide, result = (4 if p.type == FLOAT else 2), (4 if p.result == FLOAT else 2)
    moved = wide * (p.m * p.k + p.k * p.n) + result * p.m * p.n * (2 if p.adds else 1) + (result * p.m if p.bias else 0)
    work = 2.0 * p.m * p.n * p.k
    kind = "half" if p.type != FLOAT else "f32" if p.compute == 68 else "tf32"
    floor = {card: max(moved / rate, work / rates.PEAK[kind]) for card, rate in rates.BANDWIDTH.items()}
    estimate = {card: max(moved / rate / rates.OF_BANDWIDTH, work / rates.PEAK[kind] / rates.OF_PEAK) + rates.LAUNCH
                for card, rate in rates.BANDWIDTH.items()}
    name = product_name(p)
    return Cost(name, name, 1, (0, 0, 0), 0, 0, 0, moved, work, 0, floor, estimate)


def move_cost(operation):
    """Sets, and copies of the stream that also launches; others take place beside it."""
    linked = isinstance(operation, Copy) and operation.kind != "device"
    name = "set" if isinstance(operation, Set) else f"copy {operation.kind}"
    floor = {card: operation.bytes / (rates.LINK if linked else rate) for card, rate in rates.BANDWIDTH.items()}
    estimate = {card: seconds / (1 if linked else rates.OF_BANDWIDTH) + rates.LAUNCH for card, seconds in floor.items()}
    return Cost(name, name, 1, (0, 0, 0), 0, 0, 0, operation.bytes, 0, 0, floor, estimate)


def costs_of(listing, totals, facts):
    """In order, one for each operation; copies on other streams are left out."""
    operations, found, head = listing.counted(), [], None
    main = next((o.stream for o in operations if isinstance(o, Launch)), None)
    waiting = iter(totals)
    for operation, place in zip(operations, listing.places):
        if isinstance(operation, Launch):
            if not operation.kernel.startswith("fold_"):
                head = operation.kernel
            cost = launch_cost(operation, next(waiting), facts, head or operation.kernel)
        elif isinstance(operation, Product):
            cost = product_cost(operation)
        elif operation.stream == main:
            cost = move_cost(operation)
        else:
            continue
        found.append(cost._replace(place=place))
    return found


def added(a, b):
    return {card: a[card] + b[card] for card in a}


def grouped(costs):
    rows = {}
    for cost in costs:
        key = (cost.name, cost.grid)
        known = rows.get(key)
        rows[key] = cost if known is None else known._replace(
            launches=known.launches + 1, bytes=known.bytes + cost.bytes, operations=known.operations + cost.operations,
            instructions=known.instructions + cost.instructions, floor=added(known.floor, cost.floor),
            estimate=added(known.estimate, cost.estimate), measured=tuple(sorted({*known.measured, *cost.measured})))
    return list(rows.values())


# ---- measurements of a card ----


def rows_of(path):
    """{case: {launch: (kernel, seconds)}} of the results of a check; {} where its sizes were small."""
    found = collections.defaultdict(dict)
    with open(path) as file:
        for line in file:
            row = json.loads(line)
            if row.get("quick") or row.get("rehearsal"):
                return {}
            if row.get("subject") == "launch":
                found[row["case"]][row["launch"]] = row["kernel"], row["us"] * 1e-6
    return found


def measured(folder=RESULTS):
    """{card: {case: {launch: (kernel, seconds)}}} of <card>-*.jsonl: rows of tools/gpu-check with subject "launch". Of a case those
    of the last file that has any."""
    found = {card: {} for card in rates.BANDWIDTH}
    for name in sorted(os.listdir(folder)):
        card = next((card for card in rates.BANDWIDTH if card.lower() in name.lower()), None)
        if card and name.endswith(".jsonl"):
            found[card].update(rows_of(os.path.join(folder, name)))
    return found


def same_kernel(kernel, candidate):
    """Behind a / stand the algorithms that were chosen for its products."""
    return kernel.partition("/")[0] == candidate.partition("/")[0]


def with_measured(case, rows, known, candidates):
    """What was measured of a call, over all its launches, in place of their estimates, where that is what the case calls there."""
    for card, cases in known.items():
        times = {place: seconds for place, (kernel, seconds) in cases.get(case, {}).items()
                 if place < len(candidates) and same_kernel(kernel, candidates[place])}
        shares = collections.Counter()
        for row in rows:
            shares[row.place] += row.estimate[card]
        rows = [row._replace(estimate={**row.estimate, card: times[row.place] * row.estimate[card] / shares[row.place]},
                             measured=(*row.measured, card)) if row.place in times else row for row in rows]
    return rows


def not_taken(case, known, candidates):
    """What was measured and is not what the case calls."""
    for card, cases in known.items():
        for place, (kernel, _) in sorted(cases.get(case, {}).items()):
            called = candidates[place] if place < len(candidates) else "nothing"
            if not same_kernel(kernel, called):
                yield f"{case}, call {place}: {kernel} was measured on the {card}, {called} is called"


# ---- bars ----

# What must be shown: case, card, kernels (None: all; folds count to what they fold), behind the first of which kernels, us, for
# how many of them (a kernel: of its launches), reached. A bar that is not reached is said at every run; reached is set when it
# is, so that it holds.
FORWARD = r"heads|loss"  # ends with it
BARS = [
    ("update-tf32", "H200", None, None, 1300, 1, True),
    ("update-bf16", "H200", None, None, 900, 1, True),
    ("update-tf32", "H100", r"scan_(?!pack)", FORWARD, 180, "scan_grad", True),
    ("update-bf16", "H100", r"scan_(?!pack)", FORWARD, 180, "scan_grad", True),
    ("update-tf32", "H100", r"heads|loss", None, 60, 1, True),
    ("update-bf16", "H100", r"heads|loss", None, 60, 1, True),
    ("update-f32", "H100", r"heads|loss", None, 260, 1, True),
    ("learn-tf32", "H100", r"heads_", None, 90, 1, True),
    ("learn-bf16", "H100", r"heads_", None, 90, 1, True),
    ("learn-tf32", "H100", r"policy_", None, 100, 1, True),
    ("learn-bf16", "H100", r"policy_", None, 100, 1, True),
    ("update-tf32", "H100", r"linear_dbias", None, 10, 1, True),
    ("update-bf16", "H100", r"linear_dbias", None, 10, 1, True),
    ("melee2-tf32", "H100", r"embed_(grad|fold)", None, 20, 1, True),
    ("melee2-bf16", "H100", r"embed_(grad|fold)", None, 20, 1, True),
    ("step-1", "H100", None, None, 25, 1, True),
    ("step-256", "H100", None, None, 90, 1, True),
]
FEWEST = [("step-1", 2, True)]  # kernels and products of a case


def bar_value(costs, card, pattern, behind, per):
    if behind:
        costs = costs[next((i for i, c in enumerate(costs) if re.match(behind, c.name)), 0):]
    chosen = [c for c in costs if pattern is None or re.match(pattern, c.head)]
    count = 1 if per == 1 else max(1, sum(c.name.startswith(per) for c in chosen))
    return sum(c.estimate[card] for c in chosen) * 1e6 / count


def launched(costs):
    return sum(c.launches for c in costs if not re.match(r"set$|copy ", c.name))


def judge_bar(what, value, bar, unit, reached):
    if value > bar:
        yield ("FAILED" if reached else "NOT REACHED"), f"{what}: {value:.1f}{unit}, at most {bar}{unit}"
    elif not reached:
        yield "FAILED", f"{what}: {value:.1f}{unit} is within {bar}{unit}: mark the bar as reached in tools/cuda_gate/costs.py"


def judge_bars(by_case):
    for case, card, pattern, behind, bar, per, reached in BARS:
        if case in by_case:
            what = f"{case} on the {card}" + (f", {pattern}" if pattern else "")
            yield from judge_bar(what, bar_value(by_case[case], card, pattern, behind, per), bar, " us", reached)
    for case, bar, reached in FEWEST:
        if case in by_case:
            yield from judge_bar(f"launches of {case}", launched(by_case[case]), bar, "", reached)


def judge_spills(by_case, spilled):
    for kernel in sorted({c.name for found in by_case.values() for c in found}):
        if spilled.get(kernel):
            yield f"{kernel} is launched by an update or a step and spills in a loop, {spilled[kernel]} instructions"


# ---- what is kept ----


def kept_form(by_case):
    """{case: {"sum": {card: us}, "rows": [...]}}"""
    return {case: {"sum": {card: round(sum(c.estimate[card] for c in costs) * 1e6, 1) for card in rates.BANDWIDTH},
                   "rows": [row_form(row) for row in grouped(costs)]} for case, costs in by_case.items()}


def row_form(row):
    return {"kernel": row.name, "grid": list(row.grid), "launches": row.launches, "registers": row.registers,
            "waves": round(row.waves, 2), "bytes": round(row.bytes), "operations": round(row.operations),
            "instructions": round(row.instructions), "floor_us": micro(row.floor), "estimate_us": micro(row.estimate),
            **({"measured": list(row.measured)} if row.measured else {})}


def micro(seconds):
    return {card: round(value * 1e6, 2) for card, value in seconds.items()}


def read_kept():
    try:
        with open(KEPT) as file:
            return json.load(file)
    except OSError:
        return {}


def write_kept(form):
    with open(KEPT, "w") as file:
        json.dump(form, file, indent=1)
        file.write("\n")


def launches_of(form):
    """{(kernel, grid): launches}"""
    return {(row["kernel"], tuple(row["grid"])): row["launches"] for row in form["rows"]}


def compare(now, before):
    """What is not as the table says."""
    for case, form in now.items():
        known = {(row["kernel"], tuple(row["grid"])): row for row in before.get(case, {"rows": []})["rows"]}
        rows = {(row["kernel"], tuple(row["grid"])): row for row in form["rows"]}
        for key in known.keys() - rows.keys():
            yield f"{case}: {key[0]} with grid {key[1]} is in the table of costs, but is not launched any more"
        for key, row in rows.items():
            if key not in known:
                yield f"{case}: {key[0]} with grid {key[1]} is not in the table of costs"
            elif known[key]["launches"] != row["launches"]:
                yield f"{case}: {key[0]} is launched {row['launches']} times, before: {known[key]['launches']}"
            elif abs(row["instructions"] - known[key]["instructions"]) > CHANGED * known[key]["instructions"]:
                yield f"{case}: {key[0]} executes {row['instructions']} instructions, before: {known[key]['instructions']}"


def compare_launches(case, listing, form):
    """The same without counting: kernels with their grids, and products."""
    now = collections.Counter()
    for operation in listing.counted():
        if isinstance(operation, Launch):
            now[operation.kernel, operation.grid] += 1
        elif isinstance(operation, Product):
            now[product_name(operation), (0, 0, 0)] += 1
    before = {key: n for key, n in launches_of(form).items() if not re.match(r"set$|copy ", key[0])}
    for key in sorted(now.keys() | before.keys()):
        if now[key] != before.get(key, 0):
            yield f"{case}: {key[0]} with grid {key[1]} is launched {now[key]} times, in the table of costs {before.get(key, 0)}"


# ---- the page ----

HEADER = ("| kernel | launches | blocks | waves | registers | MB | MFLOP | M instr. | floor | H100 | H200 |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")


def table_of(case, form):
    yield f"\n**{case}**: {form['sum']['H100']:.0f} us on an H100, {form['sum']['H200']:.0f} us on an H200\n"
    yield HEADER
    for row in sorted(form["rows"], key=lambda row: -row["estimate_us"]["H100"]):
        blocks = row["grid"][0] * row["grid"][1] * row["grid"][2]
        own = [blocks, f"{row['waves']:.1f}", row["registers"]] if blocks else ["", "", ""]
        cells = [f"`{row['kernel']}`", row["launches"], *own, f"{row['bytes'] * 1e-6:.2f}", f"{row['operations'] * 1e-6:.0f}",
                 f"{row['instructions'] * 1e-6:.2f}", f"{row['floor_us']['H100']:.1f}",
                 figure(row, "H100"), figure(row, "H200")]
        yield "| " + " | ".join(str(cell) for cell in cells) + " |"


def figure(row, card):
    return f"{row['estimate_us'][card]:.1f}" + ("*" if card in row.get("measured", ()) else "")


def page_of(form, judged):
    lines = [BEGIN]
    lines += [f"- {word.lower()}: {what}" for word, what in judged if word == "NOT REACHED"]
    for case, one in form.items():
        lines += table_of(case, one)
    return "\n".join(lines) + "\n" + END


def write_page(form, judged):
    with open(PAGE) as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    behind = rest.partition(END)[2]
    if not rest or END not in text:
        raise SystemExit(f"{PAGE} has no place for the costs: {BEGIN} ... {END}")
    with open(PAGE, "w") as file:
        file.write(before + page_of(form, judged) + behind)
