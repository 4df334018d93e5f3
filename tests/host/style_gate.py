#!/usr/bin/env python3
"""Offences against the style are noticed: each of those planted here, in a copy of what is tracked, is told by tools/style with
its file and line; so is an exception that nothing needs. Nothing else may be told, of any file of the tree, and every check of
tools/style has something planted for it. A formatter of another version is refused.
  style_gate.py <source folder>
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PLAIN, OTHER = "lib/base/hash.c", "lib/base/decimal.c"
HEADER, SECOND = "include/exphil/exphil.h", "include/exphil/slp.h"
LONG = "\nint planted(void)\n{\n" + "    (void)0;\n" * 58 + "    return 0;\n}\n"
FILE = "/* One of too many lines. */\n" * 801
CALL = "\nvoid planted_{0}(void);\nvoid planted_{1}(void);\nvoid planted_{0}(void)\n{{\n    planted_{1}();\n}}\n"

# Check, file, what is added at its end or (None: in a new file), the line of the addition that is told, and what is told of it.
PLANTED = [
    ("format", PLAIN, "\nint  planted( void );\n", 2, "should be clang-formatted"),
    ("columns", PLAIN, f"/* {'long ' * 30}*/\n", 1, "132 are the most"),
    ("columns", "tests/host/bits.sh", f"# {'long ' * 30}\n", 1, "140 are the most"),
    ("whitespace", "doc/model.md", "A blank at the end. \n", 1, "trailing whitespace"),
    ("whitespace", PLAIN, "\tint planted(void);\n", 1, "tab in indent"),
    ("whitespace", "README.md", "\nNo line end", 2, "no line end"),
    ("spelling", "doc/model.md", "Rows that are rec" "ieved.\n", 1, "received"),
    ("shell", "tests/host/bits.sh", "echo $planted\n", 1, "SC2086"),
    ("shell", "tools/bench", "echo planted $1\n", 1, "SC2086"),
    ("python", "tools/analyse", "print(planted)\n", 1, "F821"),
    ("sizes", PLAIN, LONG, 2, "planted has 62 lines"),
    ("sizes", "tests/unit/planted.c", FILE, 801, "801 lines"),
    ("sizes", "tests/unit/planted.inc", LONG, 2, "planted has 62 lines"),
    ("sizes", "tools/planted.py", "x = 0\n" * 800 + "x = 1", 801, "801 lines"),
    ("circles", PLAIN, '#include "model/model.h"\n', 1, "not on a lower floor (include)"),
    ("circles", "lib/file/planted.h", '#include "../model/model.h"\n', 1, "not on a lower floor (include)"),
    ("circles", "lib/model/planted.h", '#include "../../cuda/kernels.h"\n', 1, "not on a lower floor (include)"),
    ("circles", "lib/planted/planted.h", "int planted(void);\n", 1, "lib/planted has no floor"),
    ("circles", "lib/train/planted.h", '#include "base/decimal.c"\n', 1, "lib/base/decimal.c is no header"),
    ("circles", "lib/base/planted_one.h", '#include"planted_two.h"\n', 1, "a circle: lib/base/planted_two.h leads back"),
    ("circles", "lib/base/planted_two.h", '#include "base/planted_one.h"\n', 1, "a circle: lib/base/planted_one.h leads back"),
    ("circles", PLAIN, CALL.format("here", "there"), 3, "a circle: planted_there is of lib/base/decimal.c"),
    ("circles", OTHER, CALL.format("there", "here"), 3, "a circle: planted_here is of lib/base/hash.c"),
    ("intrinsics", PLAIN, "int planted(void) { return _mm_movemask_epi8(_mm_setzero_si128()); }\n", 1, "_mm_movemask_epi8"),
    ("intrinsics", "lib/base/planted.h", "#include <immintrin.h>\n", 1, "immintrin.h"),
    ("intrinsics", "cli/planted.h", "typedef float planted __attribute__((vector_size(16)));\n", 1, "vector_size"),
    ("intrinsics", "lib/play/planted.h", "#define PLANTED __builtin_ia32_addps\n", 1, "__builtin_ia32_addps"),
    ("comments", HEADER, "\nEXPHIL_API int32_t exphil_planted(void);\n", 2, "no comment: EXPHIL_API int32_t exphil_planted"),
    ("comments", SECOND, "\n/* One. */\nEXPHIL_API int32_t exphil_one(void);\nEXPHIL_API int32_t exphil_two(void);\n", 4,
     "no comment: EXPHIL_API int32_t exphil_two"),
    ("comments", "include/exphil/planted.h", "/* clang-format on */\nEXPHIL_API int32_t exphil_three(void);\n", 2, "exphil_three"),
    ("tidy", PLAIN, "size_t planted(void);\nsize_t planted(void)\n{\n    return sizeof(sizeof(int));\n}\n", 4, "bugprone-sizeof"),
    ("sizes", "tools/style.exceptions", "sizes lib/base/planted.c 900\n", 1, "not needed any more"),
]
failed = []


def git(*words):
    who = ["-c", "user.name=planted", "-c", "user.email=planted@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=TREE, check=True, stdout=subprocess.DEVNULL)


def style(*words, **more):
    return subprocess.run([TREE / "tools" / "style", *words], cwd=TREE, text=True, capture_output=True, **more)


def copy():
    names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True)
    if names.returncode:
        print("SKIPPED: no git repository says what is tracked")
        sys.exit(0)
    subprocess.run(["tar", "-C", SOURCE, "--null", "--ignore-failed-read", "-T", "-", "-cf", TREE / "all.tar"],
                   input=names.stdout, check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["tar", "-C", TREE, "-xf", TREE / "all.tar"], check=True)
    (TREE / "all.tar").unlink()
    if (SOURCE / "build" / "style").exists():
        (TREE / "build").mkdir()
        (TREE / "build" / "style").symlink_to(SOURCE / "build" / "style")
    git("init", "-q", "-b", "main")
    git("add", "-A", "-f", ":!build")
    git("commit", "-q", "-m", "what is tracked")


def plant(check):
    """Plants all that is for one check, and returns what must be told: the beginning of a line, and words of it."""
    wanted = []
    for of, name, added, line, words in PLANTED:
        if of == check:
            path = TREE / name
            old = path.read_text() if path.exists() else ""
            path.parent.mkdir(exist_ok=True)
            path.write_text(old + added)
            wanted.append((f"{name}:{old.count(chr(10)) + line}: ", words))
    git("add", "-A")
    return wanted


def other_formatter():
    """A clang-format of another version stands first in the path, under both names."""
    folder = TREE / "build" / "other"
    folder.mkdir(parents=True)
    for name in ("clang-format", "clang-format-14"):
        (folder / name).write_text("#!/bin/sh\necho clang-format version 15.0.7\n")
        (folder / name).chmod(0o755)
    done = style("format", env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    if done.returncode != 3 or "no clang-format 14: " not in done.stderr or "15" not in done.stderr:
        failed.append(f"clang-format 15 was not refused: {done.returncode} {done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    TREE = pathlib.Path(folder).resolve()
    copy()
    checks = dict.fromkeys(row[0] for row in PLANTED)
    known = re.findall(r"^def check_(\w+)", (TREE / "tools" / "style").read_text(), re.MULTILINE)
    failed += [f"{check}: nothing is planted for it" for check in known if check not in checks]
    for check in checks:
        wanted = plant(check)
        told = style(check)
        lines = told.stdout.splitlines()
        if told.returncode == 3:
            print("SKIPPED:", "; ".join(told.stderr.splitlines()))
            git("reset", "-q", "--hard")
            continue
        for where, words in wanted:
            found = [line for line in lines if line.startswith(where) and words in line]
            print(f"{check}: {found[0]}" if found else f"{check}: nothing at {where}")
            if not found or told.returncode != 1:
                failed.append(f"{check}: {where} was to be told with {words!r}:\n{told.stdout}{told.stderr}")
        names = {where.split(":")[0] for where, _ in wanted}
        failed += [f"{check}: nothing was planted in {line}" for line in lines[:-1] if line.split(":")[0] not in names]
        git("reset", "-q", "--hard")
    other_formatter()

for line in failed:
    print("FAILED:", line)
sys.exit(1 if failed else 0)
