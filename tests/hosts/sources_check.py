#!/usr/bin/env python3
"""Compares the list of sources that packages carry (sources.txt, cmake/Sources.cmake) with what CMake compiles.

    sources_check.py SOURCE-FOLDER BUILD-FOLDER SYSTEM PROCESSOR COMPILER

SYSTEM is posix, windows, macos or wasi, PROCESSOR x86, arm or any, COMPILER gnu or clang. Both sides must have the same files in
the same groups, each with the same flags; apart from warnings, debug information, what the compiler is told of places, and the
folder that is looked through for plugins.
"""

import json
import pathlib
import re
import shlex
import sys

LEFT_OUT = re.compile(r"-(W.*|g\d?|fPIC|ffile-prefix-map=.*|DXPH_LIBDIR=.*|fno-sanitize=undefined)$")


def listed(text, system, processor, compiler):
    """{(group, file): flags} for a machine."""
    groups, flags, files, headers = [], {}, {}, set()
    for line in text.splitlines():
        key, *words = line.split(" ")
        if key == "groups" and words[0] in ("any", processor):
            groups += words[1:]
        elif key == "flags" and words[1] in ("any", processor):
            mine = [word.partition(":")[2] if word.startswith(("gnu:", "clang:")) else word
                    for word in words[2:] if not word.startswith(("gnu:", "clang:")) or word.startswith(compiler + ":")]
            flags[words[0]] = flags.get(words[0], []) + mine
        elif key == "file" and system in words[1].split(","):
            files.setdefault(words[0], []).append(words[2])
        elif key == "header":
            headers.add(words[0])
    kept = {group: [word for word in flags[group] if not LEFT_OUT.match(word)] for group in groups}
    return {(group, file): kept[group] for group in groups for file in files[group]}, headers


def compiled(commands, source):
    """The same of compile_commands.json."""
    found = {}
    for entry in commands:
        words = shlex.split(entry["command"])
        group = re.search(r"CMakeFiles/exphil_(core|zstd|set_\w+)\.dir/", words[words.index("-o") + 1])
        if not group:
            continue
        flags = []
        at = next(i for i, word in enumerate(words) if word.startswith("-"))
        while words[at] != "-o":
            word = words[at].replace(f"{source}/", "")
            word = re.sub(r"^-I.*?(include|lib)$", r"-I\1", word)
            if not LEFT_OUT.match(word):
                flags.append(word)
            at += 1
        file = str(pathlib.Path(entry["directory"], entry["file"]).resolve().relative_to(source))
        found[(re.sub("^set_", "", group[1]), file)] = flags
    return found


def main():
    source, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    want, headers = listed((build / "sources.txt").read_text(), *sys.argv[3:6])
    have = compiled(json.loads((build / "compile_commands.json").read_text()), source)
    failed = []
    for group, file in sorted(want.keys() - have.keys()):
        failed.append(f"{file} ({group}): in the list alone")
    for group, file in sorted(have.keys() - want.keys()):
        failed.append(f"{file} ({group}): CMake compiles it, the list has it not")
    for key in sorted(want.keys() & have.keys()):
        if sorted(want[key]) != sorted(have[key]):
            other = sorted(set(want[key]) ^ set(have[key]))
            failed.append(f"{key[1]} ({key[0]}): {' '.join(other) or 'a flag comes twice'}: only one of both has it")
    for file in sorted(headers | {file for _, file in want}):
        if not (source / file).is_file():
            failed.append(f"{file}: is no file")
    if len(want) < 100:
        failed.append(f"only {len(want)} files are listed")
    print("\n".join(failed[:20]))
    print(f"sources: {len(want)} compilations, {len(headers)} headers, {len(failed)} differences")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
