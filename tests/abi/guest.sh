#!/bin/sh
# The built libraries are quiet guests: the shared one needs only the functions of tests/abi/undefined.txt from the
# system, has no writable globals, constructors or thread-local storage, and is never unmapped; the static one takes
# no names but exphil_* and xph_*.
#   guest.sh <libexphil.so> <libexphil.a>
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
shared=$1
archive=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "FAILED: $1"
  sed 's/^/    /' "$2"
  failed=1
}

nm -D -u "$shared" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sort -u >"$work/undefined"
grep -v '^#' "$here/undefined.txt" | grep . | sort -u >"$work/allowed"
comm -23 "$work/undefined" "$work/allowed" >"$work/surprises"
[ ! -s "$work/surprises" ] || complain "functions that the library may not need (tests/abi/undefined.txt):" "$work/surprises"

# Constant tables of pointers must be relocated and so lie in .data.rel.ro, which is read-only when the program runs
# but for nm is data too. What the compiler's own start files put into every shared library is let through.
# shellcheck disable=SC2046 # two words
set -- $(readelf -W -S "$shared" | sed -nE 's/.* \.data\.rel\.ro +[A-Z]+ +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+).*/\1 \2/p') 0 0
relro=$(printf '%016x' $((0x$1)))
relro_end=$(printf '%016x' $((0x$1 + 0x$2)))
# Compared as text of equal length: awk would take 00001e23 for a number.
nm "$shared" | awk -v from="$relro" -v to="$relro_end" '$2 ~ /^[BbDdCc]$/ && !($1 "" >= from "" && $1 "" < to "") { print $3 }' |
  grep -vE -e '^(completed\.[0-9]+|__dso_handle|__TMC_END__|_DYNAMIC|_GLOBAL_OFFSET_TABLE_)$' \
    -e '^(__frame_dummy_init_array_entry|__do_global_dtors_aux_fini_array_entry|__(init|fini)_array_(start|end))$' >"$work/writable"
[ ! -s "$work/writable" ] || complain "writable global state:" "$work/writable"

readelf -W -l "$shared" | grep -w TLS >"$work/tls"
[ ! -s "$work/tls" ] || complain "thread-local storage:" "$work/tls"

# One entry is the compiler's frame_dummy.
readelf -W -S "$shared" | grep -oE '\.init_array .*' | awk '{ print $5 }' >"$work/constructors"
[ "$(cat "$work/constructors")" = 000008 ] || complain "static constructors (size of .init_array):" "$work/constructors"

readelf -W -d "$shared" >"$work/dynamic"
for flag in NODELETE BIND_NOW SONAME; do
  grep -qE "$flag|$(echo "$flag" | sed 's/BIND_NOW/NOW/')" "$work/dynamic" || { echo "FAILED: no $flag"; failed=1; }
done
readelf -W -l "$shared" | grep GNU_STACK | grep -q E && { echo "FAILED: executable stack"; failed=1; }

nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 { print $3 }' | grep -vE '^(exphil|xph)_' >"$work/foreign"
[ ! -s "$work/foreign" ] || complain "names without our prefix:" "$work/foreign"

[ "$failed" -eq 0 ] && echo "$(wc -l <"$work/undefined") functions of the system, no surprises"
exit "$failed"
