"""Writes what the bindings repeat of include/exphil: `tools/abi bindings`. abi_notes.py says what the C types do not."""
import re
import sys
import textwrap
from collections import namedtuple

sys.dont_write_bytecode = True
import abi_notes as notes  # noqa: E402

# base: the C type of one element, without const; count: 0, or the length of an array; note: see abi_notes.py.
Field = namedtuple("Field", "struct name base pointer count note")
Member = namedtuple("Member", "name word value")
MADE = "Made by `tools/abi bindings` from include/exphil: do not edit."


class Header:
    """Structs as lists of fields, enumerations as lists of members, by name."""

    def __init__(self, text, structs, size_of, source):
        self.text, self.source, self.size_of = text, source, size_of
        self.hooks = {name for name, members in structs if any(field == "user" for field, _ in members)}
        self.functions = set(re.findall(r"typedef \w+ \( ?\* ?(\w+) ?\)", text))
        self.names = {name for name, _ in structs}
        self.all = {name: [self.field(name, *one) for one in members] for name, members in structs}
        self.enums = {name: self.members(name) for name in notes.ENUMS}
        self.check_notes()

    def field(self, struct, name, pointer):
        note = notes.FIELDS.get(struct, {}).get(name)
        found = re.fullmatch(r"(?:const )?(\w+) ?(\*)? ?\(\*\)(?:\[(\d+)\])?", pointer)
        if not found:
            return Field(struct, name, "hook", True, 0, note)
        return Field(struct, name, found.group(1), bool(found.group(2)), int(found.group(3) or 0), note)

    def members(self, name):
        wanted = notes.ENUMS[name]
        for body in re.findall(r"\benum \{(.*?)\}", self.text):
            parts = [[side.strip() for side in part.split("=")] for part in body.split(",") if part.strip()]
            if parts[0][0] == wanted["first"]:
                return [Member(one, self.word(wanted, one), number(value)) for one, value in parts]
        sys.exit(f"tools/abi_notes.py: the header has no enumeration that starts with {wanted['first']}")

    @staticmethod
    def word(wanted, name):
        return wanted.get("words", {}).get(name) or name[len(wanted["prefix"]):]

    def plain(self, struct, leaves=None):
        """The fields that hosts see: no hooks, nothing that must be 0, none that a language leaves out."""
        left = {"struct_size", *(leaves or {}).get(struct, "").split()}
        return [one for one in self.all[struct] if one.name not in left and not self.hidden(one)]

    def hidden(self, field):
        hook = field.base in ("hook", "void") or field.base in self.hooks or field.base in self.functions
        return hook or field.note == notes.HIDDEN or field.name.startswith("reserved")

    def nested(self, field):
        return field.base in self.names

    def check_notes(self):
        """A note on what the header does not have is a mistake."""
        lists = [{key: " ".join(value) for key, value in notes.FIELDS.items()}, notes.ELIXIR_LEAVES, notes.NODE_LEAVES,
                 notes.WEB_LEAVES, notes.LUAJIT_LEAVES, notes.CSHARP_LEAVES,
                 {"exphil_melee_character": " ".join(notes.KNOWN.values())}]
        for struct, names in ((struct, names) for one in lists for struct, names in one.items()):
            for name in names.split():
                if name not in [field.name for field in self.all.get(struct, [])]:
                    sys.exit(f"tools/abi_notes.py: there is no {struct}.{name}")


def number(text):
    """3, 0x10, 1 << 4."""
    found = re.fullmatch(r"(\w+)(?: << (\d+))?", text)
    return int(found.group(1), 0) << int(found.group(2) or 0)


def snake(name):
    return "type" if name == "DataType" else re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def words_of(header, name):
    """Words in the order of their numbers, from 0."""
    zero = notes.ENUMS[name].get("zero")
    words = ([zero] if zero else []) + [one.word.lower() for one in header.enums[name]]
    if [one.value for one in header.enums[name]] != list(range(1 if zero else 0, len(words))):
        sys.exit(f"tools/abi_notes.py: the numbers of {name} are not in order")
    return words


# ---- Elixir: bindings/elixir/c_src/nif_tables.c ---------------------------------------------------------------------

ELIXIR_TYPES = {
    "int8_t": "T_I8", "uint8_t": "T_U8", "int16_t": "T_I16", "uint16_t": "T_U16", "int32_t": "T_I32", "uint32_t": "T_U32",
    "int64_t": "T_I64", "uint64_t": "T_U64", "size_t": "T_U64", "float": "T_F32", "double": "T_F64", "exphil_log_level": "T_I32"}


