#!/bin/sh
# The archive for Windows (tools/packages windows), unpacked: it needs nothing but Windows, names no folder of its build, and under wine
# its program learns and plays with the bits of this machine; a program that mingw links by its exphil.pc, and one that CMake finds it
# for, train and play beside its DLL.
#   windows.sh [FOLDER]      what release/twice made, or the packages there
set -eu
fail() { echo "windows: $*" >&2; exit 1; }
out=$(realpath "${1:-$EXPHIL_BUILD/hosts/release.packages}")
for tool in x86_64-w64-mingw32-gcc x86_64-w64-mingw32-objdump wine64 unzip; do
  command -v $tool >/dev/null || [ -x "/usr/lib/wine/$tool" ] || { echo "SKIPPED: no $tool"; exit 0; }
done
unzip -q "$out"/exphil-*-windows-x86_64.zip
top=$(echo exphil-*-windows-x86_64)
for file in bin/exphil.exe bin/exphil-0.dll lib/libexphil.dll.a lib/exphil.lib lib/pkgconfig/exphil.pc include/exphil/exphil.h \
  LICENSE.txt LICENSE.zstd.txt LICENSE.jansson.txt; do
  [ -s "$top/$file" ] || fail "there is no $file"
done
"$EXPHIL_SOURCE/tools/symbols" "$top/bin/exphil-0.dll" || fail "the DLL exports something else"
for file in exphil.exe exphil-0.dll; do
  x86_64-w64-mingw32-objdump -p "$top/bin/$file" | sed -n 's/^.*DLL Name: //p' >needs
  [ -s needs ] || fail "$file needs nothing, it is said"
  if grep -viE '^(kernel32|advapi32|ws2_32|bcrypt|ntdll|shell32|msvcrt|ucrtbase|api-ms-win-[a-z0-9-]*)\.dll$' needs; then
    fail "$file needs what Windows has not"
  fi
done
if grep -rlaF -e "$EXPHIL_SOURCE" "$top"; then fail "these name a folder of the build"; fi
windows() { "$EXPHIL_SOURCE/tools/systems" run x86_64-windows "$@"; }
mkdir here there
(
  cd here
  "$EXPHIL_PREFIX/bin/exphil" drill --frames 1800 --out drill.slp
  "$EXPHIL_PREFIX/bin/exphil" train --quiet --port 1 --no-previous-action --blocks gru --hidden 32 --rate 0.01 --updates 60 \
    --out drill.safetensors drill.slp
  "$EXPHIL_PREFIX/bin/exphil" drill --seed 2 drill.safetensors >score
) >log 2>&1 || { cat log; fail "here"; }
(
  cd there
  windows "../$top/bin/exphil.exe" drill --frames 1800 --out drill.slp
  windows "../$top/bin/exphil.exe" train --quiet --port 1 --no-previous-action --blocks gru --hidden 32 --rate 0.01 --updates 60 \
    --out drill.safetensors drill.slp
  windows "../$top/bin/exphil.exe" drill --seed 2 drill.safetensors >score
) >log 2>&1 || { cat log; fail "under wine"; }
for file in drill.slp drill.safetensors; do cmp here/$file there/$file || fail "$file has other bits than here"; done
hits() { sed -n 's/^.* \([0-9]* hits\).*/\1/p' "$1/score"; }
[ -n "$(hits here)" ] && [ "$(hits here)" = "$(hits there)" ] || fail "another score: $(hits there)"
# Programs of somebody's, in another folder than the one it was made in.
mv "$top" "moved to another folder"
top=$PWD/"moved to another folder"
(
  unset PKG_CONFIG_PATH
  PKG_CONFIG_LIBDIR="$top/lib/pkgconfig" pkg-config --cflags --libs exphil
) | xargs x86_64-w64-mingw32-gcc -O2 -o rows.exe "$EXPHIL_SOURCE/examples/rows.c" || fail "mingw does not link"
cp "$top/bin/exphil-0.dll" .
windows ./rows.exe | tr -d '\r' >rows.said || fail "the program does not run"
# The static library, by the compiler that made it, where that is.
zig=$EXPHIL_SOURCE/build/zig/bin/python3
if [ -x "$zig" ]; then
  "$zig" -m ziglang cc -target x86_64-windows-gnu -O2 -fno-sanitize=undefined "$EXPHIL_SOURCE/examples/rows.c" -I"$top/include" \
    "$top/lib/libexphil.a" -o static.exe || fail "the static library is not linked"
  mkdir lonely && mv static.exe lonely
  windows lonely/static.exe | tr -d '\r' >static.said || fail "the program with the static library does not run"
  cmp rows.said static.said || fail "the static library learns different things"
fi
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(host C)
find_package(exphil REQUIRED)
add_executable(host ${ROWS})
target_link_libraries(host PRIVATE exphil::exphil)
END
cmake -S project -B project/build -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc \
  -DCMAKE_RC_COMPILER=x86_64-w64-mingw32-windres -DCMAKE_PREFIX_PATH="$top" -DROWS="$EXPHIL_SOURCE/examples/rows.c" >log 2>&1 &&
  cmake --build project/build >>log 2>&1 || { cat log; fail "CMake does not find it"; }
cp "$top/bin/exphil-0.dll" project/build
windows project/build/host.exe | tr -d '\r' >host.said || fail "the program that CMake built does not run"
cmp rows.said host.said || fail "two programs learn different things"
grep -q '^policy: *score *[1-9]' rows.said || { cat rows.said; fail "it has not learnt"; }
echo "windows: exphil.exe and programs beside exphil-0.dll learn and play as here"
