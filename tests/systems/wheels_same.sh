#!/bin/bash
# One commit gives the same wheels in any folder: the one that is checked out here, cloned twice, into folders of another depth and
# length. The second clone compiles everything itself, without what was compiled before.
#   wheels_same.sh [TARGET]...      as tools/wheels
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
place=$source/build/same
rm -rf "$place"
mkdir -p "$place"
trap 'rm -rf "$place"' EXIT
for clone in "$place/one" "$place/another/and-deeper"; do
  git clone -q "$source" "$clone" 2>/dev/null
  mkdir -p "$clone/build/systems"
  ln -s "$source/build/zig" "$source/build/wheels" "$clone/build"
  ln -s "$("$source/tools/systems" folder sources)" "$clone/build/systems/sources"
  (
    unset EXPHIL_SYSTEMS
    [ "$clone" = "$place/one" ] || export CCACHE_DISABLE=1
    "$clone/tools/wheels" --out "$clone/dist" "$@"
  ) >"$place/log" 2>&1 || { tail -n 30 "$place/log"; echo "FAILED: no wheels in $clone"; exit 1; }
done
failed=0 count=0
for wheel in "$place"/one/dist/*.whl; do
  count=$((count + 1))
  cmp "$wheel" "$place/another/and-deeper/dist/$(basename "$wheel")" || failed=1
done
[ $count -gt 0 ] && [ "$(find "$place/another/and-deeper/dist" -name '*.whl' | wc -l)" -eq $count ] ||
  { echo "FAILED: other wheels"; exit 1; }
[ $failed -eq 0 ] && echo "$count wheels, the same bytes twice" && (cd "$place/one/dist" && sha256sum ./*.whl)
exit $failed
