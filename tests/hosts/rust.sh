#!/bin/sh
# The Rust crates as a user builds them, from a copy in the current folder: tests, compile errors that must come, drift of the
# declarations, trace, example. `rust.sh bench` times a step.
# CARGO, RUSTC, RUSTDOC choose another toolchain.
set -eu
cargo=${CARGO:-cargo}
command -v "$cargo" >/dev/null 2>&1 || { echo "SKIPPED: no $cargo"; exit 0; }
command -v "${RUSTC:=rustc}" >/dev/null 2>&1 || { echo "SKIPPED: no $RUSTC"; exit 0; }
# Of one toolchain, whatever else stands in PATH.
RUSTDOC=${RUSTDOC:-$(dirname "$(command -v "$RUSTC")")/rustdoc}
export RUSTC RUSTDOC CARGO_TARGET_DIR="$PWD/target" CARGO_NET_OFFLINE=true RUSTDOCFLAGS="-D warnings" RUSTFLAGS="-D warnings"
fail() { echo "rust: $*" >&2; exit 1; }
quiet() { "$@" >log 2>&1 || { cat log >&2; fail "$* failed"; }; }

"$EXPHIL_SOURCE/tools/crates" . >log 2>&1 || { echo "SKIPPED: $(cat log)"; exit 0; }
rm -rf rust
cp -R "$EXPHIL_SOURCE/bindings/rust" rust
cd rust
rm -rf target Cargo.lock

if [ "${1:-}" = bench ]; then
  quiet "$cargo" build --release --example trace
  exec "$CARGO_TARGET_DIR/release/examples/trace" bench "$EXPHIL_TRACE/small.safetensors"
fi

