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

# What the compiler's own start files put into every shared library is let through.
nm "$shared" | awk '$2 ~ /^[BbDdCc]$/ { print $3 }' |
  grep -vE '^(completed\.[0-9]+|__dso_handle|__TMC_END__|_DYNAMIC|_GLOBAL_OFFSET_TABLE_|__frame_dummy_init_array_entry|__do_global_dtors_aux_fini_array_entry|__(init|fini)_array_(start|end))$' >"$work/writable"
# Tables of pointers need relocation and so are in .data.rel.ro, which nm also calls d; readelf knows better.
readelf -W -S "$shared" | awk '$2 == ".data.rel.ro" || $3 == ".data.rel.ro" { for (i = 1; i <= NF; i++) if ($i == ".data.rel.ro") print $(i + 2), $(i + 4) }' >"$work/relro"
if [ -s "$work/relro" ]; then
  read -r start size <"$work/relro"
  start=$((0x$start)) size=$((0x$size))
  : >"$work/really"
  while read -r name; do
    at=$(nm "$shared" | awk -v name="$name" '$3 == name { print $1; exit }')
    at=$((0x$at))
    { [ $at -ge $start ] && [ $at -lt $((start + size)) ]; } || echo "$name" >>"$work/really"
  done <"$work/writable"
  mv "$work/really" "$work/writable"
fi
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
