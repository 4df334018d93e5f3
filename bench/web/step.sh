#!/bin/sh
# What a frame of the default policy costs in V8, beside the library of this machine:
#   bench/web/step.sh [--frames N] [--package FOLDER]
# The package is built, or taken from where bindings/web/build.sh has made it; the library is that of build/release.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
frames=600 package=''
while [ $# -gt 1 ]; do
  case $1 in
    --frames) frames=$2 ;;
    --package) package=$2 ;;
    *) break ;;
  esac
  shift 2
done
[ $# -eq 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$package" ]; then
  "$root/bindings/web/build.sh" --out "$work" >/dev/null
  package=$work
fi
cc -std=c11 -O2 "$root/bench/web/step.c" -I"$root/include" -L"$root/build/release" -Wl,-rpath,"$root/build/release" -lexphil -o "$work/step"
node=node
! node --experimental-wasm-relaxed-simd -e 0 2>/dev/null || node="node --experimental-wasm-relaxed-simd"
tar -C "$work" -xzf "$package"/exphil-play-*.tgz
$node "$root/bench/web/step.mjs" "$work/package" "$work/step" "$frames"
