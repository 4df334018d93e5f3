#!/bin/sh
# One list says what is exported on every system: the lists of Windows and macOS that cmake/Exports.cmake makes of the version
# script name the functions of the headers; linkers that are given them export these and nothing else; what is missing, and what is
# too much, is found by name. The libraries are of stubs, in which every function of the headers stands, and one more.
#   exports.sh <source folder> <cmake>
set -u
source=$1 cmake=$2
map=$source/lib/abi/exphil.map
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAILED: $*"; failed=1; }
holds() { "$source/tools/symbols" "$1" >said 2>&1 || { cat said; fail "$1 has not the functions of the headers"; }; }
# refused FILE SENTENCE
refused() {
  if "$source/tools/symbols" "$1" >said 2>&1; then fail "$1 passes"; fi
  grep -q "^$2 $1\$" said || { cat said; fail "$1 is refused without a word of: $2"; }
}
there() { command -v "$1" >/dev/null || { echo "SKIPPED: no $1"; return 1; }; }

lists() { "$cmake" -D map="$1" -D def="$PWD/$2.def" -D list="$PWD/$2.list" -D dll=exphil-0.dll -P "$source/cmake/Exports.cmake" || exit 1; }
lists "$map" exphil
holds exphil.def
holds exphil.list
[ "$(head -n 1 exphil.def)" = 'LIBRARY "exphil-0.dll"' ] || fail "the .def names another DLL"
# Other maps: without a node, with one function; a map of nothing is refused.
for other in "$source/cuda/plugin.map" "$source/mpi/exphil_mpi.map"; do
  lists "$other" other
  wanted=$(sed 's/#.*//' "$other" | grep -oE '[a-z_]+_[a-z_]+;' | tr -d ';' | sort)
  [ "$(sed -n 's/^    //p' other.def | sort)" = "$wanted" ] || fail "$other and its .def differ"
  [ "$(sed 's/^_//' other.list | sort)" = "$wanted" ] || fail "$other and its list differ"
done
echo '{ local: *; };' >empty.map
if "$cmake" -D map="$PWD/empty.map" -D def="$PWD/empty.def" -P "$source/cmake/Exports.cmake" >/dev/null 2>&1; then
  fail "a map of nothing makes a list"
fi

"$source/tools/symbols" --names >names || exit 1
{
  echo '#define SHOWN __attribute__((visibility("default")))'
  sed 's/.*/SHOWN int &(void);\nint &(void) { return 1; }/' names
  printf 'SHOWN int exphil_planted(void);\nint exphil_planted(void) { return 2; }\n'
} >stub.c
sed '/^ *exphil_version$/d' exphil.def >missing.def
{ cat exphil.def; echo '    exphil_planted'; } >more.def
sed '/^_exphil_version$/d' exphil.list >missing.list
{ cat exphil.list; echo _exphil_planted; } >more.list
for kind in def list; do
  refused missing.$kind "exphil_version: missing in"
  refused more.$kind "exphil_planted: not to be in"
done

# Linux.
cc -fPIC -shared -o libexphil.so stub.c -Wl,--version-script="$map" || exit 1
holds libexphil.so

# Windows: the DLL, and import libraries.
if there x86_64-w64-mingw32-gcc; then
  for list in exphil missing more; do
    x86_64-w64-mingw32-gcc -c -o stub.obj stub.c &&
      x86_64-w64-mingw32-gcc -shared -o $list.dll stub.obj $list.def -Wl,--out-implib,lib$list.dll.a || exit 1
  done
  # Without a list all is exported, which is what the list is for.
  x86_64-w64-mingw32-gcc -shared -o none.dll stub.obj || exit 1
  if there llvm-readobj; then
    holds exphil.dll
    refused missing.dll "exphil_version: missing in"
    refused more.dll "exphil_planted: not to be in"
    refused none.dll "exphil_planted: not to be in"
    holds libexphil.dll.a
    refused libmore.dll.a "exphil_planted: not to be in"
  fi
fi
if there llvm-dlltool; then
  for list in exphil missing; do llvm-dlltool -m i386:x86-64 -d $list.def -D exphil-0.dll -l $list.lib || exit 1; done
  holds exphil.lib
  refused missing.lib "exphil_version: missing in"
  strings exphil.lib | grep -q '^exphil-0\.dll' || fail "exphil.lib does not lead to exphil-0.dll"
fi

# macOS, by LLVM's linker: zig's takes the list and does not read it.
linker=$(command -v ld64.lld || find /usr/bin -name 'ld64.lld-*' | head -n 1)
if [ -n "$linker" ] && there clang && there llvm-objdump; then
  clang --target=arm64-apple-macosx11 -ffreestanding -c -o stub.o stub.c || exit 1
  for list in exphil missing more; do
    "$linker" -dylib -arch arm64 -platform_version macos 11.0 11.0 -undefined dynamic_lookup -exported_symbols_list $list.list \
      -install_name @rpath/libexphil.0.dylib -o $list.dylib stub.o || exit 1
  done
  holds exphil.dylib
  refused missing.dylib "exphil_version: missing in"
  refused more.dylib "exphil_planted: not to be in"
elif [ -z "$linker" ]; then
  echo "SKIPPED: no ld64.lld"
fi
[ "$failed" -eq 0 ] && echo "$(wc -l <names) functions"
exit "$failed"
