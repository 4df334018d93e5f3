"""Files that the documents name exist. In backticks, or as the target of a link: a path from the top of the tree, or
(doc/architecture.md) the bare name of a source file of the library, the program or the benchmarks. <name>, * and {} stand for
many and are left alone.

usage: paths.py SOURCE
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
documents = [source / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((source / "doc").glob("*.md"))
tops = {path.name for path in source.iterdir() if path.is_dir() and path.name not in ("build", ".git")}
names = {path.name for room in ("include", "lib", "cuda", "cli", "bench") for path in (source / room).rglob("*.*")}
failed, found = [], 0
for document in documents:
    for number, line in enumerate(document.read_text().splitlines(), 1):
        for word in re.findall(r"`([^`\s]+)`", line) + re.findall(r"\]\((?!\w+:)([^)#\s]+)[^)\s]*\)", line):
            link = f"]({word}" in line
            if re.search(r"[<>*{}$=,]", word):
                continue
            if link:
                there = (document.parent / word).exists()
            elif word.split("/")[0] in tops and "/" in word and word.split("/")[0] != "build":
                there = (source / word).exists() or (source / word.removesuffix("/")).exists()
            elif document.name == "architecture.md" and re.fullmatch(r"\w+\.(c|h|cu|cuh)", word):
                there = word in names
            else:
                continue
            found += 1
            if not there:
                failed.append(f"{document.relative_to(source)}:{number}: {word} does not exist")
print(f"{found} paths")
if failed or found < 50:
    sys.exit("\n".join(failed) or "too few paths: is this the source tree?")
