"""Instructions of sm_90, as nvdisasm writes them, in the form that the machine (machine/machine.h) runs. What is not known here
is refused by name: a guess would count wrong."""
import re
import struct

OPS = ("NOTHING UNKNOWN MOV CS2R IMAD IADD3 VIADD IABS MINMAX LEA SHF LOP3 PLOP3 PRMT SEL ISETP FSETP DSETP FCHK R2P P2R S2R LDC"
       " R2UR VOTE SHFL FLO BREV POPC I2F F2I RCP GLOBAL SHARED LOCAL COPY MATRIX BRA BSSY BSYNC BREAK CALL RET EXIT BAR WARPSYNC"
       " BMSK SGXT").split()
NUMBER = {name: i for i, name in enumerate(OPS)}
REGISTER, IMMEDIATE, PREDICATE, CONSTANT, MEMORY, TARGET, BARRIER, SPECIAL, IGNORED = range(9)
NEGATIVE, ABSOLUTE, INVERTED, WIDE, WIDE_UNIFORM = 1, 2, 4, 16, 32
(OP_X, OP_WIDE, OP_HI, OP_U32, OP_EX, OP_OR, OP_XOR, OP_RIGHT, OP_64, OP_SIGNED, OP_SX32, OP_ALL, OP_UNIFORM, OP_DIV, OP_SH,
 OP_STORE, OP_LOAD, OP_BF) = (1 << i for i in range(18))
RZ, URZ, UNIFORM = 255, 319, 256
LESS, EQUAL, GREATER, UNORDERED = 1, 2, 4, 8
COMPARE = {"F": 0, "LT": LESS, "EQ": EQUAL, "LE": LESS | EQUAL, "GT": GREATER, "NE": LESS | GREATER, "GE": GREATER | EQUAL,
           "T": 15, "NUM": 7, "NAN": 8, "LTU": 9, "EQU": 10, "LEU": 11, "GTU": 12, "NEU": 13, "GEU": 14}
EXCHANGE = {"IDX": 0, "BFLY": 1, "UP": 2, "DOWN": 3}
SPECIALS = {"SR_TID.X": 0, "SR_TID.Y": 1, "SR_TID.Z": 2, "SR_CTAID.X": 3, "SR_CTAID.Y": 4, "SR_CTAID.Z": 5, "SR_LANEID": 6,
            "SRZ": 7, "SR_CgaCtaId": 8, "SR_EQMASK": 9, "SR_LTMASK": 10, "SR_GTMASK": 11, "SR_CLOCKLO": 12, "SR_CLOCKHI": 12,
            "SR_SWINHI": 13, "SR_GLOBALTIMERLO": 12, "SR_GLOBALTIMERHI": 12, "SR_VIRTUALSMID": 12, "SR_VIRTUALID": 12,
            "SR_NSMID": 12}


class Unknown(Exception):
    """An instruction that this does not know."""


# ---- instructions without effect on integers ----

# Registers that the result takes; all of them are unknown.
FLOATS = {"FFMA": 1, "FMUL": 1, "FADD": 1, "FMNMX": 1, "MUFU": 1, "FSET": 1, "FSWZADD": 1, "FRND": 1, "F2FP": 1, "F2F": 1,
          "FSEL": 1, "I2FP": 1, "HADD2": 1, "HMUL2": 1, "HFMA2": 1, "HMNMX2": 1, "HSET2": 1, "HSETP2": 0, "IDP": 1, "DADD": 2,
          "DMUL": 2, "DFMA": 2, "DSET": 1, "FMNMX3": 1,
          "IMMA": 4, "MOVM": 1, "MATCH": 1, "REDUX": 1, "I2I": 1, "MAPA": 2, "QSPC": 1}
# Moves between registers and memory, and waiting, in which nothing is known or waited for.
NOTHING = ("NOP YIELD PREEXIT ACQBULK ENDCOLLECTIVE MEMBAR ERRBAR CGAERRBAR CCTL CCTLL DEPBAR LDGDEPBAR NANOSLEEP WARPSYNC_ALL"
           " UCGABAR_ARV UCGABAR_WAIT ARRIVES FENCE KILL PMTRIG LEPC BPT").split()
# Modifiers that change nothing of what is counted here.
PLAIN = set("MOV SHL IADD REL NOINC NODEC SYNC DEFER_BLOCKING COLLECTIVE".split())