def elixir_field(header, field):
    """Type, length, names and record of one field; None: not told by tables."""
    enum = field.note in notes.ENUMS
    names = f"{snake(field.note)}_names" if enum else "NULL"
    if header.nested(field):
        if field.base == "exphil_spec":
            return "T_SPEC", 1, "NULL", "NULL"
        record = [one[0] for one in notes.ELIXIR if one[2] == field.base]
        return ("T_RECORDS_AT", 1, "NULL", f"&{record[0]}") if field.pointer and field.struct in notes.GIVEN else None
    if field.base == "char":
        return "T_TEXT" if field.pointer else "T_CHARS", 1, "NULL", "NULL"
    if field.pointer:
        kind = {"float": "T_FLOATS_AT", "int32_t": "T_ENUM_AT" if enum else "T_I32_AT"}[field.base]
        return kind, 1, names, "NULL"
    count = notes.ELIXIR_LENGTHS.get((field.struct, field.name), field.count or 1)
    kind = "T_ENUM" if enum else "T_BOOL" if field.note == notes.FLAG else ELIXIR_TYPES[field.base]
    return kind, count, names, "NULL"


def elixir_names(header):
    used = {one.note for _, _, struct, _ in notes.ELIXIR for one in header.plain(struct, notes.ELIXIR_LEAVES)}
    for name in [one for one in notes.ENUMS if one in used]:
        words = ", ".join(f'"{word}"' for word in words_of(header, name))
        static = "" if snake(name) in notes.ELIXIR_SHARED else "static "
        yield f"{static}const char *const {snake(name)}_names[] = {{{words}, NULL}};"


def elixir_record(header, name, text, struct, module):
    rows = [(field, elixir_field(header, field)) for field in header.plain(struct, notes.ELIXIR_LEAVES)]
    yield f"static const field {name}_fields[] = {{"
    for field, row in rows:
        if row:
            yield f"    FIELD({struct}, {field.name}, {', '.join(str(part) for part in row)}),"
    module = f'"Elixir.{module}"' if module else "NULL"
    yield from ("};", f'RECORD({name}, "{text}", {struct}, {module});', "")


def elixir(header):
    """Records that other records point to come first, as the list has them."""
    out = [f"/* {MADE}", " * Which field of a C struct is which key of an Elixir map, in the order of the headers. */",
           '#include "nif.h"', "", "/* clang-format off */", *elixir_names(header), "",
           "#define RECORD(id, text, struct_, module_) \\",
           "    _Static_assert(sizeof(id##_fields) / sizeof *(id##_fields) <= RECORD_FIELDS, \"RECORD_FIELDS is too small\"); \\",
           "    record id = {.name = (text), .module = (module_), .bytes = sizeof(struct_), .fields = id##_fields, \\",
           "                 .field_count = sizeof(id##_fields) / sizeof *(id##_fields)}", ""]
    for record in notes.ELIXIR:
        out += elixir_record(header, *record)
    out += [f"extern record {', '.join(notes.ELIXIR_OWN)};", "", "record *const all_records[] = {"]
    out += [f"    &{name}," for name in [one[0] for one in notes.ELIXIR] + notes.ELIXIR_OWN]
    return out + ["    NULL", "};"]


# ---- Node: bindings/node/addon_fields.c, exphil_names.js ------------------------------------------------------------

NODE_TYPES = {"int8_t": "F_I8", "uint8_t": "F_U8", "uint16_t": "F_U16", "int32_t": "F_I32", "uint32_t": "F_U32",
              "int64_t": "F_I64", "float": "F_F32", "double": "F_F64"}


def node_kind(header, field):
    """None: not told by tables. Counts come back as numbers, which 2^53 is enough for; what a host gives may be a bigint."""
    if field.base == "char":
        return "F_NAME" if field.pointer else "F_TEXT"
    if field.pointer or field.count or header.nested(field):
        return None
    if field.base in ("uint64_t", "size_t"):
        return "F_U64" if field.note == notes.HASH or field.struct in notes.GIVEN else "F_I64"
    return "F_FLAG" if field.note == notes.FLAG else NODE_TYPES[field.base]


def node_table(header, table, struct):
    yield f"const struct field {table}[] = {{"
    for field in header.plain(struct, notes.NODE_LEAVES):
        kind = node_kind(header, field)
        if kind:
            yield f"    FIELD({struct}, {kind}, {field.name}),"
    yield from ("    FIELDS_END", "};", "")


