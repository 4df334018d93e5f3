#!/bin/sh
# The f32 kernels compute with their own functions only: what a C library returns for exp or log differs between
# versions, and with it the bits. fma is exact everywhere; where the processor has none it is a function.
#   kernels.sh <build folder>
set -u
export LC_ALL=C
failed=0
files=0
for object in "$1"/CMakeFiles/exphil_set_f32_*.dir/lib/cpu/kernels/*.o; do
  [ -e "$object" ] || continue
  files=$((files + 1))
  needs=$(nm -u "$object" | awk '{ print $NF }' |
    grep -vE '^(xph_.*|fmaf?|mem(cpy|move|set|cmp)|__mem(cpy|move|set)_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)$')
  # shellcheck disable=SC2086 # on one line
  [ -z "$needs" ] || { echo "$object needs" $needs; failed=1; }
done
# The reference in double may ask libm, but not for what the processor has.
for object in "$1"/CMakeFiles/exphil_set_f64_avx2.dir/lib/cpu/kernels/*.o; do
  [ -e "$object" ] || continue
  nm -u "$object" | grep -qE ' fma$' && { echo "$object needs fma"; failed=1; }
done
[ "$files" -gt 0 ] || { echo "no kernels in $1"; exit 1; }
[ "$failed" -eq 0 ] && echo "$files objects"
exit "$failed"