def float_bits(text):
    special = {"+INF": 0x7f800000, "INF": 0x7f800000, "-INF": 0xff800000, "+QNAN": 0x7fffffff, "QNAN": 0x7fffffff,
               "-QNAN": 0xffffffff, "+SNAN": 0x7fbfffff, "-SNAN": 0xffbfffff}
    return special[text] if text in special else struct.unpack("<I", struct.pack("<f", float(text)))[0]


def half_bits(text):
    special = {"+INF": 0x7c00, "INF": 0x7c00, "-INF": 0xfc00, "+QNAN": 0x7fff, "QNAN": 0x7fff, "-QNAN": 0xffff, "+SNAN": 0x7dff,
               "-SNAN": 0xfdff}
    return special[text] if text in special else struct.unpack("<H", struct.pack("<e", float(text)))[0]


# ---- operands ----


def split(text):
    """At commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(text[last:i].strip())
            last = i + 1
    rest = text[last:].strip()
    return parts + [rest] if rest else parts


def register(word):
    """Number of a register, or None."""
    if word in ("RZ", "URZ", "SRZ"):
        return URZ if word == "URZ" else RZ
    found = re.fullmatch(r"(U?)R(\d+)", word)
    return (UNIFORM if found[1] else 0) + int(found[2]) if found else None


def predicate(word):
    found = re.fullmatch(r"(U?)P(T|\d)", word)
    return (8 if found[1] else 0) + (7 if found[2] == "T" else int(found[2])) if found else None


def operand(kind, number=0, flags=0, value=0, uniform=-1, scale=0):
    return (kind, number, flags, value, uniform, scale)


def address(text):
    """[R4.64+UR6+0x10]"""
    number, flags, value, uniform, scale = -1, 0, 0, -1, 1
    for part in re.sub(r"\+-", "+~", text).split("+"):
        word, _, how = part.partition(".")
        known = register(word)
        if known is None:
            value += -int(part[1:], 16) if part.startswith("~") else int(part, 16)
        elif known >= UNIFORM:
            uniform = known
            flags |= WIDE_UNIFORM if how == "64" else 0
        else:
            number = known
            flags |= WIDE if how == "64" else 0
            if how.startswith("X"):
                scale = int(how[1:])
            elif how not in ("", "64", "U32"):
                raise Unknown(f"address [{text}]")
    return operand(MEMORY, number, flags, value, uniform, scale)


def constant(bank, text):
    number, value = -1, 0
    for part in text.split("+"):
        known = register(part)
        if known is None:
            value += int(part, 16)
        else:
            number = known
    return operand(CONSTANT, number, 0, value, 0 if bank == 0 else 1)


def operand_of(text, labels, floats):
    flags = 0
    text = text.replace(".reuse", "")
    while text and text[0] in "-~!|" and not re.match(r"-[0-9]|-INF|-QNAN|-SNAN", text):
        flags |= {"-": NEGATIVE, "~": INVERTED, "!": INVERTED, "|": ABSOLUTE}[text[0]]
        text = text[1:]
    text = text.rstrip("|")
    if found := re.fullmatch(r"(?:desc\[UR\d+\])?\[(.*)\]", text):
        return address(found[1])
    if found := re.fullmatch(r"c\[0x([0-9a-f]+)\]\[(.*)\](?:\.\w+)*", text):
        kind, number, _, value, uniform, scale = constant(int(found[1], 16), found[2])
        return (kind, number, flags, value, uniform, scale)
    if found := re.fullmatch(r"`\((.*)\)", text):
        if found[1] not in labels:
            raise Unknown(f"jump to {found[1]}")
        return operand(TARGET, 0, 0, labels[found[1]])
    word, *more = text.split(".")
    known = register(word)
    if known is not None:
        byte = next((int(m[1]) for m in more if re.fullmatch(r"B\d", m)), 0)
        return operand(REGISTER, known, flags, 0, -1, byte)
    known = predicate(word)
    if known is not None:
        return operand(PREDICATE, known, flags)
    if re.fullmatch(r"B\d+", word):
        return operand(BARRIER, int(word[1:]))
    if text in SPECIALS:
        return operand(SPECIAL, SPECIALS[text])
    if text.startswith("SR"):
        raise Unknown(f"special register {text}")
    if text in ("PR", "UPR"):
        return operand(IGNORED)
    if found := re.fullmatch(r"(-?)0x([0-9a-f]+)", text):
        value = int(found[2], 16)
        return operand(IMMEDIATE, 0, 0, -value if found[1] else value)
    if re.fullmatch(r"[+-]?(\d.*|INF|QNAN|SNAN)", text):
        value = float_bits(text) if floats else int(float(text))
        if flags & NEGATIVE:
            value ^= 0x80000000
        return operand(IMMEDIATE, 0, 0, value)
    raise Unknown(f"operand {text}")


# ---- instructions ----


def bytes_of(modifiers):
    for word, count in (("128", 16), ("64", 8), ("U16", 2), ("S16", 2), ("U8", 1), ("S8", 1), ("16", 2), ("8", 1)):
        if word in modifiers:
            return count
    return 4


def move_shape(operands):
    """Destination or RZ, address, source or RZ."""
    at = next(i for i, o in enumerate(operands) if o[0] == MEMORY)
    before = [o for o in operands[:at] if o[0] == REGISTER]
    behind = [o for o in operands[at + 1:] if o[0] == REGISTER]
    none = operand(REGISTER, RZ)
    return [before[-1] if before else none, operands[at], behind[0] if behind else none]


def signed(modifiers):
    return OP_SIGNED if any(re.fullmatch(r"S(8|16|32|64)", m) for m in modifiers) else 0


SPACES = {"LDG": ("GLOBAL", OP_LOAD), "STG": ("GLOBAL", OP_STORE), "LD": ("GLOBAL", OP_LOAD), "ST": ("GLOBAL", OP_STORE),
          "ATOMG": ("GLOBAL", OP_LOAD | OP_STORE), "ATOM": ("GLOBAL", OP_LOAD | OP_STORE), "RED": ("GLOBAL", OP_LOAD | OP_STORE),
          "REDG": ("GLOBAL", OP_LOAD | OP_STORE), "LDS": ("SHARED", OP_LOAD), "STS": ("SHARED", OP_STORE),
          "ATOMS": ("SHARED", OP_LOAD | OP_STORE), "LDL": ("LOCAL", OP_LOAD), "STL": ("LOCAL", OP_STORE)}
UNIFORMS = {"UIADD3": "IADD3", "UIMAD": "IMAD", "ULEA": "LEA", "USHF": "SHF", "ULOP3": "LOP3", "UISETP": "ISETP", "UPLOP3": "PLOP3",
            "USEL": "SEL", "UMOV": "MOV", "UPRMT": "PRMT", "UFLO": "FLO", "UBREV": "BREV", "UPOPC": "POPC", "ULDC": "LDC",
            "UP2UR": "P2R", "UR2UP": "R2P", "VOTEU": "VOTE", "S2UR": "S2R", "UBMSK": "BMSK", "USGXT": "SGXT", "UIABS": "IABS",
            "UVIADD": "VIADD"}
USED = {"IMAD": "X WIDE HI U32", "IADD3": "X", "LEA": "X HI SX32", "SHF": "L R U32 S32 U64 S64 HI", "LOP3": "LUT", "PLOP3": "LUT",
        "ISETP": "U32 EX AND OR XOR", "LDC": "64 128 U8 S8 U16 S16", "VOTE": "ANY ALL", "FLO": "U32 SH", "BAR": "SYNC ARV",
        "WARPSYNC": "ALL", "BRA": "DIV U", "CS2R": "32", "VIMNMX": "U32",
        "VIMNMX3": "U32", "VIADDMNMX": "U32", "IMNMX": "U32", "SGXT": "U32"}


class Decoder:
    """The instructions of one kernel; `rule(index)` says whether a jump is taken whose predicate is not known."""

    def __init__(self, code, labels, rule):
        self.code, self.labels, self.rule = code, labels, rule

    def all(self):
        return [self.one(index, *line) for index, line in enumerate(self.code)]

    def one(self, index, guard, name, text):
        try:
            return self.decode(index, guard, name, text)
        except Unknown as what:
            raise Unknown(f"{name}{text}: {what}") from None

    def decode(self, index, guard, name, text):
        base, *modifiers = name.split(".")
        flags = 0
        if base in UNIFORMS:
            base, flags = UNIFORMS[base], OP_UNIFORM
        floats = base.startswith(("F", "D", "MUFU", "HADD2")) and base != "FLO"
        if base == "HFMA2" and (found := re.fullmatch(r" (R\d+), -RZ, RZ, ([^,]+), ([^,]+)", text.replace(".reuse", ""))):
            value = half_bits(found[2]) << 16 | half_bits(found[3])
            operands = [operand(REGISTER, register(found[1])), operand(IMMEDIATE, 0, 0, value)]
            return self.line(guard, "MOV", flags, 0, 0, operands)
        if base in FLOATS and base != "FSEL" and name != "MUFU.RCP":
            operands = self.results(split(text))
            return self.line(guard, "UNKNOWN", 0, self.width(base, modifiers), 0, operands)
        if base in NOTHING:
            return self.line(guard, "NOTHING", 0, 0, 0, [])
        if base == "RET":
            return self.line(guard, "RET", 0, 0, 0, [operand(REGISTER, register(text.split()[0]))])
        operands = [operand_of(part, self.labels, floats) for part in split(text)]
        return self.special(index, guard, base, modifiers, flags, operands)

    def results(self, parts):
        """What an instruction writes comes first: predicates, then a register."""
        found = []
        for part in parts:
            one = operand_of(part, self.labels, True) if re.match(r"U?[RP]", part) else None
            if one is None or one[0] not in (REGISTER, PREDICATE):
                break
            found.append(one)
            if one[0] == REGISTER:
                break
        return found

    def width(self, base, modifiers):
        if base == "F2F":
            return 2 if modifiers[:1] == ["F64"] else 1
        return FLOATS[base]

    def line(self, guard, op, flags, what, rule, operands):
        number, inverted = 7, 0
        if guard:
            number, inverted = predicate(guard.lstrip("!")), INVERTED if guard[0] == "!" else 0
        return (NUMBER[op], number, inverted, flags, what, rule, operands)

    def special(self, index, guard, base, modifiers, flags, operands):
        if base in SPACES:
            op, how = SPACES[base]
            return self.line(guard, op, how | signed(modifiers), bytes_of(modifiers), 0, move_shape(operands))
        if base in ("HMMA", "LDSM"):
            count = (int(modifiers[-1]) if base == "LDSM" and modifiers[-1].isdigit() else
                     1 if base == "LDSM" else 4 if "F32" in modifiers else 2)
            return self.line(guard, "MATRIX", 0, count, 0, operands[:1])
        if base == "LDGSTS":
            return self.line(guard, "COPY", OP_LOAD, bytes_of(modifiers), 0, [o for o in operands if o[0] == MEMORY])
        if base == "MUFU":
            base, modifiers = "RCP", []
        method = getattr(self, "do_" + base.lower(), None)
        known = set(USED.get(base, "").split())
        strange = [m for m in modifiers if m not in PLAIN and m not in known and not (method and base in ("ISETP", "FSETP", "DSETP",
                                                                                                       "SHFL", "I2F", "F2I"))]
        if strange or (base not in NUMBER and not method):
            raise Unknown(f"modifier {strange[0]}" if strange else "no such instruction")
        if method:
            return method(index, guard, modifiers, flags, operands)
        for word, bit in (("X", OP_X), ("WIDE", OP_WIDE), ("HI", OP_HI), ("U32", OP_U32), ("SX32", OP_SX32), ("ALL", OP_ALL),
                          ("SH", OP_SH)):
            flags |= bit if word in modifiers else 0
        return self.line(guard, base, flags, 0, 0, operands)

    # ---- those with ways of their own ----

    def do_shf(self, index, guard, modifiers, flags, operands):
        flags |= OP_RIGHT if "R" in modifiers else 0
        flags |= OP_HI if "HI" in modifiers else 0
        flags |= OP_64 if "U64" in modifiers or "S64" in modifiers else 0
        flags |= OP_SIGNED if "S32" in modifiers or "S64" in modifiers else 0
        return self.line(guard, "SHF", flags, 0, 0, operands)

    def compared(self, guard, op, modifiers, flags, operands):
        flags |= OP_OR if "OR" in modifiers else OP_XOR if "XOR" in modifiers else 0
        flags |= OP_EX if "EX" in modifiers else 0
        flags |= OP_U32 if "U32" in modifiers else 0
        words = [m for m in modifiers if m in COMPARE]
        strange = [m for m in modifiers if m not in COMPARE and m not in "AND OR XOR EX U32 FTZ".split()]
        if len(words) != 1 or strange:
            raise Unknown("comparison")
        return self.line(guard, op, flags, COMPARE[words[0]], 0, operands)

    def do_isetp(self, index, guard, modifiers, flags, operands):
        return self.compared(guard, "ISETP", modifiers, flags, operands)

    def do_fsetp(self, index, guard, modifiers, flags, operands):
        return self.compared(guard, "FSETP", modifiers, flags, operands)

    def do_dsetp(self, index, guard, modifiers, flags, operands):
        less = {"MIN": "LT", "MAX": "GT"}  # the half of a minimum that says which
        return self.compared(guard, "DSETP", [less.get(m, m) for m in modifiers], flags, operands)

    def do_fsel(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "SEL", flags, 0, 0, operands)

    def do_vimnmx(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "MINMAX", flags | (OP_U32 if "U32" in modifiers else 0), 0, 0, operands)

    do_imnmx = do_vimnmx3 = do_vimnmx

    def do_viaddmnmx(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "MINMAX", flags | (OP_U32 if "U32" in modifiers else 0), 1, 0, operands)

    def do_ldc(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "LDC", flags | signed(modifiers), bytes_of(modifiers), 0, operands)

    def do_shfl(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "SHFL", flags, EXCHANGE[modifiers[0]], 0, operands)

    def do_cs2r(self, index, guard, modifiers, flags, operands):
        source = operand(REGISTER, RZ) if operands[1] == operand(SPECIAL, 7) or operands[1][0] == REGISTER else operands[1]
        return self.line(guard, "CS2R", flags | (0 if "32" in modifiers else OP_64), 0, 0, [operands[0], source])

    def do_i2f(self, index, guard, modifiers, flags, operands):
        """Source types; U32 where none is told, S32 is the default."""
        if modifiers and modifiers[0] == "F64":
            return self.line(guard, "UNKNOWN", 0, 2, 0, operands[:1])
        if set(modifiers) - {"U32", "S32", "U64", "S64", "RP", "RZ", "RM", "RN"}:
            return self.line(guard, "UNKNOWN", 0, 1, 0, operands[:1])
        wide = "U64" in modifiers or "S64" in modifiers
        flags |= 0 if "U32" in modifiers or "U64" in modifiers else OP_SIGNED
        return self.line(guard, "I2F", flags | (OP_64 if wide else 0), 0, 0, operands)

    def do_f2i(self, index, guard, modifiers, flags, operands):
        if set(modifiers) - {"FTZ", "U32", "S32", "U64", "S64", "TRUNC", "NTZ"} or "TRUNC" not in modifiers:
            wide = "U64" in modifiers or "S64" in modifiers
            return self.line(guard, "UNKNOWN", 0, 2 if wide else 1, 0, operands[:1])
        flags |= 0 if "U32" in modifiers or "U64" in modifiers else OP_SIGNED
        return self.line(guard, "F2I", flags | (OP_64 if "U64" in modifiers or "S64" in modifiers else 0), 0, 0, operands)

    def do_rcp(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "RCP", 0, 0, 0, operands)

    def do_bra(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "BRA", flags | (OP_DIV if "DIV" in modifiers else 0), 0, self.rule(index), operands)

    def do_exit(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "EXIT", 0, 0, self.rule(index), operands)

    def do_bar(self, index, guard, modifiers, flags, operands):
        if "SYNC" not in modifiers:
            return self.line(guard, "NOTHING", 0, 0, 0, [])
        return self.line(guard, "BAR", 0, int(len(operands) > 1), 0, [])

    def do_warpsync(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "WARPSYNC", OP_ALL if "ALL" in modifiers else 0, 0, 0, [])

    def do_vote(self, index, guard, modifiers, flags, operands):
        return self.line(guard, "VOTE", flags | (OP_ALL if "ALL" in modifiers else 0), 0, 0, operands)


def text_of(instructions):
    """As the machine reads them."""
    lines = []
    for op, guard, guard_flags, flags, what, rule, operands in instructions:
        words = [op, guard, guard_flags, flags, what, rule, len(operands)]
        lines.append(" ".join(map(str, words + [n for o in operands for n in o])))
    return "\n".join(lines)
