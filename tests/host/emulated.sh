#!/bin/sh
# The kernel tests on a processor that has AVX2 and nothing newer, emulated by qemu (Haswell), and under valgrind, which
# finds what was read before it was written.
#   emulated.sh <build folder>
# qemu 7.2 reads whole registers where the mask of a load says less: there guard pages are filled instead of forbidden.
# valgrind 3.19 gives -0 for -(0 * x) + 0: there both zeros are one. The plain and sanitized runs of the same tests know
# neither leniency.
set -u
build=$1
failed=0
command -v qemu-x86_64 >/dev/null 2>&1 && command -v valgrind >/dev/null 2>&1 || { echo "SKIPPED: no qemu-x86_64 or no valgrind"; exit 77; }
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# try NAME TEST COMMAND...
try() {
  name=$1 test=$2
  shift 2
  began=$(date +%s)
  if "$@" "$test" >"$said" 2>&1; then
    echo "$name: $(basename "$test"): clean, $(($(date +%s) - began)) s"
  else
    grep -v 'warning: TCG' "$said" | tail -n 40
    echo "FAILED: $name: $(basename "$test")"
    failed=1
  fi
}

for test in "$build"/tests/kernel_*_test; do
  try "qemu Haswell" "$test" env EXPHIL_TEST_GUARDS=filled qemu-x86_64 -cpu Haswell
done
for test in "$build"/tests/kernel_*_test; do
  try valgrind "$test" env EXPHIL_TEST_ZEROS=unsigned valgrind -q --error-exitcode=9
done
exit $failed
