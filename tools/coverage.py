"""Asks gcov about all objects of the library in a build folder, prints covered lines per file, and fails below what
tools/coverage promises.

usage: coverage.py BUILD [FILE]    with FILE: the lines of it that did not run
"""
import fnmatch
import json
import os
import subprocess
import sys

# What reads bytes from outside; a pattern that matches no file is a mistake here.
READERS = ["lib/melee/slp_*.c", "lib/file/*.c", "lib/data/corpus*.c", "lib/games/*.c", "lib/model/model_file.c",
           "lib/train/checkpoint*.c"]
READERS_AT_LEAST = 95.0
LIBRARY_AT_LEAST = 85.0


def lines_of(build):
    """file name -> {line: times it ran}, summed over all objects that the file was compiled into."""
    files = {}
    top = os.path.realpath(".") + os.sep
    notes = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names
             if name.endswith(".gcno") and f"{os.sep}lib{os.sep}" in folder + os.sep]
    for note in notes:
        said = subprocess.run(["gcov", "--json-format", "--stdout", note], capture_output=True, check=True)
        for entry in json.loads(said.stdout)["files"]:
            name = os.path.realpath(entry["file"]).removeprefix(top)
            if name.startswith("lib/"):
                counts = files.setdefault(name, {})
                for line in entry["lines"]:
                    number = line["line_number"]
                    counts[number] = counts.get(number, 0) + max(line["count"], 0)
    return {name: counts for name, counts in files.items() if counts}


def ranges(numbers):
    """1, 2, 3, 7 -> '1-3 7'"""
    parts = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def share(counts):
    """(lines that ran, lines, per cent) of a list of files' counts"""
    ran = sum(sum(1 for n in c.values() if n) for c in counts)
    total = sum(len(c) for c in counts)
    return ran, total, 100.0 * ran / total if total else 0.0


def main():
    files = lines_of(sys.argv[1])
    if len(sys.argv) > 2:
        counts = files[sys.argv[2]]
        print(ranges(n for n, times in counts.items() if not times))
        return 0
    readers = {pattern: fnmatch.filter(files, pattern) for pattern in READERS}
    failed = [f"{pattern}: no such file" for pattern, names in readers.items() if not names]
    readers = set().union(*readers.values())
    for name in sorted(files):
        ran, total, percent = share([files[name]])
        low = name in readers and percent < READERS_AT_LEAST
        mark = "reader" if name in readers else ""
        print(f"{percent:6.1f} %  {ran:5d} of {total:5d}  {name:40s} {mark}{' LOW' if low else ''}")
        if low:
            failed.append(f"{name}: {percent:.1f} %, not {READERS_AT_LEAST:.0f} %")
    for what, names, least in (("readers", readers, READERS_AT_LEAST), ("library", files, LIBRARY_AT_LEAST)):
        ran, total, percent = share([files[name] for name in names])
        print(f"{percent:6.1f} %  {ran:5d} of {total:5d}  {what} (at least {least:.0f} %)")
        if percent < least:
            failed.append(f"{what}: {percent:.1f} %, not {least:.0f} %")
    for line in failed:
        print("FAILED:", line)
    return 1 if failed else 0


sys.exit(main())
