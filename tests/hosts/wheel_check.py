"""A wheel that bindings/python/build_wheel.py made, looked at as an installer does: its name, tags and RECORD agree, it carries
what it opens, and nothing of it belongs to one version of Python.

usage: wheel_check.py WHEEL TAG NATIVE-FILE...      TAG: py3-none-win_amd64; with ABI mode first the library, then the helper
"""
import base64
import csv
import hashlib
import io
import re
import sys
import zipfile

path, tag, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
wrong = []


def expect(what, holds):
    if not holds:
        wrong.append(what)


name = re.fullmatch(r"(?:.*/)?(exphil-([0-9.]+))-((?:py3-none|cp38-abi3)-[\w.]+)\.whl", path)
expect("the name is of another form", name)
info = f"{name.group(1)}.dist-info"
expect(f"the tag in the name is {name.group(3)}", name.group(3) == tag)
with zipfile.ZipFile(path) as wheel:
    files = {entry.filename: wheel.read(entry) for entry in wheel.infolist()}
    expect("a file is in it twice", len(files) == len(wheel.infolist()))
    expect("a file has a time of its own", len({entry.date_time for entry in wheel.infolist()}) == 1)
    expect("the order of files is that of a folder", [*files] == sorted(files, key=lambda file: (file == f"{info}/RECORD", file)))
    modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
    for file, mode in modes.items():
        expect(f"the mode of {file} is {mode:o}", mode == (0o100755 if file.startswith("exphil/bin/") else 0o100644))
about = files[f"{info}/WHEEL"].decode().splitlines()
python, _, platforms = tag.rpartition("-")
tags = {line.removeprefix("Tag: ") for line in about if line.startswith("Tag: ")}
expect(f"WHEEL has the tags {tags}", tags == {f"{python}-{platform}" for platform in platforms.split(".")})
expect("WHEEL says that it is the same on every system", "Root-Is-Purelib: false" in about)
about = files[f"{info}/METADATA"].decode()
for line in ("Name: exphil", f"Version: {name.group(2)}", "Requires-Python: >=3.8", "Requires-Dist: cffi>=1.15",
             "Requires-Dist: numpy>=1.20", "License: MIT", "Classifier: License :: OSI Approved :: MIT License",
             "Classifier: Typing :: Typed", "Description-Content-Type: text/markdown"):
    expect(f"METADATA has no line {line}", f"\n{line}\n" in about)
fields, _, description = about.partition("\n\n")
for field in ("Summary", "Keywords"):
    expect(f"METADATA has no {field}", re.search(rf"^{field}: .", fields, re.M))
expect("METADATA has no description", description.startswith("# exphil"))
links = [link for link in re.findall(r"\]\(([^)]*)\)", description) if not re.match(r"https?:|#", link)]
expect(f"links of the description lead nowhere: {links}", not links)
record = {row[0]: row[1:] for row in csv.reader(io.StringIO(files[f"{info}/RECORD"].decode()))}
expect("RECORD names other files than there are", set(record) == set(files))
for file, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    told = record.get(file)
    expect(f"RECORD of {file}", told == (["", ""] if file == f"{info}/RECORD" else [f"sha256={digest}", str(len(data))]))
native = {file for file in files if re.search(r"\.(dll|so|so\.\d+|dylib|pyd)$", file)}
expect(f"the native files are {sorted(native)}", native == {f"exphil/{file}" for file in wanted})
opens = ("_native.py", "_declared.py", "_wheel.py") if python == "py3-none" else ()
for file in (*opens, "__init__.py", "session.py", "torch/__init__.py", "py.typed"):
    expect(f"no {file}", f"exphil/{file}" in files)
# The manual.
headers = {file.rpartition("/")[2] for file in files if re.fullmatch(r"exphil/include/exphil/\w+\.h", file)}
for header in ("exphil.h", "learn.h", "match.h", "live.h", "ops.h"):
    expect(f"no header {header}", header in headers)
manual = files.get("exphil/include/exphil/exphil.h", b"")
version = re.findall(rb"^#define EXPHIL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", manual, re.M)
expect("the headers are of another version", b".".join(version).decode() == name.group(2))
if opens:
    told = 'LIBRARY, HELPER = "{}", "{}"\n'.format(*wanted).encode()
    expect("what it opens is something else", files["exphil/_wheel.py"].endswith(told))
entry = files.get(f"{info}/entry_points.txt", b"")
program = {file in files for file in ("exphil_program.py", f"exphil/bin/exphil{'.exe' * ('win' in tag)}")}
expect("the program has no entry, or the entry no program", program == {b"exphil = exphil_program:main" in entry})
print("\n".join(wrong) or f"{len(files)} files")
sys.exit(bool(wrong))
