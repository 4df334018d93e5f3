#!/bin/bash
# Python's wheels as people have them: nothing is installed but the wheel, cffi and NumPy. Here, on ARM under qemu, and on Windows
# under wine (its DLL and its program; there is no Python for Windows here) the same is learnt, played and written, to the last byte.
#   wheels.sh FOLDER PROGRAM        FOLDER: what tools/wheels made; PROGRAM: exphil of this machine
# build/wheels/house holds cffi and NumPy for both processors (tools/deps wheels).
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath "$1") exphil=$(realpath "$2")
systems=$source/tools/systems
house=$source/build/wheels/house
tools=$source/build/wheels/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
complain() { echo "FAILED: $*"; failed=1; }
fail() { complain "$*"; exit 1; }
skip() { echo "SKIPPED: $*"; }
same() { cmp "$1" "$2" || complain "$3"; }
wheel_of() { find "$folder" -maxdepth 1 -name "exphil-*$1.whl" | head -n 1; }
x86=$(wheel_of manylinux_2_17_x86_64) arm=$(wheel_of manylinux_2_17_aarch64) windows=$(wheel_of win_amd64)
[ -n "$x86$arm$windows" ] || fail "there is no wheel in $folder"
# Of the environment nothing gets in: no library of this build, no package of this machine's Python.
alone() { env -i HOME="$work" PATH=/usr/bin:/bin TMPDIR="$work" PYTHONDONTWRITEBYTECODE=1 "$@"; }

# ---- what is in them ----------------------------------------------------------------------------------------------------

# elf FILE: a shared library or program that asks nothing of the system but glibc 2.17, and carries nothing of its build.
elf() {
  name=$1/$(basename "$2")
  readelf -dW "$2" >dynamic
  grep -oE '\(NEEDED\).*\[(.*)\]' dynamic |
    grep -vE '\[(lib(c|m|dl|pthread|rt)\.so\.[0-9]|ld-linux[a-z0-9_-]*\.so\.[0-9]|libexphil\.so\.0)\]' &&
    complain "$name needs what not every system has"
  grep -E '\((RPATH|RUNPATH)\)' dynamic | grep -vF '[$ORIGIN]' && complain "$name looks elsewhere than beside itself"
  grep -qE 'FLAGS.*\bNOW\b' dynamic || complain "$name binds late"
  readelf -lW "$2" | grep -q GNU_RELRO || complain "$name can be written to after its start"
  readelf -SW "$2" | grep -qE '\.(symtab|debug_[a-z]+) ' && complain "$name is not stripped"
  return 0
}

unpack() { # WHEEL NAME TAG NATIVE-FILE...
  wheel=$1 name=$2
  shift 2
  "$tools/python3" "$source/tests/hosts/wheel_check.py" "$wheel" "$@" || complain "$name is not as a wheel should be"
  "$tools/python3" -m zipfile -e "$wheel" "$name"
  if grep -rlaF -e "$source" -e "$("$systems" folder native)" "$name"; then complain "$name names a folder of its build"; fi
  find "$name/exphil" \( -name 'libexphil.*' -o -name 'exphil-*.dll' \) -exec grep -laF libzstd {} + && complain "$name wants a libzstd"
  for licence in LICENSE LICENSE.zstd LICENSE.jansson; do
    [ -n "$(find "$name" -path "*.dist-info/licenses/$licence" -size +0)" ] || complain "$name has no $licence"
  done
}

