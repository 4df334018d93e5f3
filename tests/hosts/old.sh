#!/bin/sh
# The packages for Python and Rust as earlier releases had them (tests/abi/<version>), built with the headers of that release
# against the library of today: they run on it, and unchanged on a library whose structs have all got a field more
# (libexphil_grown), and get the same bits. Built from sources that were kept, because a package built from today's may read what
# is new. The environment is that of every host suite.
set -eu
fail() { echo "old: $*" >&2; exit 1; }
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore CARGO_NET_OFFLINE=true
python=${PYTHON:-/usr/bin/python3} cargo=${CARGO:-cargo}
grown=$EXPHIL_BUILD/grown/libexphil.so.0
[ -e "$grown" ] || fail "there is no $grown"
"$EXPHIL_PREFIX/bin/exphil" drill --force --frames 600 --out drill.slp >/dev/null

# A prefix as that release installed it, with the library of today in it.
prefix() {
  mkdir -p "$1/lib" "$1/include"
  cp -R "$EXPHIL_SOURCE/tests/abi/$1/exphil" "$1/include"
  cp "$today" "$1/lib/libexphil.so.0"
  ln -s libexphil.so.0 "$1/lib/libexphil.so"
  cat >"$1/exphil.pc" <<END
libdir=$PWD/$1/lib
includedir=$PWD/$1/include
Name: exphil
Description: as release $1 installed it
Version: $1
Libs: -L\${libdir} -lexphil
Cflags: -I\${includedir}
END
}

# both NAME COMMAND...: what the program prints is the same with either library at the same place.
both() {
  name=$1
  shift
  cp "$today" "$release/lib/libexphil.so.0"
  "$@" drill.slp >"$release/$name.today" 2>"$release/$name.said" ||
    { cat "$release/$name.said" >&2; fail "$name of $release on today's library"; }
  [ "$(wc -l <"$release/$name.today")" -ge 13 ] || fail "$name of $release printed too little"
  cp "$grown" "$release/lib/libexphil.so.0"
  "$@" drill.slp >"$release/$name.grown" 2>"$release/$name.said" ||
    { cat "$release/$name.said" >&2; fail "$name of $release on the grown library"; }
  diff "$release/$name.today" "$release/$name.grown" || fail "$name of $release gets other bits from the grown library"
  echo "$name of $release: $(wc -l <"$release/$name.grown") digests agree"
}

# Crates of later releases are built by the crate cc.
"$EXPHIL_SOURCE/tools/crates" . >log 2>&1 || echo "SKIPPED in part, where a release wants it: $(cat log)"
today=$(find "$EXPHIL_PREFIX" -name libexphil.so.0)
if cmp -s "$today" "$grown"; then fail "the grown library is today's"; fi
for folder in "$EXPHIL_SOURCE"/tests/abi/[0-9]*.*.*; do
  release=$(basename "$folder")
  prefix "$release"
  export PKG_CONFIG_PATH="$PWD/$release" LD_LIBRARY_PATH="$PWD/$release/lib"
  if "$python" -c 'import cffi, numpy, setuptools, wheel, pip' 2>/dev/null; then
    cp -R "$folder/python" "$release/python"
    : >"$release/python/README.md"
    "$python" -m pip wheel -q --no-build-isolation --no-deps --no-index --no-cache-dir -w "$release/dist" "./$release/python" \
      >"$release/wheel.log" 2>&1 || { cat "$release/wheel.log" >&2; fail "the wheel of $release is not built"; }
    "$python" -m zipfile -e "$release"/dist/exphil-*.whl "$release/site"
    PYTHONPATH=$PWD/$release/site both python "$python" "$EXPHIL_SOURCE/tests/abi/old/old.py"
  else
    echo "SKIPPED: $python has no cffi, numpy, setuptools, wheel or pip"
  fi
  if command -v "$cargo" >/dev/null 2>&1; then
    cp -R "$folder/rust" "$release/rust"
    mkdir -p "$release/rust/exphil/examples"
    cp "$EXPHIL_SOURCE/tests/abi/old/old.rs" "$release/rust/exphil/examples"
    # What a crate has is known before it is compiled: the program uses what 0.2 added where this says so.
    case $release in 0.1.*) flags="" ;; *) flags="--cfg exphil_0_2" ;; esac
    (cd "$release/rust" && export RUSTFLAGS="${RUSTFLAGS:-} $flags" CARGO_TARGET_DIR="$PWD/target" &&
      "$cargo" build -q --example old >build.log 2>&1) ||
      { cat "$release/rust/build.log" >&2; fail "the crate of $release is not built"; }
    both rust "$PWD/$release/rust/target/debug/examples/old"
  else
    echo "SKIPPED: no $cargo"
  fi
done
