#!/bin/sh
# The Python wheel for Windows, made here of a build for Windows: its files are as an installer wants them, its declarations those of
# the wheel that hosts.python_abi runs on this system, and its two DLLs load as cffi loads them, under wine. It was not run by a Python
# for Windows: none is to be had from the registries that this was made with.
#   python_windows.sh <source folder> <build folder> <cmake>
set -u
source=$1 build=$2 cmake=$3
python=${PYTHON:-/usr/bin/python3}
fail() { echo "FAILED: $*"; exit 1; }
"$python" -c "import cffi, pip" 2>/dev/null || { echo "SKIPPED: $python has no cffi and pip"; exit 0; }
command -v x86_64-w64-mingw32-gcc >/dev/null || { echo "SKIPPED: no x86_64-w64-mingw32-gcc"; exit 0; }
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
work=$build/tests/python
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
for component in library development; do
  "$cmake" --install "$build" --component $component --prefix "$work/installed" >install.log 2>&1 || { cat install.log; exit 1; }
done
cp -R "$source/bindings/python" source
"$python" source/build_wheel.py --tag win_amd64 --prefix installed --cc x86_64-w64-mingw32-gcc dist >wheel.log 2>&1 ||
  { cat wheel.log; fail "no wheel"; }
made=$(ls dist)
"$python" "$source/tests/hosts/wheel_check.py" "dist/$made" py3-none-win_amd64 exphil-0.dll exphil_python.dll ||
  fail "the wheel is not as it should be"
# pip for Windows takes it, pip for another system does not.
pip_for() { # PLATFORM VERSION FOLDER
  "$python" -m pip install -q --no-deps --no-index --only-binary=:all: --platform "$1" --python-version "$2" --target "$3" \
    "dist/$made" >pip.log 2>&1
}
for version in 3.8 3.11 3.14; do
  pip_for win_amd64 $version "site$version" || { cat pip.log; fail "pip refuses it for Python $version"; }
done
if pip_for win32 3.11 site32; then fail "pip takes it for Windows of 32 bits"; fi
folder=$work/site3.11/exphil
cmp "$folder/exphil-0.dll" installed/bin/exphil-0.dll || fail "it carries another DLL"
# cffi knows the same of it as of the wheel for this system: declarations have no system.
"$python" - source installed/include "$folder/_declared.py" <<'END' || fail "the declarations are others"
import sys
sys.path.insert(0, sys.argv[1])
import build_wheel, cffi
made = cffi.FFI()
made.cdef(build_wheel.declarations(sys.argv[2]))
made.set_source("exphil._declared", None)
made.emit_python_code("again.py")
sys.exit(open("again.py").read() != open(sys.argv[3]).read())
END
# Every function that is declared is in the one DLL or the other.
"$python" - "$folder" <<'END' || fail "what is declared is not there"
import re, subprocess, sys
sys.path.insert(0, sys.argv[1])
text = open(f"{sys.argv[1]}/_declared.py").read()
# Before a function's name stands the code of what is found in a library.
told = set(re.findall(r"\\x23(exphil_\w+)'", text[text.index("_globals"):text.index("_struct_unions")]))
has = set()
for name in ("exphil-0.dll", "exphil_python.dll"):
    said = subprocess.run(["llvm-readobj", "--coff-exports", f"{sys.argv[1]}/{name}"], check=True, capture_output=True, text=True).stdout
    has |= set(re.findall(r"^  Name: (\S+)$", said, re.M))
missing = {name for name in told - has if name not in ("exphil_py_library_path",)}
print(len(told), "functions", sorted(missing))
sys.exit(bool(missing) or len(told) < 190)
END
llvm-readobj --coff-imports "$folder/exphil_python.dll" | sed -n 's/^  Name: //p' >needs
[ -s needs ] || fail "the helper needs nothing, it is said"
if grep -viE '^(kernel32|msvcrt|ucrtbase|exphil-0|api-ms-win-[a-z0-9-]*)\.dll$' needs; then fail "the helper needs what nobody brings"; fi
# As cffi opens them: by their paths, the library first; the helper finds it by its name.
cat >open.c <<'END'
#include <stdio.h>
#include <windows.h>
typedef unsigned version_function(void);
typedef const void *table_function(void);
int wmain(int argc, wchar_t **argv)
{
    HMODULE library = argc > 2 ? LoadLibraryW(argv[1]) : NULL, helper = library ? LoadLibraryW(argv[2]) : NULL;
    version_function *version = helper ? (version_function *)(void (*)(void))GetProcAddress(library, "exphil_version") : NULL;
    table_function *table = helper ? (table_function *)(void (*)(void))GetProcAddress(helper, "exphil_py_op_table") : NULL;
    if (!version || !table || !table()) return 1;
    printf("%u\n", version());
    return 0;
}
END
x86_64-w64-mingw32-gcc -municode -o open.exe open.c || fail "the loader does not compile"
mkdir -p "site3.11/spaces and Größe"
cp "$folder"/*.dll "site3.11/spaces and Größe"
for place in "$folder" "$work/site3.11/spaces and Größe"; do
  "$source/tools/systems" run x86_64-windows ./open.exe "$place/exphil-0.dll" "$place/exphil_python.dll" >open.log 2>&1 ||
    { cat open.log; fail "the DLLs in $place are not loaded"; }
done
if "$source/tools/systems" run x86_64-windows ./open.exe "$folder/nothing.dll" "$folder/exphil_python.dll" >open.log 2>&1; then
  fail "the helper runs without the library"
fi
echo "$made"