for word in "x86_64 $x86" "aarch64 $arm"; do
  machine=${word%% *} wheel=${word#* }
  [ -n "$wheel" ] || { skip "no wheel for $machine"; continue; }
  unpack "$wheel" "$machine" "cp38-abi3-manylinux2014_$machine.manylinux_2_17_$machine" _native.abi3.so _xla.abi3.so libexphil.so.0
  for file in "$machine"/exphil/*.so "$machine"/exphil/*.so.0 "$machine"/exphil/bin/exphil; do elf "$machine" "$file"; done
  readelf -dW "$machine/exphil/libexphil.so.0" | grep -q NODELETE || complain "the library of $machine may be unloaded"
  "$source/tools/symbols" "$machine/exphil/libexphil.so.0" || complain "the library of $machine exports something else"
  "$tools/auditwheel" show "$wheel" >shown 2>&1 || complain "auditwheel: $(cat shown)"
  tr -s ' \n' ' ' <shown | grep -q "platform tag: \"manylinux_2_17_$machine\"" || { cat shown; complain "auditwheel names another tag"; }
  grep -q "following external shared libraries" shown && { cat shown; complain "auditwheel knows of libraries that are missing"; }
  "$tools/abi3audit" --strict "$wheel" >audited 2>&1 || { cat audited; complain "it asks Python for what 3.8 has not"; }
done
[ -z "$windows" ] || unpack "$windows" windows py3-none-win_amd64 exphil-0.dll exphil_python.dll
[ "$failed" -eq 0 ] || exit 1

# ---- here ---------------------------------------------------------------------------------------------------------------

"$exphil" drill --frames 3600 --out drill.slp >/dev/null
learn="train --quiet --port 1 --no-previous-action --blocks gru --hidden 32 --rate 0.01 --updates 60"
mkdir own
# shellcheck disable=SC2086
(cd own && "$exphil" $learn --out own.safetensors ../drill.slp >/dev/null)

if [ -n "$x86" ] && [ "$(uname -m)" = x86_64 ]; then
  alone "$("$tools/python3" -c 'import sys; print(sys._base_executable)')" -m venv venv
  alone venv/bin/python -m pip install -q --no-index --find-links "$house" --disable-pip-version-check "$x86" ||
    fail "pip does not install $x86"
  mkdir here && cd here
  alone ../venv/bin/python "$source/tests/systems/wheel_case.py" ../drill.slp . >lines || fail "the package does not work"
  cat lines
  # Another library that the loader would find does not take the place of the wheel's.
  mkdir other
  for name in $("$source/tools/symbols" --names); do [ "$name" = exphil_version ] || echo "int $name(void) { return 0; }"; done >older.c
  echo 'unsigned exphil_version(void) { return 9u; }' >>older.c
  cc -shared -fPIC -w -Wl,-soname,libexphil.so.0 -Wl,--version-script="$source/lib/abi/exphil.map" -o other/libexphil.so.0 older.c
  alone LD_LIBRARY_PATH="$PWD/other" ../venv/bin/python -c 'import exphil; print(exphil.library_path())' >found ||
    complain "a library of LD_LIBRARY_PATH takes the place of its own"
  # The program, by its name and as a module: it is the binary that runs, and its status is what is seen.
  "$exphil" --version >version
  # shellcheck disable=SC2086 # of several words
  for how in ../venv/bin/exphil "../venv/bin/python -m exphil_program" "../venv/bin/python -m exphil"; do
    alone $how --version >said || complain "$how does not run"
    same version said "$how is of another version"
    status=0
    alone $how no-such-command >/dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || complain "$how no-such-command ends with $status"
  done
  # From the wheel itself, which is an archive, it does not run, and says so; cffi and NumPy are there.
  if alone PYTHONPATH="$x86" ../venv/bin/python -c 'import exphil' >said 2>&1; then complain "it runs from an archive"; fi
  grep -q "ImportError: exphil cannot run from an archive" said || { cat said; complain "an archive is not explained"; }
  # The first example, as printed.
  awk '/^```python/ { on = 1; next } /^```/ { exit } on' "$source/bindings/python/README.md" >example.py
  alone ../venv/bin/python example.py >said 2>&1 && grep -q "^59 \[" said || { cat said; complain "the first example does not play"; }
  alone ../venv/bin/exphil drill --frames 3600 --out drill.slp >/dev/null || complain "drill"
  same ../drill.slp drill.slp "drill writes another replay"
  # shellcheck disable=SC2086
  alone ../venv/bin/exphil $learn --out own.safetensors ../drill.slp >/dev/null || complain "train"
  same ../own/own.safetensors own.safetensors "train gives other weights"
  # What it compresses others read, and it reads what others compress.
  alone ../venv/bin/exphil corpus --quiet --out packed.games ../drill.slp >/dev/null || complain "nothing is compressed"
  [ "$(wc -c <packed.games)" -lt $(($(wc -c <../drill.slp) / 4)) ] || complain "compressed is not smaller"
  "$exphil" corpus verify packed.games >/dev/null || complain "what the wheel compresses is not read"
  "$exphil" corpus verify case.games >/dev/null || complain "what Python compresses is not read"
  if "$exphil" corpus --quiet --out theirs.games ../drill.slp >/dev/null 2>&1; then
    alone ../venv/bin/exphil corpus verify theirs.games >/dev/null || complain "what libzstd compresses is not read"
  fi
  # Ctrl-C, to the process that was begun.
  # shellcheck disable=SC2086
  env -i PATH=/usr/bin:/bin ../venv/bin/exphil ${learn% *} 100000000 --log long.jsonl --out long.safetensors ../drill.slp \
    >/dev/null 2>err </dev/null &
  running=$!
  while kill -0 $running 2>/dev/null && ! [ -s long.jsonl ]; do sleep 0.1; done
  kill -INT $running
  status=0
  wait $running || status=$?
  [ "$status" -eq 130 ] && grep -q "stopped by Ctrl-C" err || complain "Ctrl-C: status $status: $(cat err)"
  # As on Windows, where the process stays and waits: its child's Ctrl-C is its own, and so is the status.
  mkdir -p as_windows/exphil/bin
  printf '#!/bin/sh\ntrap "exit 9" INT\necho ready >ready\nwhile :; do sleep 0.1; done\n' >as_windows/exphil/bin/exphil.exe
  chmod +x as_windows/exphil/bin/exphil.exe
  cp "$source/bindings/python/exphil_program.py" as_windows
  printf '%s\n' 'import signal, subprocess, sys' 'signal.signal(signal.SIGINT, signal.default_int_handler)' 'sys.platform = "win32"' \
    'sys.path.insert(0, "as_windows")' 'import exphil_program' 'sys.exit(exphil_program.main())' >as_windows/run.py
  setsid python3 as_windows/run.py &
  running=$!
  until [ -e ready ] || ! kill -0 $running 2>/dev/null; do sleep 0.1; done
  kill -INT -$running
  status=0
  wait $running || status=$?
  [ "$status" -eq 9 ] || complain "the entry for Windows ends with $status, its program with 9"
  cd ..
  echo "wheels: here as the program of this machine"
fi

# ---- ARM ----------------------------------------------------------------------------------------------------------------

if [ -n "$arm" ] && command -v qemu-aarch64-static >/dev/null && version=$("$systems" python aarch64-manylinux); then
  "$tools/python3" -m pip install -q --no-index --find-links "$house" --disable-pip-version-check --only-binary=:all: \
    --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_28_aarch64 --python-version "$version" --target arm-site "$arm" || fail "pip does not install $arm"
  mkdir arm && cd arm
  PYTHONPATH=$work/arm-site PYTHONDONTWRITEBYTECODE=1 "$systems" python aarch64-manylinux \
    "$source/tests/systems/wheel_case.py" ../drill.slp . >lines || fail "the package does not work on ARM"
  [ ! -e ../here/lines ] || same ../here/lines lines "on ARM something else came out"
  [ ! -e ../here/case.safetensors ] || same ../here/case.safetensors case.safetensors "Python on ARM learns other weights"
  # shellcheck disable=SC2086
  "$systems" run aarch64-manylinux ../arm-site/exphil/bin/exphil $learn --out own.safetensors ../drill.slp >/dev/null ||
    complain "train on ARM"
  same ../own/own.safetensors own.safetensors "train gives other weights on ARM"
  cd ..
  echo "wheels: on ARM as here"
else
  skip "a wheel on ARM: no wheel, no qemu, or no Python of Debian for it"
fi

# ---- Windows ------------------------------------------------------------------------------------------------------------

if [ -n "$windows" ] && { command -v wine64 || [ -x /usr/lib/wine/wine64 ]; } >/dev/null; then
  mkdir wine && cd wine
  program=../windows/exphil/bin/exphil.exe
  # shellcheck disable=SC2086
  "$systems" run x86_64-windows $program $learn --out own.safetensors ../drill.slp >/dev/null || complain "train on Windows"
  same ../own/own.safetensors own.safetensors "train gives other weights on Windows"
  "$systems" run x86_64-windows $program corpus --quiet --out packed.games ../drill.slp >/dev/null || complain "Windows compresses nothing"
  "$exphil" corpus verify packed.games >/dev/null || complain "what Windows compresses is not read"
  [ ! -e ../here/packed.games ] || same ../here/packed.games packed.games "Windows compresses otherwise"
  cd ..
  echo "wheels: on Windows as here"
else
  skip "a wheel on Windows: no wheel, or no wine"
fi

# ---- the kept bits, by the libraries themselves ---------------------------------------------------------------------------

programs=
for target in x86_64-manylinux aarch64-manylinux x86_64-windows; do
  case $target in
    x86_64-manylinux) package=x86_64/exphil linked=$package/libexphil.so.0 ;;
    aarch64-manylinux) package=aarch64/exphil linked=$package/libexphil.so.0 ;;
    x86_64-windows) package=windows/exphil linked=$("$systems" folder $target)/wheel/lib/libexphil.dll.a ;;
  esac
  [ -e "$package" ] || continue
  case $target in
    aarch64-manylinux) command -v qemu-aarch64-static >/dev/null || continue ;;
    x86_64-windows) { command -v wine64 || [ -x /usr/lib/wine/wine64 ]; } >/dev/null || continue ;;
  esac
  # Beside its library, which it finds there. The frames that it makes are to be those of every compiler.
  # shellcheck disable=SC2046
  "$(dirname "$("$systems" folder "$target")")/bin/$target-clang" -std=c11 -O1 -ffp-contract=off -fno-sanitize=undefined \
    -g0 -I"$source/include" -o "$package/bits.exe" "$source/tests/systems/bits.c" "$linked" \
    $([ "$target" = x86_64-windows ] || echo '-Wl,-rpath,$ORIGIN') || fail "the bits program is not linked to the library of $target"
  programs="$programs $target=$work/$package/bits.exe"
done
# shellcheck disable=SC2086
python3 "$source/tests/systems/bits.py" $programs || complain "a library of a wheel computes something else"
exit $failed
