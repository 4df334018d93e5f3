#!/bin/sh
# The headers in the dialect of Microsoft's compiler, as clang speaks it (clang-cl), and the same layouts on every system. Microsoft's
# own headers are not to be had here: stdint.h and stddef.h are clang's, what examples use beside them is in tests/abi/msvc.
#   msvc.sh <source folder>
set -u
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
tried=0
fail() { echo "FAILED: $*"; failed=1; }
command -v clang >/dev/null || { echo "SKIPPED: no clang"; exit 0; }
# cl INCLUDE-FOLDER OPTION... FILE
cl() {
  include=$1
  shift
  tried=$((tried + 1))
  clang --driver-mode=cl --target=x86_64-pc-windows-msvc -fms-compatibility /nologo /W4 /WX "-I$include" /c /Fo"$work/cl.obj" "$@"
}

# Each header alone, as C and as C++, for those who link the static library and for those who use the DLL.
for header in "$source"/include/exphil/*.h; do
  name=${header##*/}
  printf '#include <exphil/%s>\nextern int exphil_header_alone;\n' "$name" >alone.c
  for language in "/TC /std:c11" "/TC" "/TP /std:c++14" "/TP /std:c++17" "/TP /DEXPHIL_SHARED" "/TC /DEXPHIL_SHARED"; do
    # shellcheck disable=SC2086 # two words
    cl "$source/include" $language -- alone.c || fail "$name with $language"
  done
done
# A use of every macro that makes a struct, and of functions by their address.
cat >use.c <<'END'
#include <exphil/exphil.h>
uint32_t (*version(void))(void);
uint32_t (*version(void))(void)
{
    exphil_error error = EXPHIL_ERROR_INIT;
    exphil_melee_frame frame = EXPHIL_MELEE_FRAME_INIT;
    return error.status || frame.frame ? 0 : exphil_version;
}
END
cl "$source/include" /TC -- use.c || fail "a use in C"
cl "$source/include" /TP /DEXPHIL_SHARED -- use.c || fail "a use in C++"
llvm-nm cl.obj 2>/dev/null | grep -q ' U __imp_exphil_version$' || ! command -v llvm-nm >/dev/null ||
  fail "with EXPHIL_SHARED a call does not go to the DLL at once"
# What it warns of is an error here: a warning that is planted is found.
sed 's/^EXPHIL_API uint32_t exphil_version(void);/&\nstatic int exphil_planted(void) { int unused; return 1; }/' \
  "$source/include/exphil/exphil.h" >planted.h
mkdir -p warned/exphil && cp "$source"/include/exphil/*.h warned/exphil && mv planted.h warned/exphil/exphil.h
if cl warned /TC -- use.c >/dev/null 2>&1; then fail "a warning that was planted is not found"; fi

# Every size, offset, constant and function, as this machine's compiler sees them: others take the same.
"$source/tools/abi" layout "$source/include" >layout.c || exit 1
compile() { # INCLUDE-FOLDER TARGET
  tried=$((tried + 1))
  case $2 in
    cl) cl "$1" /TC /std:c11 -- layout.c ;;
    *-gcc) "$2" -std=c11 -I"$1" -fsyntax-only -Wall -Wextra -Werror layout.c ;;
    *) clang --target="$2" -std=c11 -ffreestanding -I"$1" -fsyntax-only -Wall -Wextra -Werror layout.c ;;
  esac
}
targets="cl x86_64-pc-windows-gnu aarch64-pc-windows-msvc aarch64-linux-gnu x86_64-linux-musl arm64-apple-macosx x86_64-apple-macosx"
for compiler in x86_64-w64-mingw32-gcc aarch64-linux-gnu-gcc; do
  if command -v $compiler >/dev/null; then targets="$targets $compiler"; else echo "SKIPPED: no $compiler"; fi
done
for target in $targets; do compile "$source/include" "$target" || fail "a layout on $target"; done
# Another packing, and a type of another size, are found and named. long has 4 bytes on Windows: the assertions of this machine
# are made anew for it.
planted() { # NAME SED-COMMAND
  mkdir -p "$1/exphil"
  cp "$source"/include/exphil/*.h "$1/exphil"
  sed -i "$2" "$1/exphil/exphil.h"
  ! cmp -s "$1/exphil/exphil.h" "$source/include/exphil/exphil.h" || fail "$1 changes nothing"
}
refused() { # NAME TARGET WORDS
  if compile "$1" "$2" >said 2>&1; then fail "$1 passes on $2"; fi
  grep -q "$3" said || { head -n 5 said; fail "$1 is refused on $2 without a word of: $3"; }
}
planted packed 's/^typedef struct exphil_melee_frame {/#pragma pack(push, 2)\n&/; s/^} exphil_melee_frame;/&\n#pragma pack(pop)/'
refused packed cl 'alignment of exphil_melee_frame is another'
planted other 's/^    int32_t native_code;/    int64_t native_code;/'
refused other cl 'exphil_error.native_code has another offset or type'
planted long 's/^    size_t struct_size;/    unsigned long struct_size;/'
"$source/tools/abi" layout long >layout.c || exit 1
compile long aarch64-linux-gnu || fail "long is another on ARM"
refused long cl 'exphil_error'

# The examples that need no more than C's library.
for example in minimal rows learn ops game; do
  cl "$source/include" /TC -imsvc "$source/tests/abi/msvc" -- "$source/examples/$example.c" || fail "examples/$example.c"
done
[ "$failed" -eq 0 ] && echo "$tried compilations"
exit "$failed"