def node_members(header, table, struct):
    known = {name: f"EXPHIL_MELEE_HAS_{group}" for group, names in notes.KNOWN.items() for name in names.split()}
    lists = dict((struct, table) for table, struct in notes.NODE_MEMBERS)
    yield f"const struct member {table}[] = {{"
    for field in header.plain(struct):
        of = lists.get(field.base, "NULL")
        kind = "F_I32" if header.nested(field) else NODE_TYPES[field.base]
        has = known.get(field.name, 0) if struct == "exphil_melee_character" else 0
        yield (f'    {{"{field.name}", offsetof({struct}, {field.name}), sizeof({field.base}), {kind}, {field.count or 1}, '
               f"{has}, {of}}},")
    yield from ("    {NULL, 0, 0, F_I32, 0, 0, NULL}", "};", "")


def node_constants(header, table, name):
    yield f"const struct constant {table}[] = {{"
    for one in header.enums[name]:
        yield f'    {{"{one.word}", {one.name}}},'
    yield from ("    {NULL, 0}", "};")


def node(header):
    out = [f"/* {MADE}", " * Which field of a C struct is which property of an object, in the order of the headers. */",
           '#include "addon.h"', "", "/* clang-format off */"]
    for table, struct in notes.NODE:
        out += node_table(header, table, struct)
    for table, struct in notes.NODE_MEMBERS:
        out += node_members(header, table, struct)
    return [*out, *node_constants(header, "buttons", "Button"), "", *node_constants(header, "known", "Known")]


def node_names(header, tables=notes.NODE, export="module.exports ="):
    """Enumerations of options, by the option's name."""
    options = {}
    for _, struct in tables:
        for field in header.plain(struct, notes.NODE_LEAVES):
            if struct in notes.GIVEN and field.note in notes.ENUMS and field.name != "kind":
                options.setdefault(field.name, field.note)
    out = [f"// {MADE}", "'use strict';", "", "/** Options that take a name, too: the names in the order of their numbers. */",
           f"{export} {{"]
    for option, enum in options.items():
        words = [notes.NODE_WORDS.get(word, word) for word in words_of(header, enum)]
        out.append(f"  {option}: [{', '.join(repr(word) for word in words)}],")
    return out + ["};"]


def node_type(header, field):
    """Of an option."""
    if field.base == "exphil_spec":
        return "Spec"
    if header.nested(field):
        inner = (f"{one.name}?: {node_type(header, one)}" for one in header.plain(field.base))
        return f"{{ {'; '.join(inner)} }}[]"
    if field.base == "char":
        return "string"
    if field.note == "Mode":
        return "Mode"
    if field.note in notes.ENUMS:
        some = notes.NODE_SOME.get((field.struct, field.name))
        words = some.split() if some else words_of(header, field.note)
        return " | ".join(["number", *(repr(notes.NODE_WORDS.get(word, word)) for word in words)])
    wide = field.base in ("uint64_t", "size_t")
    return "number | bigint" if wide else "number | boolean" if field.note == notes.FLAG else "number"


def node_options(header, struct, indent):
    for field in header.plain(struct, notes.NODE_LEAVES):
        yield f"{indent}{field.name}?: {node_type(header, field)};"


def node_told(header, name, struct):
    fields = [(one, node_kind(header, one)) for one in header.plain(struct, notes.NODE_LEAVES)]
    texts = [one.name for one, kind in fields if kind == "F_TEXT"]
    hashes = [one.name for one, kind in fields if kind == "F_U64"]
    counts = [one.name for one, kind in fields if kind not in ("F_TEXT", "F_U64", None)]
    yield f"export type {name} = Info<"
    lists = [names for names in (counts, hashes, texts) if names]
    for names in lists:
        line = " | ".join(f"'{one}'" for one in names) + ("," if names is not lists[-1] else "")
        for start, wrapped in enumerate(textwrap.wrap(line, 120)):
            wrapped = wrapped.removesuffix(" |")
            yield f"  {wrapped}" if wrapped.startswith("|") or not start else f"  | {wrapped}"
    yield ">;"


def node_types(header, options=notes.NODE_OPTIONS, told=notes.NODE_TOLD):
    out = []
    for name, struct in options.items():
        out.append(f"export interface {name} {{")
        if isinstance(struct, str):
            out += node_options(header, struct, "  ")
        else:
            for group, inner in struct.items():
                out += [f"  {group}?: {{", *node_options(header, inner, "    "), "  };"]
        out += ["}", ""]
    out += ["/** Fields of the header's structures: 64-bit hashes are bigint. */",
            "export type Info<Numbers extends string, Hashes extends string = never, Texts extends string = never> = {",
            "  [field in Numbers]: number;", "} & { [field in Hashes]: bigint } & { [field in Texts]: string };", ""]
    for name, struct in told.items():
        out += node_told(header, name, struct)
    return out


