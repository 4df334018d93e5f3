#!/usr/bin/env python3
"""What is kept is noticed: one rounding planted in a kernel, in all instruction sets alike, changes bits that
tests/train/kept_test.c compares; no commit writes the files of a release anew; every commit that changes a kept digest says why.
  kept_gate.py <source folder> <build folder>
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
# Kernel, what it computes with one rounding, the same with two.
PLANTED = [("norm.c", "lane[i] = vec_fma(d, d, lane[i]);", "lane[i] = d * d + lane[i];"),
           ("adam.c", "*m = vec_fma(vec_all(k->take1), g, vec_all(k->keep1) * *m);",
            "*m = vec_all(k->take1) * g + vec_all(k->keep1) * *m;")]
KEPT = ["tests/data/kept/same_bits.txt", "tests/data/kept/*/results.txt"]


def run(arguments, **more):
    return subprocess.run(arguments, text=True, capture_output=True, **more)


def compiled(name, text, folder):
    """The changed kernel as every instruction set has it."""
    changed = folder / name
    changed.write_text(text)
    objects = []
    for number, entry in enumerate(json.loads((BUILD / "compile_commands.json").read_text())):
        if not entry["file"].endswith(f"/lib/cpu/kernels/{name}"):
            continue
        words = shlex.split(entry["command"])
        objects.append(str(folder / f"{number}.o"))
        words[words.index("-o") + 1] = objects[-1]
        words[-1] = str(changed)
        done = run(words, cwd=entry["directory"])
        if done.returncode:
            sys.exit(f"FAILED: the changed {name} does not compile\n{done.stderr}")
    return objects


def linked(objects, folder):
    """kept_test with these objects in the place of the library's."""
    words = shlex.split(run(["ninja", "-C", str(BUILD), "-t", "commands", "tests/kept_test"]).stdout.splitlines()[-1])
    words = words[2:words.index("&&", 2)] if words[:2] == [":", "&&"] else words
    place = words.index("-o")
    words[place:place + 2] = objects + ["-o", str(folder / "kept_test")]
    done = run(words, cwd=BUILD)
    if done.returncode:
        sys.exit(f"FAILED: kept_test does not link with the changed kernel\n{done.stderr}")
    return folder / "kept_test"


def planted(name, before, after):
    text = (SOURCE / "lib" / "cpu" / "kernels" / name).read_text()
    if before not in text:
        sys.exit(f"FAILED: {name} has no `{before}` to change")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        done = run([linked(compiled(name, text.replace(before, after), folder), folder)])
    found = [line for line in (done.stdout + done.stderr).splitlines() if "this library has" in line]
    if not done.returncode or not found:
        sys.exit(f"FAILED: {name} with one rounding more: nothing noticed\n{done.stdout}{done.stderr}")
    print(f"{name}: {found[0].strip()}")


def untouched():
    """Files of a release are added once: whoever writes them anew with a later library makes the tests pass that should not."""
    for results in sorted(SOURCE.glob("tests/data/kept/*/results.txt")):
        version = results.parent.name
        kept = [f"tests/data/kept/{version}", f"tests/abi/{version}"]
        first = run(["git", "log", "--format=%H", "--diff-filter=A", "--", str(results.relative_to(SOURCE))],
                    cwd=SOURCE).stdout.split()
        if not first:
            continue
        log = run(["git", "log", "--full-history", "-m", "--format=commit %h", "--name-status", "--no-renames",
                   f"{first[-1]}..HEAD", "--", *kept], cwd=SOURCE).stdout
        changes = [line for line in log.splitlines() if line[:1] in ("M", "D", "T") and not line.endswith("/results.txt")]
        changes += [line for line in run(["git", "status", "--porcelain", "--", *kept], cwd=SOURCE).stdout.splitlines()
                    if not line.endswith("/results.txt") and line[:2] != "??"]
        if changes:
            sys.exit(f"FAILED: files of release {version} were changed: {', '.join(changes)}")
        print(f"{version}: its files are as they were")


def taken_over(commit):
    """Whether it is a merge that has what one of its parents had: the commits of that side say why."""
    parents = run(["git", "show", "-s", "--format=%P", commit], cwd=SOURCE).stdout.split()
    return len(parents) > 1 and any(not run(["git", "diff", "--quiet", parent, commit, "--", *KEPT], cwd=SOURCE).returncode
                                    for parent in parents)


def explained():
    """Bodies of the commits since the files were first kept."""
    commits = run(["git", "log", "--full-history", "--format=%H", "--", *KEPT], cwd=SOURCE).stdout.split()
    commits = [commit for commit in commits if not taken_over(commit)]
    for commit in commits:
        body = run(["git", "show", "-s", "--format=%B", commit], cwd=SOURCE).stdout
        if not any(line.startswith("Bits: ") for line in body.splitlines()):
            sys.exit(f"FAILED: commit {commit[:10]} changes kept digests without a line `Bits: why`")
    print(f"{len(commits)} commits changed what is kept, each says why")


if run(["git", "rev-parse", "--is-inside-work-tree"], cwd=SOURCE).stdout.strip() == "true":
    untouched()
    explained()
else:
    print("SKIPPED: what commits changed (no history here)")
for name, before, after in PLANTED:
    planted(name, before, after)
