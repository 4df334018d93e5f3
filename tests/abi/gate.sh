#!/bin/sh
# The gate of the binary interface closes: a library whose field moved, whose function got a parameter, lost its symbol or
# whose constant changed is refused, by name, and so is a struct that callers must have as long as it is today. Each is made
# from copies of the sources; what lies below is compiled anew.
#   gate.sh <source folder> <build folder, with debug information> <C compiler>
set -eu
source=$1 build=$2 cc=$3
command -v abidiff >/dev/null || { echo "SKIPPED: no abidiff (Debian: abigail-tools)"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=$build/CMakeFiles/exphil_core.dir/lib
failed=0

# refused NAME WANTED COMMAND...: the command must fail and its output must say WANTED.
refused() {
  name=$1 wanted=$2
  shift 2
  if "$@" >"$work/out" 2>&1; then
    echo "FAILED: $name: nothing noticed"
    failed=1
  elif ! grep -q -- "$wanted" "$work/out"; then
    echo "FAILED: $name: refused without a word of $wanted:"
    tail -n 5 "$work/out"
    failed=1
  else
    echo "$name: $(grep -m 1 -- "$wanted" "$work/out" | sed 's/.*error: //' | cut -c 1-140)"
  fi
}

# fresh: an unchanged copy of what is compiled.
fresh() {
  rm -rf "$work/tree"
  mkdir -p "$work/tree"
  cp -r "$source/include" "$source/lib" "$source/CMakeLists.txt" "$source/.clang-format" "$work/tree/"
  mkdir -p "$work/tree/tools" "$work/tree/tests/abi"
  cp "$source/tools/abi" "$source/tools/symbols" "$work/tree/tools/"
  cp -r "$source"/tests/abi/[0-9]*.*.* "$work/tree/tests/abi/"
}

changed() {
  ! cmp -s "$source/$1" "$work/tree/$1" || { echo "FAILED: the change of $1 changed nothing"; exit 1; }
}

compile() {
  "$cc" -std=c11 -g -O0 -ffile-prefix-map="$work/tree/"= -fPIC -fvisibility=hidden \
    -DXPH_LIBDIR='""' -DXPH_BUILD_ID='""' -I"$work/tree/include" -I"$work/tree/lib" -c "$work/tree/lib/$1" -o "$2"
}

# library FILE: the library of the build with this file of lib/ compiled anew from the copy.
library() {
  compile "$1" "$work/new.o"
  find "$objects" -name '*.o' ! -path "$objects/$1.o" >"$work/list"
  find "$build"/CMakeFiles \( -path '*exphil_set_*' -o -path '*exphil_zstd*' \) -name '*.o' >>"$work/list"
  # shellcheck disable=SC2046
  "$cc" -shared -Wl,-soname,libexphil.so.0 -o "$work/libexphil.so" "$work/new.o" $(cat "$work/list") \
    -Wl,--version-script="$work/tree/lib/abi/exphil.map" -lm -pthread -ldl
}

fresh
library play/session.c
"$source/tools/abi" check "$work/libexphil.so" "$work/tree/include"

fresh # two fields of one size change places
sed -i 's/^    int64_t streams; .*/    int64_t xph_held;/; s/^    int64_t deadline_ns; .*/    int64_t streams;/; s/xph_held/deadline_ns/' \
  "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
refused "field reordered (compiler)" 'exphil_session_config.*deadline_ns.*released' compile abi/assertions.c "$work/released.o"
if command -v clang >/dev/null; then
  refused "field reordered (64-bit Windows)" 'exphil_session_config.*deadline_ns.*released' clang --target=x86_64-pc-windows-msvc \
    -std=c11 -ffreestanding -fsyntax-only -I"$work/tree/include" "$work/tree/lib/abi/assertions.c"
fi
library play/session.c
refused "field reordered (abidiff)" 'deadline_ns' "$source/tools/abi" check "$work/libexphil.so" "$work/tree/include"

fresh
sed -i 's/\(exphil_session_state_size(const exphil_session \*session\))/\1, int64_t stream)/' \
  "$work/tree/include/exphil/exphil.h" "$work/tree/lib/play/snapshot.c"
changed include/exphil/exphil.h
changed lib/play/snapshot.c
refused "parameter added (compiler)" 'exphil_session_state_size.*released' compile abi/assertions.c "$work/released.o"
sed -i 's/exphil_session_state_size(session)/exphil_session_state_size(session, 0)/' "$work/tree/lib/play/snapshot.c"
library play/snapshot.c
refused "parameter added (abidiff)" 'exphil_session_state_size' "$source/tools/abi" check "$work/libexphil.so" "$work/tree/include"

fresh
sed -i '/exphil_session_clone;/d' "$work/tree/lib/abi/exphil.map"
changed lib/abi/exphil.map
library play/session.c
refused "symbol removed (abidiff)" 'exphil_session_clone' "$source/tools/abi" check "$work/libexphil.so" "$work/tree/include"
refused "symbol removed (names)" 'exphil_session_clone' "$source/tools/symbols" "$work/libexphil.so"

fresh # no function has it as a type: abidiff does not see it, the compiler does
sed -i 's/EXPHIL_TYPE_BF16 = 2/EXPHIL_TYPE_BF16 = 3/; s/EXPHIL_TYPE_I8 = 3/EXPHIL_TYPE_I8 = 2/' "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
refused "enumerator renumbered (compiler)" 'EXPHIL_TYPE_BF16.*released' compile abi/assertions.c "$work/released.o"

fresh
sed -i 's/define EXPHIL_SLP_FIRST_PLAYABLE (-39)/define EXPHIL_SLP_FIRST_PLAYABLE (-38)/' "$work/tree/include/exphil/slp.h"
changed include/exphil/slp.h
refused "constant changed (compiler)" 'EXPHIL_SLP_FIRST_PLAYABLE.*released' compile abi/assertions.c "$work/released.o"

fresh # of one type: no compiler and no abidiff sees it
sed -i 's/int32_t kind, int32_t slot)/int32_t slot, int32_t kind)/' "$work/tree/include/exphil/slp.h"
changed include/exphil/slp.h
refused "two parameters swapped (words)" 'in other words' "$source/tools/abi" kept "$work/tree/include"

fresh
sed -i '/define EXPHIL_PREFETCHER_INFO_INIT/d' "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
refused "macro removed (words)" 'EXPHIL_PREFETCHER_INFO_INIT' "$source/tools/abi" kept "$work/tree/include"

fresh
sed -i 's/XPH_TAKE(exphil_split_config, &known, config, error)/xph_config_take(\&known, sizeof known, config, sizeof known, "x", error)/' \
  "$work/tree/lib/data/split.c"
changed lib/data/split.c
refused "struct by its size of today" 'lib/data/split.c:[0-9]*: a struct by its size' "$source/tools/abi" kept "$work/tree/include"

fresh
sed -i 's/XPH_LEAST_exphil_sampling = [0-9]*/XPH_LEAST_exphil_sampling = sizeof(exphil_sampling)/' "$work/tree/lib/abi/least_sizes.h"
changed lib/abi/least_sizes.h
refused "least size raised" 'lib/abi/least_sizes.h' "$source/tools/abi" kept "$work/tree/include"

fresh
sed -i 's/^} exphil_session_config;/    int64_t later;\n&/' "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
compile abi/assertions.c "$work/released.o"
echo "field appended: allowed by the compiler's assertions"

# A new function comes into a node of its own, behind those of all releases; into a released one it may not.
fresh
node=$(sed -nE 's/^(EXPHIL_[0-9_]+) \{/\1/p' "$work/tree/lib/abi/exphil.map" | tail -n 1)
sed -i 's/^EXPHIL_API uint32_t exphil_version(void);/&\nEXPHIL_API uint32_t exphil_added(void);/' "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
refused "function added (names)" 'exphil_added of EXPHIL_[0-9]*_[0-9]*: missing in lib/abi/exphil.map' "$work/tree/tools/symbols"
sed -i 's/^    exphil_version;/    exphil_added;\n&/' "$work/tree/lib/abi/exphil.map"
refused "function added to a released node" 'exphil_added of EXPHIL_0: not to be in lib/abi/exphil.map' "$work/tree/tools/symbols"
"$work/tree/tools/symbols" --update >/dev/null
changed lib/abi/exphil.map
printf '\nuint32_t exphil_added(void)\n{\n    return 0;\n}\n' >>"$work/tree/lib/base/version.c"
library base/version.c
"$work/tree/tools/symbols" "$work/libexphil.so" >/dev/null
sed -n '/^EXPHIL_0 {/,/^}/p' "$work/tree/lib/abi/exphil.map" >"$work/released"
sed -n '/^EXPHIL_0 {/,/^}/p' "$source/lib/abi/exphil.map" | cmp - "$work/released" || { echo "FAILED: EXPHIL_0 has changed"; failed=1; }
nm -D --with-symbol-versions "$work/libexphil.so" | sed -n "s/.* T \(exphil_added@.*\)/function added: \1, after $node/p" >"$work/out"
grep -q '@@EXPHIL_[0-9]*_[0-9]*,' "$work/out" || { echo "FAILED: the new function has no node of its own"; failed=1; }
cat "$work/out"

# The next release: what was released keeps its least size, whatever was appended; a new struct gets its own. A release that is
# kept is not written again.
fresh
sed -i -e 's/^} exphil_session_config;/    int64_t later;\n&/' \
  -e 's/^EXPHIL_API uint32_t exphil_version(void);/&\ntypedef struct exphil_added {\n    size_t struct_size;\n} exphil_added;/' \
  "$work/tree/include/exphil/exphil.h"
changed include/exphil/exphil.h
refused "release written again" 'is released, and its headers were others' "$work/tree/tools/abi" release
refused "struct added" 'lib/abi/least_sizes.h' "$work/tree/tools/abi" kept
"$work/tree/tools/abi" sizes
"$work/tree/tools/abi" kept >/dev/null
sed -i 's/^#define EXPHIL_VERSION_MINOR .*/#define EXPHIL_VERSION_MINOR 9999/' "$work/tree/include/exphil/exphil.h"
mkdir -p "$work/tree/bindings"
"$work/tree/tools/abi" release >/dev/null
"$work/tree/tools/abi" kept >/dev/null
sed -n '/exphil_added\|exphil_session_config/p' "$work/tree/lib/abi/least_sizes.h" | tr -s ' \n' ' ' >"$work/out"
grep -q 'exphil_session_config = 72, /\* 0.1.0 \*/ XPH_LEAST_exphil_added = 8, /\* [0-9]*\.9999\.' "$work/out" ||
  { echo "FAILED: least sizes after the next release:"; cat "$work/out"; failed=1; }
echo "next release:$(cat "$work/out")"
exit "$failed"