# ---- the web: bindings/web/play_fields.c, exphil_names.js, exphil_play.d.ts ------------------------------------------

def web_kind(header, field):
    """As Node, whose C code follows pointers itself; of a nested array only a Melee frame has some."""
    inner = field.base if header.nested(field) else None
    if field.pointer and field.base != "char":
        return "F_POINTER", "NULL"
    if inner:
        return "F_STRUCT", inner.removeprefix("exphil_")
    if field.base == "size_t":
        return "F_U32", "NULL"
    return node_kind(header, field if field.base == "char" else field._replace(count=0)), "NULL"


def web_table(header, struct):
    known = {name: f"EXPHIL_MELEE_HAS_{group}" for group, names in notes.KNOWN.items() for name in names.split()}
    name = struct.removeprefix("exphil_")
    yield f"static const struct field {name}[] = {{"
    for field in header.plain(struct, notes.WEB_LEAVES):
        kind, of = web_kind(header, field)
        if kind == "F_STRUCT" and field.base not in notes.WEB:
            continue
        has = known.get(field.name, 0) if struct == "exphil_melee_character" else 0
        count = 1 if field.base == "char" else field.count or 1
        yield f'    {{"{field.name}", offsetof({struct}, {field.name}), {kind}, {count}, {has}, {of}}},'
    yield from ("    {NULL, 0, F_I32, 0, 0, NULL}", "};", "")


def web(header):
    out = [f"/* {MADE}", " * Which field of a C struct is which property of an object, in the order of the headers. */",
           '#include "play.h"', "", "/* clang-format off */"]
    for struct in notes.WEB:
        out += web_table(header, struct)
    out += ["const struct table play_structs[] = {"]
    for struct in notes.WEB:
        led = any(one.name == "struct_size" for one in header.all[struct])
        name = struct.removeprefix("exphil_")
        out.append(f'    {{"{name}", sizeof({struct}), {int(led)}, {name}}},')
    out += ["    {NULL, 0, 0, NULL}", "};", ""]
    for table, name in (("play_buttons", "Button"), ("play_known", "Known")):
        out += [*node_constants(header, table, name), ""]
    return out[:-1]


def web_names(header):
    return [line for line in node_names(header, [(None, struct) for struct in notes.WEB], "export default")
            if line != "'use strict';"]


def web_types(header):
    return node_types(header, notes.WEB_OPTIONS, notes.WEB_TOLD)


# ---- LuaJIT: bindings/luajit/exphil_cdef.lua ------------------------------------------------------------------------


def luajit_declarations(source):
    """The declarations of exphil.h, one a line; numbers that stand for sizes of arrays are put in."""
    text = re.sub(r"/\*.*?\*/", "", source, flags=re.S).replace("\\\n", " ")
    numbers = dict(re.findall(r"\n#define (EXPHIL_[A-Z_]+) +(\d+)(?!\w)", text))
    text = re.sub(r"\n#[^\n]*", "\n", re.sub(r"\n#[^\n]*", "\n", text))
    text = text.replace('extern "C" {', "").replace("EXPHIL_API ", "").replace("EXPHIL_NODISCARD ", "")
    text = re.sub(r"EXPHIL_[A-Z_]+", lambda found: numbers.get(found.group(), found.group()), text)
    text = re.sub(r"\s*\}\s*$", "", re.sub(r"\s+", " ", text).replace("( ", "("))
    depth, start = 0, 0
    for found in re.finditer(r"[{};]", text):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if found.group() == ";" and not depth:
            yield text[start:found.end()].strip()
            start = found.end()


def luajit_told(header, struct):
    """Counts become Lua numbers; hashes stay 64-bit numbers; texts become strings."""
    fields = [one for one in header.plain(struct, notes.LUAJIT_LEAVES) if not header.nested(one)]
    texts = [one.name for one in fields if one.base == "char"]
    hashes = [one.name for one in fields if one.note == notes.HASH]
    counts = [one.name for one in fields if one.base != "char" and not one.count and one.note != notes.HASH]
    yield f"        {struct} = {{"
    for name, names in (("counts", counts), ("hashes", hashes), ("texts", texts)):
        yield f'            {name} = "{" ".join(names)}",'
    yield "        },"


