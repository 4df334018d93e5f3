#!/usr/bin/env python3
"""The public headers as a later release may have them: every struct that grows has one field more, at its end, and so has its
INIT macro. The library is built with them (libexphil_grown), and programs of earlier releases run on it.

  grown.py <include folder> <folder to write exphil/*.h to>
"""
import pathlib
import re
import sys

STRUCT = re.compile(r"(typedef struct (\w+) \{(?:(?!\n\} ).)*?\n)(\} \2;)", re.S)
MACRO = re.compile(r"^#define \w+_INIT\b(?:[^\n]*\\\n)*[^\n]*$", re.M)


def main(source, target):
    structs, macros = [], []
    texts = {path.name: path.read_text() for path in sorted(source.glob("exphil/*.h"))}

    def grow_struct(found):
        if "size_t struct_size;" not in found.group(1):
            return found.group(0)
        structs.append(found.group(2))
        return f"{found.group(1)}    uint64_t grown;\n{found.group(3)}"

    def grow_macro(found):
        text = found.group(0)
        name = re.search(r"sizeof\((\w+)\)", text)
        if not name or name.group(1) not in structs:
            return text
        macros.append(name.group(1))
        return re.sub(r"\s*\}$", ", 0 }", text)

    grown = {name: MACRO.sub(grow_macro, STRUCT.sub(grow_struct, text)) for name, text in texts.items()}
    # What this file reads otherwise than a compiler would must not pass for grown.
    wanted = sum(text.count("size_t struct_size;") for text in texts.values())
    initialised = sum(len(re.findall(r"_INIT\b[^\n]*(?:\\\n[^\n]*)?sizeof\(", text)) for text in texts.values())
    if len(structs) != wanted or len(macros) != initialised:
        sys.exit(f"grown.py: {len(structs)} of {wanted} structs and {len(macros)} of {initialised} INIT macros have grown")
    folder = target / "exphil"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in grown.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    print(f"{len(structs)} structs have grown")


if len(sys.argv) != 3:
    sys.exit(__doc__.strip())
main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