# The header's version is the one source: both packages carry it.
number() { sed -n "s/^#define EXPHIL_VERSION_$1 \([0-9]*\)$/\1/p" "$EXPHIL_PREFIX/include/exphil/exphil.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
for crate in exphil exphil-sys; do
  grep -qx "version = \"$version\"" $crate/Cargo.toml || fail "$crate/Cargo.toml is not of version $version"
done

# Declarations made anew are those that are committed, white space and trailing commas apart (rustfmt may be missing), and
# their layout is the compiler's.
declarations() { tr -d ' \n,' <"$1"; }
if command -v bindgen >/dev/null 2>&1; then
  quiet sh exphil-sys/generate.sh again.rs --no-layout-tests
  if [ "$(bindgen --version)" = "bindgen 0.60.1" ]; then
    [ "$(declarations again.rs)" = "$(declarations exphil-sys/src/bindings.rs)" ] ||
      fail "exphil-sys/src/bindings.rs is not what the header says: run exphil-sys/generate.sh src/bindings.rs --no-layout-tests"
  fi
  quiet sh exphil-sys/generate.sh layout.rs
  # As generate.sh finds the headers.
  libdir=$(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --libs-only-L exphil | xargs printf '%s\n' | sed -n 's/^-L//p;q')
  quiet "$RUSTC" --test --edition 2021 -A warnings -L "$libdir" -l exphil -o layout layout.rs
  quiet ./layout -q
fi

quiet "$cargo" test
quiet "$cargo" doc --no-deps
if "$cargo" clippy --version >/dev/null 2>&1; then quiet "$cargo" clippy --all-targets -- -D warnings; fi
if "$cargo" fmt --version >/dev/null 2>&1; then quiet "$cargo" fmt --check -p exphil; fi

# Each snippet must compile, and with --cfg wrong fail with the error that its first line names.
quiet "$cargo" build --lib
for snippet in exphil/compile_fail/*.rs; do
  check() {
    "$RUSTC" --edition 2021 --crate-type bin --emit metadata -A warnings -o snippet.rmeta "$@" "$snippet" \
      --extern "exphil=$CARGO_TARGET_DIR/debug/libexphil.rlib" -L "dependency=$CARGO_TARGET_DIR/debug/deps" >log 2>&1
  }
  code=$(sed -n '1s,^// \(E[0-9]*\):.*,\1,p' "$snippet")
  check || { cat log >&2; fail "$snippet does not compile"; }
  if check --cfg wrong; then fail "$snippet compiles"; fi
  grep -q "^error\[$code\]" log || { cat log >&2; fail "$snippet fails with another error than $code"; }
  if grep '^error\[' log | grep -qv "^error\[$code\]"; then cat log >&2; fail "$snippet has other errors too"; fi
done

quiet "$cargo" build --examples
examples=$CARGO_TARGET_DIR/debug/examples
for folder in $EXPHIL_TRACES; do "$examples/trace" check "$folder/policy.safetensors" "$folder/frames.trace"; done

# README's examples, word for word, as a package of its own, with the library inside it.
mkdir -p readme/src/bin
awk '/^```rust$/ { at++; on = 1; next } /^```/ { on = 0 } on { print >"readme/src/bin/readme" at ".rs" }' README.md
cat >readme/Cargo.toml <<END
[package]
name = "readme"
version = "0.0.0"
edition = "2021"
[dependencies]
exphil = { path = "../exphil", features = ["static"] }
[workspace]
END
(cd readme && quiet "$cargo" build)
sed -n '/^## Example/,/^```rust/s/^    exphil /"$EXPHIL_PREFIX"\/bin\/exphil /p' README.md >policy.sh
[ "$(grep -c . policy.sh)" = 2 ] || fail "README.md does not say where a policy comes from"
quiet sh -eu policy.sh
action=$(env -u LD_LIBRARY_PATH "$CARGO_TARGET_DIR/debug/readme1" policy.safetensors)
case $action in "["*", "*", "*"]") ;; *) fail "the example of README.md printed: $action" ;; esac
"$CARGO_TARGET_DIR/debug/readme2" >log || fail "the second example of README.md failed"
[ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the second example of README.md did not learn"; }
"$CARGO_TARGET_DIR/debug/readme3" >log || fail "the third example of README.md failed"
awk '$1 == "caught" { last = $2 } END { exit !(NR == 3 && last > 0.95) }' log ||
  { cat log >&2; fail "the third example of README.md did not learn to catch"; }
[ -s catcher.safetensors ] || fail "the third example of README.md saved nothing"
"$CARGO_TARGET_DIR/debug/readme4" >log || fail "the fourth example of README.md failed"
awk 'NR == 1 { first = $NF } { last = $NF } END { exit !(NR == 6 && first > 3 && last < 0.5) }' log ||
  { cat log >&2; fail "the fourth example of README.md did not learn from the person"; }
[ -s caught.safetensors ] || fail "the fourth example of README.md saved nothing"

# From a folder, and against a prefix, whose names have a space and a comma; the program finds its library by itself.
odd="$PWD/a space, a comma"
mkdir "$odd"
ln -s "$EXPHIL_PREFIX" "$odd/the prefix"
cp -R Cargo.toml exphil exphil-sys "$odd"
at=$(dirname "$(find "$odd/the prefix/" -name exphil.pc)")
tried() { # folder of exphil.pc, features
  (cd "$odd" && quiet env -u LD_LIBRARY_PATH PKG_CONFIG_PATH="$1" CARGO_TARGET_DIR="$odd/target" \
    "$cargo" test --manifest-path exphil/Cargo.toml --features "$2" --test no_allocation)
}
tried "$at" ""
tried "$at" static
# An archive may stand there by its path, as CUDA's run-time does where that is built in.
mkdir "$odd/archive"
cat >"$odd/archive/exphil.pc" <<END
libdir=$(pkg-config --variable=libdir exphil)
Name: exphil
Description: by its path
Version: $version
Libs: -L\${libdir} \${libdir}/libexphil.a -lm -pthread -ldl
END
tried "$odd/archive" static
(cd "$odd" && if command -v bindgen >/dev/null 2>&1; then quiet env PKG_CONFIG_PATH="$at" sh exphil-sys/generate.sh odd.rs; fi)

# Without the library the build says what it needs.
if PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=/nowhere CARGO_TARGET_DIR=$PWD/none "$cargo" build -p exphil-sys >log 2>&1; then
  fail "built without a library"
fi
grep -q "set PKG_CONFIG_PATH to the folder of exphil.pc" log || { cat log >&2; fail "a missing library is not explained"; }
if grep -q panicked log; then cat log >&2; fail "a missing library is a panic"; fi

# The example tells of a replay that was cut.
head -c 500000 drill.slp >cut.slp
quiet "$examples/train" policy.safetensors 1 drill.slp cut.slp
grep -q '^cut.slp: [1-9][0-9]* frames in .*, the replay ends early$' log || { cat log >&2; fail "train is silent about a cut replay"; }

training=${EXPHIL_REPLAYS:-/nowhere}/training
if [ ! -d "$training" ]; then echo "SKIPPED: no replays in \$EXPHIL_REPLAYS"; exit 0; fi
quiet "$examples/train" policy.safetensors 3 "$training/fox_multishine_closed.slp"
quiet "$examples/play" policy.safetensors
[ "$(grep -c 'buttons' log)" = 60 ] || fail "the example play printed something else"
