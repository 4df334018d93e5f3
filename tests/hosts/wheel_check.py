"""A wheel that bindings/python/build_abi.py made, looked at as an installer does: its name, tags and RECORD agree, it carries what
it opens, and nothing of it belongs to one version of Python.

usage: wheel_check.py WHEEL PLATFORM LIBRARY HELPER
"""
import base64
import csv
import hashlib
import io
import re
import sys
import zipfile

path, platform, library, helper = sys.argv[1:5]
wrong = []


def expect(what, holds):
    if not holds:
        wrong.append(what)


name = re.fullmatch(r"(?:.*/)?(exphil-([0-9.]+))-py3-none-(\w+)\.whl", path)
expect("the name is of another form", name)
info = f"{name.group(1)}.dist-info"
expect(f"the platform in the name is {name.group(3)}", name.group(3) == platform)
with zipfile.ZipFile(path) as wheel:
    files = {entry.filename: wheel.read(entry) for entry in wheel.infolist()}
    expect("a file is in it twice", len(files) == len(wheel.infolist()))
    expect("a file has a time of its own", {entry.date_time for entry in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)})
tags = files[f"{info}/WHEEL"].decode().splitlines()
expect("WHEEL has another tag", f"Tag: py3-none-{platform}" in tags)
expect("WHEEL says that it is the same on every system", "Root-Is-Purelib: false" in tags)
about = files[f"{info}/METADATA"].decode()
for line in ("Name: exphil", f"Version: {name.group(2)}", "Requires-Python: >=3.8", "Requires-Dist: cffi>=1.15",
             "Requires-Dist: numpy>=1.20"):
    expect(f"METADATA has no line {line}", f"\n{line}\n" in about)
record = {row[0]: row[1:] for row in csv.reader(io.StringIO(files[f"{info}/RECORD"].decode()))}
expect("RECORD names other files than there are", set(record) == set(files))
for file, data in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    told = record.get(file)
    expect(f"RECORD of {file}", told == (["", ""] if file == f"{info}/RECORD" else [f"sha256={digest}", str(len(data))]))
native = {file for file in files if re.search(r"\.(dll|so|so\.\d+|dylib|pyd)$", file)}
expect(f"the native files are {sorted(native)}", native == {f"exphil/{library}", f"exphil/{helper}"})
for file in ("_native.py", "_declared.py", "_wheel.py", "__init__.py", "session.py", "torch/__init__.py", "py.typed"):
    expect(f"no {file}", f"exphil/{file}" in files)
opened = f'LIBRARY, HELPER = "{library}", "{helper}"\n'.encode()
expect("what it opens is something else", files["exphil/_wheel.py"].endswith(opened))
print("\n".join(wrong) or f"{len(files)} files")
sys.exit(bool(wrong))
