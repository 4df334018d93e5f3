#!/bin/sh
# Conan makes a package of the recipe (conanfile.py), static and shared, in a home of its own, with no other package; its test trains
# and plays (tests/conan).
set -eu
fail() { echo "conan: $*" >&2; exit 1; }
conan=$EXPHIL_SOURCE/build/conan/bin/conan
[ -x "$conan" ] || { echo "SKIPPED: no $conan; tools/deps packages installs it"; exit 0; }
number() { sed -n "s/^#define EXPHIL_VERSION_$1 \([0-9]*\)$/\1/p" "$EXPHIL_SOURCE/include/exphil/exphil.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
export CONAN_HOME="$PWD/home"
"$conan" profile detect >log 2>&1 || { cat log >&2; fail "no profile"; }
"$conan" remote disable '*' >log 2>&1 || { cat log >&2; fail "remotes"; } # nothing comes from elsewhere
for shared in False True; do
  # shellcheck disable=SC2086
  "$conan" create "$EXPHIL_SOURCE" -o "exphil/*:shared=$shared" -c tools.build:jobs="$(nproc)" \
    -c tools.cmake.cmake_layout:test_folder="$PWD/test" ${1:-} >log 2>&1 ||
    { tail -n 60 log >&2; fail "conan create, shared=$shared"; }
  grep -q "exphil/$version" log || { cat log >&2; fail "another version than $version"; }
  grep -q '^policy: score [1-9]' log || { tail -n 60 log >&2; fail "the test of the package did not play"; }
  package=$(sed -n "s/^.*Package '\([0-9a-f]*\)' created.*/\1/p" log)
  folder=$("$conan" cache path "exphil/$version:$package" 2>log) || { cat log >&2; fail "no package $package"; }
  if [ $shared = True ]; then library=libexphil.so.0 other=libexphil.a; else library=libexphil.a other=libexphil.so.0; fi
  [ -e "$folder/lib/$library" ] || fail "shared=$shared: no $library"
  [ ! -e "$folder/lib/$other" ] || fail "shared=$shared: $other too"
  [ -e "$folder/include/exphil/ops.h" ] && [ -e "$folder/licenses/zstd/LICENSE" ] || fail "shared=$shared: no headers, or no licences"
  [ ! -e "$folder/bin/exphil" ] || fail "the program is there unasked"
done
echo "conan: exphil/$version, static and shared"
