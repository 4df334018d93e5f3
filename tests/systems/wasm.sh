#!/bin/sh
# WebAssembly's kernels in this host: multiply-adds are rounded once. tests/systems/bits.py compares all else.
#   tests/systems/wasm.sh
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v node >/dev/null || { echo "SKIPPED: no node"; exit 77; }
[ -d "$root/build/zig" ] || { echo "SKIPPED: no zig; tools/deps systems installs it"; exit 77; }
"$root/tools/systems" build wasm32-wasi-relaxed fma_simd128 fma_relaxed >"$root/build/wasm.log" 2>&1 || {
  tail -n 30 "$root/build/wasm.log"
  echo "FAILED: the kernels do not build"
  exit 1
}
for set in simd128 relaxed; do
  "$root/tools/systems" run wasm32-wasi-relaxed "$("$root/tools/systems" program wasm32-wasi-relaxed fma_$set)"
done
