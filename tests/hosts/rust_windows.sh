#!/bin/sh
# The Rust crates compiled for Windows (x86_64-pc-windows-gnu) against the DLL of a build for Windows, and their tests and examples
# under wine. Two tests are left out there by their own words: late_calls and no_allocation.
#   rust_windows.sh <source folder> <build folder> <cmake>
set -u
source=$1 build=$2 cmake=$3
target=x86_64-pc-windows-gnu
fail() { echo "FAILED: $*"; exit 1; }
# The first toolchain that has the target's standard library: rustup's, or Debian's with libstd-rust-dev-windows.
toolchain=
for place in "$(dirname "$(command -v rustc || echo /usr/bin/rustc)")" /usr/bin; do
  [ -n "$toolchain" ] || ! "$place/cargo" --version >/dev/null 2>&1 ||
    ! find "$("$place/rustc" --print target-libdir --target $target 2>/dev/null)" -name 'libstd-*.rlib' 2>/dev/null | grep -q . ||
    toolchain=$place
done
[ -n "$toolchain" ] || { echo "SKIPPED: no rustc for $target (Debian: rustc cargo libstd-rust-dev-windows)"; exit 0; }
command -v x86_64-w64-mingw32-gcc >/dev/null || { echo "SKIPPED: no x86_64-w64-mingw32-gcc"; exit 0; }
work=$build/tests/rust
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
quiet() { "$@" >log 2>&1 || { cat log; fail "$*"; }; }
for component in library development; do quiet "$cmake" --install "$build" --component $component --prefix "$work/installed"; done
"$source/tools/crates" . >log 2>&1 || { echo "SKIPPED: $(cat log)"; exit 0; }
cp -R "$source/bindings/rust" crates
rm -rf crates/target crates/Cargo.lock
export RUSTC="$toolchain/rustc" RUSTDOC="$toolchain/rustdoc" CARGO_TARGET_DIR="$work/target" CARGO_NET_OFFLINE=true
export RUSTFLAGS="-D warnings"
export PKG_CONFIG_LIBDIR="$work/installed/lib/pkgconfig" PKG_CONFIG_PATH=
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
# wine 8 fails where it prints the stack of a panic that a test expects.
export RUST_BACKTRACE=0
bin=$(echo "$work/installed/bin" | sed 's,/,\\,g')
cat >runner <<END
#!/bin/sh
WINEPATH='Z:$bin' exec '$source/tools/systems' run x86_64-windows "\$@"
END
chmod +x runner
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$work/runner"
(cd crates && "$toolchain/cargo" test --target $target --tests) >tests.log 2>&1 || { cat tests.log; fail "cargo test"; }
awk '/^test result: ok/ { programs++; tests += $4 }
  END { print tests, "tests of", programs, "programs"; exit !(tests > 60 && programs > 12) }' tests.log ||
  { cat tests.log; fail "few tests ran"; }
# A trained policy plays: the example of a step, in the program's own words.
(cd crates && quiet "$toolchain/cargo" build --target $target --examples)
./runner target/$target/debug/examples/play.exe 'C:\nowhere\policy.safetensors' >play.log 2>&1 && fail "play found a policy at nowhere"
grep -q policy.safetensors play.log || { cat play.log; fail "play does not say which file is missing"; }
