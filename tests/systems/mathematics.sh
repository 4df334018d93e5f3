#!/bin/sh
# Library and program ask no function of mathematics of their system, whose last digits differ from one to the next: they have
# what they need (lib/base/double.h, lib/cpu/simd/fma.h). Square roots, and rounding to integers, are exact everywhere: IEEE 754.
# Ticks of pictures are looked at alone.
#   mathematics.sh <libexphil.a> <folder of the program's objects>...
set -eu
export LC_ALL=C
# GNU's knows only this machine's objects.
reader='nm'
for other in /usr/lib/llvm-*/bin/llvm-nm "$(command -v llvm-nm || :)"; do [ ! -x "$other" ] || reader=$other; done
# With suffixes of float, long double, reentrant and -ffast-math forms.
functions='a?(cos|sin|tan)(h|pi)?|atan2|sincos|exp(2|10|m1)?|log(10|1p|2)?|pow(i|r|n)?|cbrt|hypot|erfc?|[lt]gamma|fma|fmod'
functions="(__imp_)?_?(__)?c?($functions|gamma|remainder|remquo|j[01n]|y[01n])([fl]|_r|_finite|_stret|[sdtx]f2)*|_ZGV.*"
failed=0
for archive; do
  if [ -d "$archive" ]; then
    objects=$(find "$archive" -name '*.o' ! -name 'plot_*')
  else
    objects=$archive
  fi
  # shellcheck disable=SC2086
  asked=$("$reader" -u $objects 2>/dev/null | awk 'NF == 2 { print $2 }' | sort -u)
  # What any of them needs shows that it was read.
  echo "$asked" | grep -qE '^_?memcpy$' || { echo "FAILED: $archive: not to be read by $reader"; failed=1; continue; }
  found=$(echo "$asked" | grep -xE "$functions" | tr '\n' ' ' || :)
  [ -z "$found" ] || { echo "FAILED: $archive asks for $found"; failed=1; }
done
[ "$failed" -eq 0 ] && echo "$# read, no mathematics of others"
exit "$failed"
