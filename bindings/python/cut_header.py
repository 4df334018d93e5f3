"""Cuts the declarations out of the installed C header, for cffi, which has no preprocessor.

What cffi can read is the text between the two extern "C" blocks, without comments, export macros and directives.
Constants stay: plain integers as they are (they size arrays), others as "...", which lets the C compiler tell.
"""
import os
import re
import shlex
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))
HEADERS = (
    "exphil.h", "conditions.h", "slp.h", "games.h", "plan.h", "notes.h", "examine.h", "learn.h", "match.h", "blocks.h", "live.h",
    "ranks.h", "ops.h")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DEFINE = re.compile(r"#\s*define\s+(EXPHIL_\w+)[ \t]+(.+)")
INTEGER = re.compile(r"\d+|0x[0-9A-Fa-f]+")
EXPRESSION = re.compile(r"(?:[\s()+*<|-]|\d|0x[0-9A-Fa-f]+|EXPHIL_\w+)+")


def pkg_config(*arguments):
    """Words that pkg-config prints about the installed library; it writes them for a shell, with "\\ " for a space."""
    try:
        done = subprocess.run(["pkg-config", "--print-errors", *arguments, "exphil"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit("exphil: pkg-config is not installed, and the build needs it to find libexphil") from None
    if done.returncode != 0:
        raise SystemExit("exphil: libexphil is not found; install it and set PKG_CONFIG_PATH\n" + done.stderr.strip())
    return shlex.split(done.stdout)


def read(name):
    """Text of an installed header, one of HEADERS."""
    folder = pkg_config("--variable=includedir")[0]
    with open(os.path.join(folder, "exphil", name), encoding="utf-8") as file:
        return file.read()


def version(text):
    """Version of the header, "0.2.0"."""
    numbers = [re.search(rf"#define EXPHIL_VERSION_{part} (\d+)\b", text) for part in ("MAJOR", "MINOR", "PATCH")]
    if not all(numbers):
        raise SystemExit("exphil: the header has no EXPHIL_VERSION_MAJOR, _MINOR and _PATCH")
    return ".".join(number.group(1) for number in numbers)


def description():
    """README.md as a package's description, which stands alone: relative links, which lead nowhere there, are said in words."""
    with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
        return re.sub(r"\[[^\]\n]*\]\((?:\.\./)+([^)\n]*)\)", r"`\1` of libexphil's source tree", file.read())


def between(text):
    """What stands inside extern "C", the closing block left out."""
    start = text.index('extern "C" {')
    start = text.index("#endif", start) + len("#endif")
    return text[start:text.rindex("#ifdef __cplusplus")]


def constant(line):
    """A directive as cffi wants it, or None: only constants stay."""
    found = DEFINE.fullmatch(line.strip())
    if not found:
        return None
    name, value = found.group(1), found.group(2).strip()
    if INTEGER.fullmatch(value):
        return f"#define {name} {value}"
    return f"#define {name} ..." if EXPRESSION.fullmatch(value) else None


def declarations(text):
    """All declarations of one header, ready for cffi."""
    lines = []
    body = COMMENT.sub(" ", between(text)).replace("\\\n", " ")
    for line in body.split("\n"):
        if line.lstrip().startswith("#"):
            line = constant(line)
        if line and line.strip():
            lines.append(re.sub(r"\bEXPHIL_(?:API|NODISCARD)\b\s*", "", line).rstrip())
    return "\n".join(lines) + "\n"


def all_declarations():
    """Those of all headers that the module has, in their order."""
    return "".join(declarations(read(name)) for name in HEADERS)


if __name__ == "__main__":
    print(all_declarations())
