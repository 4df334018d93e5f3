#!/usr/bin/env python3
"""Joins the reports of one run of tools/bench into bench/results/<machine>-<date>.json, a row a line, and a table .md, and
puts the pictures beside them. The figures in doc/performance.md and doc/kernels.md, between their marks, are taken from the
same run.

Usage: record.py FOLDER_OF_REPORTS RESULTS [DOC]
"""
import glob
import json
import os
import re
import shutil
import sys


def head(*names):
    """The first two lines of a table."""
    return ["| %s |" % " | ".join(names), "|" + " --- |" * len(names)]


def unit_of(ns):
    for least, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= least:
            return "%.4g %s" % (ns / least, name)
    return "%.4g ns" % ns


def rate_of(row):
    if not row.get("items"):
        return ""
    if row["item"] == "element":
        return "%.4f ns each" % (row["p50_ns"] / row["items"])
    rate, scale = row["items"] / row["p50_ns"] * 1e9, ""
    for name in ("k", "M", "G", "T"):
        if rate >= 1000:
            rate, scale = rate / 1000, name
    return "%.4g %s%s/s" % (rate, scale, {"flop": "FLOP", "byte": "B"}.get(row["item"], row["item"]))


def bars_of(row):
    out = []
    if "bar" in row:
        out.append("<= %s: %s (%.2f of it)" % (row["bar"], "met" if row["met"] else "**missed**", row["p50_ns"] / row["bar_ns"]))
    if "tail_bar" in row:
        out.append("p99.9 <= %g x p50: %s (%.1f; of the floor %.1f)" % (
            row["tail_bar"], "met" if row["tail_met"] else "**missed**", row["tail"], row.get("floor_tail", 0)))
    return "; ".join(out)


def table_of(report):
    lines = head("what", "how", "p50", "quartiles", "p99.9", "rate", "share of its floor", "bar")
    for row in report["rows"]:
        share = "%.0f %% of %s" % (100 * row["share_of_floor"], row["floor_of"]) if "share_of_floor" in row else ""
        lines.append("| %s: %s | %s | %s | %s .. %s | %s | %s | %s | %s |" % (
            row["subject"], row["what"], row["how"], unit_of(row["p50_ns"]), unit_of(row["p25_ns"]), unit_of(row["p75_ns"]),
            unit_of(row["p999_ns"]), rate_of(row), share, bars_of(row)))
    for name, fact in report.get("facts", {}).items():
        lines.append("| %s | | %.4g %s | | | | | |" % (name, fact["value"], fact["unit"]))
    lines += [""] + ["Note: %s" % note for note in report.get("notes", [])]
    return lines


def peers_table(report):
    lines = ["Versions: %s." % ", ".join("%s %s" % pair for pair in report["versions"].items()), "",
             *head("case", "who", "p50", "quartiles", "p99", "p99.9", "ours / theirs", "bar")]
    for row in report["rows"]:
        ours = row["parties"][0]["p50_ns"]
        for party in row["parties"]:
            first = party is row["parties"][0]
            bars = "; ".join("<= %.3g x %s: %s (%.3f)" % (b["at_most"], b["of"], "met" if b["met"] else "**missed**", b["ratio"])
                             for b in row["bars"]) if first else ""
            lines.append("| %s | %s | %s | %s .. %s | %s | %s | %s | %s |" % (
                row["case"] if first else "", party["who"], unit_of(party["p50_ns"]), unit_of(party["p25_ns"]),
                unit_of(party["p75_ns"]), unit_of(party["p99_ns"]), unit_of(party["p999_ns"]),
                "" if first else "%.3f" % (ours / party["p50_ns"]), bars))
    return lines


def heading(machine, times, floors):
    caches = "caches unknown"
    if machine["caches"] != "unknown":
        caches = ", ".join("L%s %s %s" % (c["level"], c["type"].lower(), c["size"]) for c in machine["caches"])
    lines = ["%s, %d cores, %s; %s." % (machine["processor"], machine["cores"], machine["isa"], caches),
             "%s, %s, governor %s. %s. libexphil %s." % (machine["system"], machine["kernel"], machine["governor"],
                                                          machine["compiler"], machine["library"]),
             "Pinned to a core: %s; real-time priority: %s. Times of the reports, UTC: %s." % (
                 *("yes" if machine[k] else "no" for k in ("pinned", "fifo")), times)]
    if floors:
        lines += ["", "One core: f32 %.4g GFLOP/s (AVX2 %.4g), bf16 %.4g, int8 %.4g GOP/s, e^x %.3g ns; %d threads f32 %.4g. "
                  "Reading: %s." % (
            floors["fma_gflops"], floors["fma_avx2_gflops"], floors["bf16_gflops"], floors["int8_gops"],
            1 / floors["exponentials_per_ns"] if floors["exponentials_per_ns"] else 0, floors["threads"],
            floors["fma_threads_gflops"],
            ", ".join("%.4g KiB %.0f GB/s" % (r["bytes"] / 1024, r["gb_per_s"]) for r in floors["read"]))]
    return lines


# ---- figures in the documents --------------------------------------------------------------------------------

FRAME_NS = 1e9 / 60


def of(report, subject):
    return [row for row in report["rows"] if row["subject"] == subject]


def play_figures(report):
    """One line per policy and type: warm, and at 60 Hz beside a busy neighbour with its share of a frame."""
    lines = head("policy", "weights", "back to back", "at 60 Hz, busy neighbour", "of a frame")
    paced = {(row["what"], row["how"]): row for row in of(report, "decision at 60 Hz, busy neighbour")}
    for row in of(report, "decision, warm"):
        game = paced.get((row["what"], row["how"]))
        if game:
            lines.append("| `%s` | %s | %s | %s | %.2f %% |" % (
                row["what"], row["how"], unit_of(row["p50_ns"]), unit_of(game["p50_ns"]), 100 * game["p50_ns"] / FRAME_NS))
    return lines