def luajit(header):
    version = re.findall(r"#define EXPHIL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.source)
    out = [f"-- {MADE}", "return {", f"    version = {{ {', '.join(version)} }},",
           "    -- What a structure that the library filled tells.", "    told = {"]
    for struct in notes.LUAJIT:
        out += luajit_told(header, struct)
    return [*out, "    },", "    declarations = [[", *luajit_declarations(header.source), "]],", "}"]


# ---- C#: bindings/csharp/Header.cs ----------------------------------------------------------------------------------

CSHARP_TYPES = {
    "int8_t": "sbyte", "uint8_t": "byte", "char": "byte", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int",
    "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "size_t": "UIntPtr", "float": "float", "double": "double",
    "exphil_status": "int", "exphil_log_level": "int"}


def pascal(name):
    return "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))


def csharp_struct(header, struct):
    yield from (f"        internal struct {struct}", "        {")
    for field in header.all[struct]:
        if field.pointer or field.base == "hook" or field.base in header.functions:
            yield f"            public IntPtr {field.name};"
        elif header.nested(field):
            yield f"            public fixed byte {field.name}[{max(field.count, 1) * header.size_of(field.base)}];"
        elif field.count:
            yield f"            public fixed {CSHARP_TYPES[field.base]} {field.name}[{field.count}];"
        else:
            yield f"            public {CSHARP_TYPES[field.base]} {field.name};"
    yield "        }"


def csharp_enum(header, name):
    public, summary = notes.CSHARP_ENUMS[name]
    bits = notes.ENUMS[name].get("kind") == notes.BITS
    members = ", ".join(f"{pascal(one.word)} = {one.value}" for one in header.enums[name])
    if summary:
        yield f"    /// <summary>{summary}</summary>"
    if bits:
        yield "    [Flags]"
    yield from (f"    public enum {public}{' : uint' if bits else ''} {{ {members} }}", "")


def csharp_value(field):
    """Type in C#, how it is told by raw, and how it is given to raw."""
    name = notes.CSHARP_WHETHER.get((field.struct, field.name)) or pascal(field.name)
    told = f"raw.{field.name}"
    if field.base == "char":
        return "string", name, f"Text({told})", f'pins.Text("{name}", {name})'
    if field.base == "exphil_spec":
        return "Spec", name, None, f"{name}.Lend(pins)"
    if field.pointer:
        return f"{CSHARP_TYPES[field.base]}?", name, None, f"pins.Add({name})"
    if field.note == notes.FLAG or name != pascal(field.name):
        return "bool", name, f"{told} != 0", "1"
    if field.note in notes.CSHARP_ENUMS:
        enum = notes.CSHARP_ENUMS[field.note][0]
        return enum, name, f"({enum}){told}", f"(int){name}"
    return CSHARP_TYPES[field.base], name, told, name


def csharp_told(name, struct, values):
    yield from (f"        internal static unsafe {name} Of({struct} raw)", "        {",
                f"            return new {name}", "            {")
    yield from (f"                {field} = {told}," for _, _, field, told, _ in values)
    yield from ("            };", "        }")


def csharp_given(struct, values):
    """What is zero is left as it is: the default, or what the library has put there."""
    pins = ", Pins pins" if any("pins" in given for *_, given in values) else ""
    yield from (f"        internal void Give(ref {struct} raw{pins})", "        {")
    for raw, kind, field, _, given in values:
        nothing = "null" if kind in ("string", "Spec") or kind.endswith("?") else "0"
        test = field if kind == "bool" else f"{field} != {nothing}"
        yield f"            if ({test}) raw.{raw} = {given};"
    yield "        }"


def csharp_class(header, name):
    structs, summary = notes.CSHARP_CLASSES[name]
    parts, types = {}, {}
    for struct in structs:
        plain = [one for one in header.plain(struct, notes.CSHARP_LEAVES) if one.base == "char" or not one.count]
        parts[struct] = [(one.name, *csharp_value(one)) for one in plain]
        for _, kind, field, _, _ in parts[struct]:
            types.setdefault(kind, []).append(field)
    if summary:
        yield f"    /// <summary>{summary}</summary>"
    yield from (f"    public sealed class {name}", "    {")
    for kind, fields in types.items():
        if (name, kind) in notes.CSHARP_LINES:
            yield f"        /// <summary>{notes.CSHARP_LINES[name, kind]}</summary>"
        line = f"        public {kind} {', '.join(fields)};"
        yield from textwrap.wrap(line, 130, subsequent_indent=" " * 12)
    for struct, values in parts.items():
        yield ""
        yield from csharp_given(struct, values) if struct in notes.GIVEN else csharp_told(name, struct, values)
    yield from ("    }", "")


def csharp(header):
    out = [f"// {MADE}", "// Structures as C has them, enumerations, and what is made of both for users.", "", "using System;",
           "using static Exphil.Native;", "", "namespace Exphil", "{", "    internal static unsafe partial class Native", "    {"]
    for struct in notes.CSHARP:
        out += csharp_struct(header, struct)
    out += ["    }", ""]
    for name in notes.CSHARP_ENUMS:
        out += csharp_enum(header, name)
    for name in notes.CSHARP_CLASSES:
        out += csharp_class(header, name)
    return out[:-1] + ["}"]


# ---- Python: bindings/python/src/exphil/records.py, constants.py ----------------------------------------------------


def python_type(header, field):
    if header.nested(field):
        return f"Tuple[{notes.PYTHON[field.base][0]}, ...]"
    if field.base == "char":
        return "str"
    one = "float" if field.base in ("float", "double") else "int"
    return f"Tuple[{one}, ...]" if field.count else one


def python_record(header, struct, name, doc):
    yield from ("", "", "@dataclass(frozen=True)", f"class {name}:")
    yield from (f'    """{doc}"""', "")
    for field in header.plain(struct):
        yield f"    {field.name}: {python_type(header, field)}"
    if name in notes.PYTHON_METHODS:
        yield notes.PYTHON_METHODS[name]


def python_records(header):
    """What is nested comes first, as in the header."""
    out = ['"""What the library tells about its objects, as frozen dataclasses. Their fields are those of the C structs, by name;',
           'times are nanoseconds (_ns) or frames (_frames), sizes bytes."""', f"# {MADE}",
           "from __future__ import annotations", "", "from dataclasses import dataclass", "from datetime import date, timedelta",
           "from typing import Dict, Optional, Tuple"]
    for struct, record in notes.PYTHON.items():
        out += python_record(header, struct, *record)
    out += ["", "", "STRUCTS: Dict[str, type] = {"]
    return out + [f'    "{struct}": {name},' for struct, (name, _) in notes.PYTHON.items()] + ["}"]


def python_constants(header):
    out = ['"""The library\'s enumerations. Wherever one is asked for, its number and its name in lower case do as well."""',
           f"# {MADE}", "from __future__ import annotations", "", "from enum import IntEnum, IntFlag", "",
           "from ._native import lib"]
    for name, enum in notes.ENUMS.items():
        if "doc" in enum:
            kind = "IntFlag" if enum.get("kind") == notes.BITS else "IntEnum"
            out += ["", "", f"class {name}({kind}):", f'    """{enum["doc"]}"""', ""]
            out += [f"    {one.word} = lib.{one.name}" for one in header.enums[name]]
    return out


# ---- all ------------------------------------------------------------------------------------------------------------

FILES = {
    "elixir/c_src/nif_tables.c": elixir,
    "node/addon_fields.c": node,
    "node/exphil_names.js": node_names,
    "web/play_fields.c": web,
    "web/exphil_names.js": web_names,
    "luajit/exphil_cdef.lua": luajit,
    "csharp/Header.cs": csharp,
    "python/src/exphil/records.py": python_records,
    "python/src/exphil/constants.py": python_constants,
}


# Files of which a part is made, between a line that holds the first of these and one that holds the second.
PARTS = {"node/exphil.d.ts": node_types, "web/exphil_play.d.ts": web_types}
BEGIN, END = f"// {MADE}", "// Written by hand from here on."


def part(old, made):
    before, begin, rest = old.partition(BEGIN + "\n")
    _, end, after = rest.partition(END + "\n")
    if not begin or not end:
        sys.exit("tools/abi_bindings.py: a file has no lines that say where its part begins and ends")
    return f"{before}{begin}{made}\n{end}{after}"


def texts(bindings, text, structs, size_of, source):
    """What every file must hold, by its path. text: the headers after the preprocessor; source: exphil.h."""
    header = Header(text, structs, size_of, source)
    whole = {bindings / path: "\n".join(make(header)) + "\n" for path, make in FILES.items()}
    parts = {bindings / path: part((bindings / path).read_text(), "\n".join(make(header))) for path, make in PARTS.items()}
    return {**whole, **parts}
