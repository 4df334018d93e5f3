"""What programs say, as rows: JSON lines, cases of cmocka, summaries of compute-sanitizer, tables of ncu, the library's log."""
import csv
import io
import json
import re

# As the library words it: which products it takes, and every refusal.
TAKES = re.compile(r"cuda(?::\d+)?: products by cuBLASLt (\S+)")
OWN = re.compile(r"cuda(?::\d+)?: .*products by own kernels")
REFUSAL = re.compile(r"cuda(?::\d+)?: .*cublaslt.*(refus|cannot|not support|unsupported|no algorithm|fail).*", re.I)
SHAPE = re.compile(r"(?:(\w+) of )?(\d+) rows, (\d+) to (\d+)")
STATUS = re.compile(r"status (-?\d+(?: \(.+?\))?)")


class Log:
    """The library's words about its products: taken is "cublaslt <version>", "own", or None where nothing was said."""

    def __init__(self):
        self.taken, self.refusals = None, []

    def take(self, line):
        """A new refusal as a row, else None."""
        if found := TAKES.search(line):
            self.taken = "cublaslt " + found[1]
        elif OWN.search(line):
            self.taken = "own"
        elif found := REFUSAL.search(line):
            if found[0] not in self.refusals:
                self.refusals.append(found[0])
                return refusal(line[found.start():])
        return None


def refusal(line):
    shape, status = SHAPE.search(line), STATUS.search(line)
    what = shape and f"{shape[1] or '?'}: {shape[2]} x {shape[3]} x {shape[4]}"
    return {"subject": "refusal", "text": line.strip(), "shape": what, "status": status and status[1]}


def json_row(line):
    """A line that is one JSON object with a subject; else None."""
    if not line.startswith("{"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("subject"), str) else None


def case_row(line):
    found = re.match(r"\[\s*(OK|FAILED|SKIPPED)\s*\] (\w+)$", line)
    return found and {"subject": "case", "case": found[2], "said": {"OK": "passed"}.get(found[1], found[1].lower())}


def sanitizer_row(line):
    found = re.match(r"=+ (\w+) SUMMARY: (\d+) (?:error|hazard)", line)
    return found and {"subject": "sanitizer", "summary": found[1], "found": int(found[2]), "text": line.strip("= ")}


def bench_rows(text):
    """Of `exphil bench --json`: the update, then every operation with the kernel that was chosen for it."""
    at = text.find('{"bench"')
    if at < 0:
        return []
    told, _ = json.JSONDecoder().raw_decode(text[at:])
    rows = [{"subject": "fact", "name": name, **({"value": fact} if not isinstance(fact, dict) else fact)}
            for name, fact in told["facts"].items()]
    for row in told["rows"]:
        operation, _, kernel = row["what"].partition(": ")
        more = {"operation": operation, "kernel": kernel or operation} if row["subject"].startswith("operations") else {}
        rows.append({"subject": row["subject"], "what": row["what"], "how": row["how"], "us": row["p50_ns"] * 1e-3,
                     "share_of_floor": row.get("share_of_floor"), **more})
    return rows


def ncu_rows(text):
    """Of `ncu --csv`, in either of its forms: a row a kernel, or one a metric of a kernel."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels = {}
    for line in csv.DictReader(io.StringIO("\n".join(lines))):
        if not (line.get("ID") or "").isdigit():
            continue  # the line of units
        row = kernels.setdefault(line["ID"], {"subject": "counters", "kernel": line.get("Kernel Name"), "metrics": {}})
        if line.get("Metric Name"):
            row["metrics"][line["Metric Name"]] = line["Metric Value"]
        else:
            row["metrics"] |= {name: value for name, value in line.items() if name and "__" in name and value}
    return list(kernels.values())


AT_ONCE = {"lines": (json_row, case_row), "sanitizer": (sanitizer_row,), "bench": (), "ncu": ()}
AT_THE_END = {"bench": bench_rows, "ncu": ncu_rows}