def player_figures(report):
    """Time per player of the policies that are measured for many."""
    found = {}
    for row in of(report, "decisions of many players"):
        policy, count = re.match(r"(.*), (\d+) players", row["what"]).groups()
        found.setdefault((policy, row["how"]), {})[int(count)] = row["p50_ns"] / int(count)
    counts = sorted({count for times in found.values() for count in times})
    lines = head("policy", "weights", *("%d players" % c if c > 1 else "1 player" for c in counts))
    for (policy, how), times in found.items():
        lines.append("| `%s` | %s | %s |" % (policy, how, " | ".join(unit_of(times[c]) if c in times else "" for c in counts)))
    return lines


def training_figures(report):
    lines = head("update", "threads", "time", "share of its floor")
    for row in report["rows"]:
        if "share_of_floor" in row:
            lines.append("| %s: %s | %s | %s | %.0f %% of %s |" % (row["subject"], row["what"], row["how"], unit_of(row["p50_ns"]),
                                                              100 * row["share_of_floor"], row["floor_of"]))
    return lines


def kernel_figures(report):
    lines = head("operation", "shape", "time", "rate", "share of its floor")
    for row in report["rows"]:
        if "share_of_floor" in row:
            lines.append("| %s | %s | %s | %s | %.0f %% of %s |" % (
                row["subject"], row["what"], unit_of(row["p50_ns"]), rate_of(row), 100 * row["share_of_floor"], row["floor_of"]))
    return lines


def peer_figures(report):
    names = [n for n in ("onnxruntime", "onednn", "torch") if any(p["who"] == n for r in report["rows"] for p in r["parties"])]
    lines = head("case", "libexphil", *names)
    for row in report["rows"]:
        times = {party["who"]: party["p50_ns"] for party in row["parties"]}
        ours = row["parties"][0]["p50_ns"]
        cells = ["%s (%.2f x)" % (unit_of(times[n]), times[n] / ours) if n in times else "" for n in names]
        lines.append("| %s | %s | %s |" % (row["case"], unit_of(ours), " | ".join(cells)))
    return lines


def fill(path, figures, source):
    """Puts tables between the marks '<!-- figures: NAME -->' and '<!-- end -->'."""
    with open(path) as file:
        text = file.read()
    for name, lines in figures.items():
        mark = "<!-- figures: %s -->" % name
        before, found, after = text.partition(mark)
        if not found or "<!-- end -->" not in after:
            continue
        after = after[after.index("<!-- end -->"):]
        text = before + mark + "\n" + "\n".join(lines + ["", "From `%s`." % source]) + "\n\n" + after
    with open(path, "w") as file:
        file.write(text)


FIGURES = [("play", "step", play_figures), ("players", "step", player_figures),
           ("training", "train", training_figures), ("kernels", "kernels", kernel_figures),
           ("peers", "peers", peer_figures)]


def fill_documents(doc, reports, source):
    figures = {name: lines_of(reports[subject]) for name, subject, lines_of in FIGURES if subject in reports}
    for name in ("performance.md", "kernels.md"):
        fill(os.path.join(doc, name), figures, source)


def json_of(reports):
    """JSON with a line for each row, and for each other thing that a report holds."""
    texts = []
    for subject, report in reports.items():
        lines = []
        for key, value in report.items():
            text = json.dumps(value)
            if key == "rows":
                text = "[\n   %s\n  ]" % ",\n   ".join(map(json.dumps, value))
            lines.append('  "%s": %s' % (key, text))
        texts.append(' "%s": {\n%s\n }' % (subject, ",\n".join(lines)))
    return "{\n%s\n}\n" % ",\n".join(texts)


def main():
    folder, results = sys.argv[1:3]
    reports = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as file:
            report = json.load(file)
        reports[report["bench"]] = report
    if not reports:
        sys.exit("record.py: no report in " + folder)
    first = next(iter(reports.values()))
    machine = first["machine"]
    processor = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(r\)|\(tm\)|cpu|processor", "", machine["processor"].lower())).strip("-")
    name = "%s-%s-%s" % (processor, machine["isa"], machine["date"][:10])
    os.makedirs(results, exist_ok=True)
    with open(os.path.join(results, name + ".json"), "w") as file:
        file.write(json_of(reports))
    floors = next((r["floors"] for r in reports.values() if r.get("floors")), None)
    times = ", ".join("%s %s" % (subject, report["machine"]["date"][11:16]) for subject, report in reports.items())
    lines = ["# " + name, ""] + heading(machine, times, floors)
    for subject, report in reports.items():
        lines += ["", "## " + subject, ""] + (peers_table(report) if subject == "peers" else table_of(report))
        picture = os.path.join(folder, subject + ".svg")
        if os.path.exists(picture):
            shutil.copy(picture, os.path.join(results, "%s-%s.svg" % (name, subject)))
            lines += ["", "![%s](%s-%s.svg)" % (subject, name, subject)]
    with open(os.path.join(results, name + ".md"), "w") as file:
        file.write("\n".join(lines) + "\n")
    print("recorded: %s" % os.path.join(results, name + ".md"))
    if len(sys.argv) > 3:
        fill_documents(sys.argv[3], reports, "bench/results/%s.md" % name)


if __name__ == "__main__":
    main()
