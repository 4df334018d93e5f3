#!/bin/sh
# The DLL as programs use it: installed, it exports the functions of the headers and needs nothing but Windows; a program that mingw
# links, one that CMake finds it for, and one by the rules of Microsoft's compiler (clang-cl, lld-link, exphil.lib) train and play with
# it under wine, and all print the same. Without Microsoft's run-time the last one begins in tests/abi/msvc/start.c.
#   dll.sh <source folder> <build folder> <cmake>
set -u
source=$1 build=$2 cmake=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }
there() { command -v "$1" >/dev/null || { echo "SKIPPED: no $1"; return 1; }; }

for component in library development; do
  "$cmake" --install "$build" --component $component --prefix "$work/a prefix" >install.log 2>&1 || { cat install.log; exit 1; }
done
installed="$work/a prefix"
for file in bin/exphil-0.dll lib/libexphil.dll.a lib/exphil.lib lib/exphil.def; do
  [ -s "$installed/$file" ] || fail "$file is not installed"
  "$source/tools/symbols" "$installed/$file" >said 2>&1 || { cat said; fail "$file has not the functions of the headers"; }
done

llvm-readobj --coff-imports "$installed/bin/exphil-0.dll" | sed -n 's/^  Name: //p' >needs
[ -s needs ] || fail "the DLL needs nothing, it is said"
grep -viE '^(kernel32|advapi32|ws2_32|bcrypt|ntdll|msvcrt|ucrtbase|api-ms-win-[a-z0-9-]*)\.dll$' needs >others
[ ! -s others ] || { cat others; fail "the DLL needs what Windows has not"; }

# run NAME PROGRAM: trains and plays; the policy plays as well as the rule that it learned from.
run() {
  WINEPATH="Z:$(echo "$installed/bin" | sed 's,/,\\,g')" "$source/tools/systems" run x86_64-windows "$2" >"$1.out" 2>"$1.err" ||
    { cat "$1.out" "$1.err"; fail "$1 ends with an error"; return; }
  tr -d '\r' <"$1.out" >"$1.txt"
  awk '{ score[$1] = $3 + 0 } END { exit !(NR == 3 && score["policy:"] > 0 && score["policy:"] == score["rule:"]) }' "$1.txt" ||
    { cat "$1.txt"; fail "$1 has not learned"; }
  cmp "$1.txt" mingw.txt || fail "$1 prints something else"
}

if there x86_64-w64-mingw32-gcc; then
  (
    unset PKG_CONFIG_PATH
    PKG_CONFIG_LIBDIR="$installed/lib/pkgconfig" pkg-config --cflags --libs exphil
  ) | xargs x86_64-w64-mingw32-gcc -O2 -o mingw.exe "$source/examples/rows.c" || fail "mingw does not link"
  run mingw ./mingw.exe
  # It is this DLL that ran.
  if WINEPATH='' "$source/tools/systems" run x86_64-windows ./mingw.exe >/dev/null 2>&1; then fail "it runs without the DLL"; fi

  mkdir package
  cat >package/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(host C)
find_package(exphil 0.1 REQUIRED COMPONENTS exphil)
add_executable(host ${ROWS})
set_target_properties(host PROPERTIES C_STANDARD 11)
target_link_libraries(host PRIVATE exphil::exphil)
add_custom_command(TARGET host POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_RUNTIME_DLLS:host> . COMMAND_EXPAND_LISTS)
END
  { "$cmake" -S package -B package/build -G Ninja -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc \
    -DCMAKE_RC_COMPILER=x86_64-w64-mingw32-windres -DCMAKE_PREFIX_PATH="$installed" -DROWS="$source/examples/rows.c" &&
    "$cmake" --build package/build; } >package.log 2>&1 || { cat package.log; fail "find_package does not lead to a program"; }
  cmp package/build/exphil-0.dll "$installed/bin/exphil-0.dll" || fail "CMake does not know which DLL the program runs with"
  run package package/build/host.exe
fi
# CMake tells MSVC's linker of its own import library.
mkdir asked
cat >asked/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(asked NONE)
set(WIN32 1)
set(MSVC 1)
find_package(exphil REQUIRED)
get_target_property(linked exphil::exphil IMPORTED_IMPLIB_RELEASE)
message(STATUS "MSVC links ${linked}")
END
"$cmake" -S asked -B asked/build -DCMAKE_PREFIX_PATH="$installed" >asked.log 2>&1
grep -qx -- "-- MSVC links $installed/lib/exphil.lib" asked.log || { cat asked.log; fail "MSVC is told of another library"; }

libraries=/usr/x86_64-w64-mingw32/lib # import libraries of Windows' own DLLs
if there clang && there lld-link && [ -e $libraries/libmsvcrt.a ]; then
  for shared in "" /DEXPHIL_SHARED; do
    for file in "$source/examples/rows.c" "$source/tests/abi/msvc/start.c"; do
      name=${file##*/}
      # shellcheck disable=SC2086 # nothing, or a word
      clang --driver-mode=cl --target=x86_64-pc-windows-msvc -fms-compatibility /nologo /W4 /WX /O2 /GS- $shared "-I$installed/include" \
        -imsvc "$source/tests/abi/msvc" /c /Fo"${name%.c}.obj" -- "$file" || fail "clang-cl does not compile $name"
    done
    lld-link /nologo /entry:start /subsystem:console /nodefaultlib /out:cl.exe rows.obj start.obj "$installed/lib/exphil.lib" \
      $libraries/libmsvcrt.a $libraries/libkernel32.a || fail "lld-link does not link"
    run "cl${shared#/D}" ./cl.exe
  done
fi
[ "$failed" -eq 0 ] && cat mingw.txt
exit "$failed"
