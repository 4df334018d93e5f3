"""doc/testing.md names tests, cases of tests, and commands: all of them exist, each promise has at least one, and no test
is without a promise.

usage: promises.py SOURCE BUILD
"""
import os
import re
import subprocess
import sys
import tempfile

source, build = sys.argv[1:3]
# ctest writes its log anew even where it only lists: not over that of the run which this test belongs to.
with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
        file.write(f'subdirs("{build}")\n')
    listing = subprocess.run(["ctest", "--test-dir", folder, "--show-only"], capture_output=True, text=True, check=True)
tests = set(re.findall(r"Test +#\d+: (\S+)", listing.stdout))
failed = []


def text_of(test):
    """The source of a test program: tests/<folder>/<name>.c, host.load is tests/host/host_load.c."""
    folder, name = test.split(".")
    for file in (f"{name}.c", f"{folder}_{name}.c", f"run/{name}.c"):
        path = os.path.join(source, "tests", folder, file)
        if os.path.exists(path):
            return open(path).read()
    return ""


def check(word, test):
    """What is wrong with a word in backticks that stands behind this test; None when nothing is."""
    command, *rest = word.split()
    if command == "tools/test" and rest and not re.search(rf"^#   {rest[0]} +\S", open(os.path.join(source, command)).read(), re.M):
        return "no such stage"
    if "/" in command:
        return None if os.path.exists(os.path.join(source, command)) else "no such file"
    if "." in word:
        return None if word in tests else "no such test"
    if not test:
        return "a case of no test"
    return None if re.search(rf"cmocka_unit_test\w*\({word}\b|^ROW\({word}\b", text_of(test)) else f"no such case of {test}"


rows = 0
table = open(os.path.join(source, "doc", "testing.md")).read().split("| promise | what shows it |")[1].split("\n\n")[0]
for line in table.splitlines()[2:]:
    promise, shown = line.strip().strip("|").split(" | ", 1)
    words = re.findall(r"`([^`]+)`", shown)
    rows += 1
    if not words:
        failed.append(f"{promise}: nothing shows it")
    test = None
    for word in words:
        wrong = check(word, test)
        if wrong:
            failed.append(f"{word}: {wrong}")
        if word in tests:
            test = word
shown = set(re.findall(r"`([^`]+)`", table))
failed += [f"{test}: no promise names it" for test in sorted(tests - shown - {"doc.promises"})]
print(f"{rows} promises, {len(tests)} tests")
for line in failed:
    print("FAILED:", line)
sys.exit(1 if failed or not rows else 0)
