"""The summary that is made of the results at any time: goals and figures as Markdown."""
import os

from . import journal

RAN, TIME = "kernels that ran", "gpu__time_duration.sum"  # ns: ncu is asked for base units


def best(rows, subject, kind, shape=""):
    """(us, how) of the fastest way of PyTorch; None."""
    found = [r for r in rows if r["task"].startswith("PyTorch") and (r["subject"], r["type"]) == (subject, kind)
             and shape in r["shape"] and "us" in r]
    row = min(found, key=lambda r: r["us"], default=None)
    return (row["us"], row["how"]) if row else None


def kernel(rows, subject, shape, kind):
    for row in rows:
        if row["task"].startswith("times of") and (row["subject"], row.get("shape"), row.get("type")) == (subject, shape, kind):
            return row["us"]
    return None


def verdict(value, bar, low=True):
    return "" if value is None or not bar else "met" if (value <= bar if low else value >= bar) else "MISSED"


def figure(value, unit="", digits=3):
    return "not measured" if value is None else f"{value:.{digits}g}{unit}"


class Report:
    """judged: figures are held against their goals, which small shapes are not."""

    def __init__(self, judged):
        self.lines, self.missed, self.met, self.judged = [], 0, 0, judged

    def head(self, title, *columns):
        self.lines += ["", f"## {title}", "", "| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]

    def row(self, *cells, said=""):
        said = said if self.judged else ""
        self.met += said == "met"
        self.missed += said == "MISSED"
        self.lines.append("| " + " | ".join(str(c) for c in (*cells, said)) + " |")


def table_updates(report, rows):
    report.head("Training step: 288 -> 256, two Mamba blocks, B 256, T 60", "type", "ours, ms", "goal, ms", "PyTorch's best, ms",
                "times faster", "goal")
    updates = [row for row in rows if row["subject"] == "update" and "by_hand_ms" in row]
    for row in updates:
        peer = best(rows, "step", row["type"])
        times = peer[0] * 1e-3 / row["ms"] if peer else None
        said = "MISSED" if times is not None and times < 3 else verdict(row["ms"], row["bar_ms"])
        shown = f"{peer[0] * 1e-3:.3g} ({peer[1]})" if peer else "not measured"
        report.row(row["type"], figure(row["ms"]), row["bar_ms"] or "-", shown, f"{figure(times, digits=2)}, at least 3", said=said)
    report.head("Feeding and memory", "what", "figure", "goal", "")
    for row in updates:
        more = row["ms"] / row["by_hand_ms"] - 1
        report.row(f"prefetcher against one batch by hand, {row['type']}", f"{100 * more:+.1f} %", "3 %", said=verdict(more, 0.03))
    for row in rows:
        if row["subject"] == "memory" and "driver_allocations_after_the_third" in row:
            asked = row["driver_allocations_after_the_third"]
            report.row(f"allocations of the driver after the third of {row['updates']} updates", f"{asked:.0f}", "0",
                       said="met" if asked <= 0 else "MISSED")


def table_steps(report, rows):
    report.head("Steps of a game", "players", "us", "of hundred the slowest", "goal, us", "")
    for row in rows:
        if row["subject"] == "tick":
            report.row(row["streams"], figure(row["us"], digits=4), figure(row["p99_us"], digits=4), row["bar_us"] or "-",
                       said=verdict(row["us"], row["bar_us"]))


def table_taken(report, rows):
    """Which kernel an operation of an update was given, and what the library said when it could not."""
    report.head("Operations of an update, the kernel that was chosen", "type", "operation", "kernel", "us", "")
    for row in rows:
        if row["subject"] == "operations of an update":
            times = f"{figure(row['us'], digits=4)} ({row['how']})"
            report.row(row["task"].rpartition(" ")[2], row["operation"], row["kernel"], times)
    refused = [row for row in rows if row["subject"] == "refusal"]
    report.head("Refusals of cuBLASLt", "product", "status", "said", "in tasks", "")
    for text, row in {row["text"]: row for row in refused}.items():
        report.row(row["shape"] or "?", row["status"] or "?", text, sum(other["text"] == text for other in refused))
    if not refused:
        report.row("none was logged", "", "", "")


def table_launches(report, rows):
    """What tools/cuda-gate takes in place of its estimates."""
    report.head("Kernels of updates and steps", "case", "kernel", "times", "us in all", "")
    found = {}
    for row in rows:
        if row["subject"] == "launch":
            found.setdefault((row["case"], row["kernel"]), []).append(row["us"])
    for (case, kernel), times in found.items():
        report.row(case, kernel, len(times), figure(sum(times), digits=4))


def table_kernels(report, rows):
    rate = next((row["gb_s"] for row in rows if row["subject"] == "copy"), None)
    report.head(f"Operations; a copy moves {figure(rate, ' GB/s', 4)}", "operation", "B x T x width x more", "type", "kernel", "us",
                "of a copy's rate", "goal", "")
    for row in rows:
        if "share_of_copy" not in row:
            continue
        goal = f"{row['bar_us']:g} us" if "bar_us" in row else f"{100 * row['bar_share']:.0f} %" if "bar_share" in row else "-"
        said = {True: "met", False: "MISSED"}.get(row.get("met"), "")
        report.row(row["subject"], " x ".join(map(str, row["shape"])), row["type"], row["kernel"], figure(row["us"], digits=4),
                   f"{100 * row['share_of_copy']:.1f} %", goal, said=said)


def both(forward, backward):
    return None if forward is None or backward is None else forward + backward


def peer_cases(rows, kind):
    """(subject, shape as the peers say it, our us). Recurrent layers with the product that feeds them: PyTorch's has it inside."""
    pairs = [("attention", [256, 60, 60, 0], "256 x 60"), ("attention", [256, 1024, 128, 0], "256 x 1024"),
             ("scan", [256, 60, 512, 16], "256 x 60 "), ("scan", [256, 1024, 1536, 16], "256 x 1024 ")]
    for name, shape, text in pairs:
        forward, back = kernel(rows, name, shape, kind), kernel(rows, name + "_grad", shape, kind)
        yield from ((name, text, forward), (name + " both", text, both(forward, back)))
    for name, code, layers in (("lstm", 0, 2), ("gru", 1, 1)):
        for fed, ours, subject in ((("linear",), (name,), name),
                                   (("linear", "linear_grad"), (name, name + "_grad"), name + " both")):
            parts = [kernel(rows, op, [15360, 1, 256, 1024], kind) for op in fed]
            parts += [kernel(rows, op, [256, 60, 256, code], kind) for op in ours]
            yield subject, "B=256", None if None in parts else layers * sum(parts)


def table_peers(report, rows):
    report.head("Beside PyTorch's best", "what", "type", "ours, us", "PyTorch, us", "times faster", "")
    for kind in ("f32", "tf32", "bf16"):
        for subject, shape, ours in peer_cases(rows, kind):
            peer = best(rows, subject, kind, shape)
            if ours is None and peer is None:
                continue
            times = peer[0] / ours if peer and ours else None
            shown = f"{peer[0]:.4g} ({peer[1]})" if peer else "not measured"
            report.row(f"{subject}, {shape.strip()}", kind, figure(ours, digits=4), shown, figure(times, digits=2),
                       said=verdict(times, 1, low=False))


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def table_ran(report, rows):
    """What a profiler saw run, whatever was said to be chosen."""
    report.head("Kernels that ran in updates, as ncu saw them", "type", "kernel", "times", "us in all", "")
    ran = {}
    for row in rows:
        if row["subject"] == "counters" and row["task"].startswith(RAN):
            ran.setdefault((row["task"].rpartition(" ")[2], row["kernel"]), []).append(number(row["metrics"].get(TIME, "0")))
    for (kind, name), times in sorted(ran.items(), key=lambda item: (item[0][0], -sum(item[1]))):
        report.row(kind, f"`{name}`", len(times), figure(sum(times) * 1e-3, digits=4))


def table_counters(report, rows):
    found = [row for row in rows if row["subject"] == "counters" and not row["task"].startswith(RAN)]
    names = sorted({name for row in found for name in row["metrics"]})
    report.head("Counters", "task", "kernel", *names, "")
    for row in found:
        report.row(row["task"], row["kernel"], *(row["metrics"].get(name, "") for name in names))


def top_of(machine, said, report):
    title = f"# {machine['card']}, {machine['date']}"
    if machine["rehearsal"]:
        title = f"# REHEARSAL on the emulated GPU, {machine['date']}: no figure here is of a card"
    facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items()
                      if key not in ("kind", "card", "date", "rehearsal", "quick"))
    ends = [row["said"] for row in said.values()]
    lines = [title, "", facts + ".", "", f"{report.met} goals met, {report.missed} missed. Tasks: {journal.counts(ends)}."
             + (" Small shapes: these figures say only that it runs." if machine["quick"] else ""), ""]
    lines += [f"- FAILED {task}: {row['why']}" for task, row in said.items() if row["said"] == "failed"]
    return lines + [f"- {row['said']}: {task}: {row['why']}" for task, row in said.items()
                    if row["said"] not in ("passed", "failed")]


def table_tasks(report, said):
    report.head("Tasks", "stage", "task", "said", "seconds", "products", "")
    for task, row in said.items():
        report.row(row["stage"], task, row["said"], row.get("seconds", "-"), row.get("products") or "-")


def text_of(rows):
    machine, said, report = rows[0], journal.said_of(rows), Report(not rows[0]["quick"])
    found = [row for row in rows if row["kind"] in ("row", "log")]
    for table in (table_updates, table_steps, table_taken, table_launches, table_ran, table_kernels, table_peers, table_counters):
        table(report, found)
    table_tasks(report, said)
    return "\n".join(top_of(machine, said, report) + report.lines) + "\n"


def write(path, rows):
    """Whole or not at all."""
    try:
        text = text_of(rows)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise journal.Broken(f"{path}: a line of the results lacks a figure or has a wrong one: {error!r}") from None
    try:
        with open(path + ".part", "w") as file:
            file.write(text)
        os.replace(path + ".part", path)
    except OSError:
        if os.path.isfile(path + ".part"):
            os.remove(path + ".part")
        raise
