#!/bin/sh
# The packages that carry the library's source: the crates and the package for Node. Their list of sources is what CMake compiles;
# each file of it is in the packages, with the flags that CMake has, and nothing that was built.
#   vendored.sh          made of the last commit
#   vendored.sh FOLDER   as they lie there, below $EXPHIL_BUILD (tools/packages), and compiled as users do, with all tests of both
#                        packages: a program that asks cargo for exphil, where no libexphil is installed, plays with the bits of the
#                        installed library, and learns the drill
set -eu
source=$EXPHIL_SOURCE
fail() { echo "vendored: $*" >&2; exit 1; }
quiet() { "$@" >log 2>&1 || { tail -n 60 log >&2; fail "$* failed"; }; }
number() { sed -n "s/^#define EXPHIL_VERSION_$1 \([0-9]*\)$/\1/p" "$source/include/exphil/exphil.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
cargo=${CARGO:-cargo}

# The list, and that a file or a flag which is missing there is found.
case $(uname -m) in x86_64) processor=x86 ;; aarch64) processor=arm ;; *) processor=any ;; esac
if grep -qs 'CMAKE_C_COMPILER_ID "GNU"' "$EXPHIL_BUILD"/CMakeFiles/*/CMakeCCompiler.cmake; then compiler=gnu; else compiler=clang; fi
check() { python3 "$source/tests/hosts/sources_check.py" "$source" "$1" posix $processor $compiler; }
check "$EXPHIL_BUILD"
mkdir forged
cp "$EXPHIL_BUILD/compile_commands.json" forged
for edit in '/^file core .* lib\/base\/memory.c$/d' 's/^\(flags core any .*\) -fvisibility=hidden/\1/' \
  '/^flags .* -DXPH_HAVE_[A-Z0-9]*_SETS$/d' 's/^\(groups any .*\) f64_ref/\1/'; do
  sed "$edit" "$EXPHIL_BUILD/sources.txt" >forged/sources.txt
  if check forged >log 2>&1; then fail "a list is taken that was changed by $edit"; fi
done

out=$PWD/out
[ $# -eq 0 ] || out=$(cd "$EXPHIL_BUILD" && cd "$1" && pwd)
if [ $# -eq 0 ]; then
  git -C "$source" rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "SKIPPED: $source is no clone"; exit 0; }
  packages=
  : >log
  if command -v "$cargo" >/dev/null 2>&1 && "$source/tools/crates" . >log 2>&1; then packages=rust; fi
  [ -n "$packages" ] || echo "SKIPPED: no $cargo, or no crates: $(cat log)"
  if command -v npm >/dev/null 2>&1; then packages="$packages node"; else echo "SKIPPED: no npm, which makes the package for Node"; fi
  [ -n "$packages" ] || exit 0
  # shellcheck disable=SC2086
  "$source/tools/packages" --out "$out" $packages
else
  packages="rust node"
fi
awk '$1 == "header" { print $2 } $1 == "file" { print $4 }' "$EXPHIL_BUILD/sources.txt" | sort -u >sources.list
printf '%s\n' sources.txt LICENSE third_party/zstd/LICENSE >>sources.list

# holds PACKAGE FOLDER FILE...: its source is that of the tree, whole, and these files are there; what is built is not.
holds() {
  package=$1 folder=$2
  shift 2
  rm -rf unpacked
  mkdir unpacked
  tar -xzf "$package" -C unpacked
  while read -r file; do
    [ "$file" = sources.txt ] || cmp -s "$source/$file" "unpacked/$folder/libexphil/$file" || fail "$package: no $file, or another"
  done <sources.list
  for file in "$@"; do [ -e "unpacked/$folder/$file" ] || fail "$package has no $file"; done
  # What those include is there too.
  (cd "unpacked/$folder/libexphil" && grep -rhoE '^#include "[^"]+"' lib | sort -u | sed 's/.*"\(.*\)"/\1/' >../../../includes)
  while read -r header; do
    [ -n "$(find "unpacked/$folder/libexphil" -path "*/$header")" ] || fail "$package includes $header, and has it not"
  done <includes
  if tar -tzf "$package" | grep -E '[.](o|a|so|node|rlib)$|node_modules|/target/'; then fail "$package has what was built"; fi
  cmp -s unpacked/"$folder"/libexphil/sources.txt "$EXPHIL_BUILD/sources.txt" || fail "$package has another list of sources"
}

# ---- node ---------------------------------------------------------------------------------------------------

node_from_package() {
  command -v npm >/dev/null 2>&1 || { echo "SKIPPED: no npm"; return 0; }
  rm -rf app
  mkdir app
  (
    cd app
    echo '{ "private": true }' >package.json
    # As with nothing installed: pkg-config finds no library, and the loader neither.
    unset LD_LIBRARY_PATH PKG_CONFIG_PATH
    export PKG_CONFIG_LIBDIR=/nowhere npm_config_cache="$PWD/../npm" npm_config_update_notifier=false
    quiet npm install "$out/exphil-$version.tgz" --offline --no-audit --no-fund --foreground-scripts
    grep -q "compiled from the package's source" log || { cat log >&2; fail "npm install did not compile the library"; }
    package=node_modules/exphil
    if readelf -d $package/exphil.node | grep -q libexphil; then fail "the addon still wants a library"; fi
    for folder in $EXPHIL_TRACES; do
      node $package/exphil_trace.js check "$folder/policy.safetensors" "$folder/frames.trace"
    done
    mkdir melee
    cc $package/melee_rows.c -I$package/libexphil/include -o melee/rows $package/libexphil/exphil.a -pthread -lm -ldl
    melee/rows melee/model.safetensors >melee/rows.json
    (cd $package && EXPHIL_MELEE=../../melee quiet timeout 900 node --test exphil.test.js exphil_melee.test.js)
    # README's game of its own is trained and plays.
    awk '/^```js$/ { at++; on = at == 3; next } /^```/ { on = 0 } on' $package/README.md >game.js
    node game.js >log
    [ "$(tail -n 1 log)" = "move 2" ] || { cat log >&2; fail "the package for Node does not learn"; }
  )
  echo "node: exphil-$version.tgz is installed, tested, trains and plays"
}

case " $packages " in
  *" node "*)
    holds "$out/exphil-$version.tgz" package package.json build_addon.sh exphil.js exphil.d.ts addon.h exphil.test.js README.md LICENSE
    grep -q "\"version\": \"$version\"" unpacked/package/package.json || fail "the package for Node is not of version $version"
    if grep -n ']([.][.]/' unpacked/package/README.md; then fail "README.md of the package for Node leads out of it"; fi
    [ $# -eq 0 ] || node_from_package
    ;;
esac

# ---- rust ---------------------------------------------------------------------------------------------------

case " $packages " in *" rust "*) ;; *) exit 0 ;; esac
holds "$out/exphil-sys-$version.crate" "exphil-sys-$version" Cargo.toml build.rs src/bindings.rs LICENSE
tar -xzf "$out/exphil-$version.crate" -C unpacked
for file in Cargo.toml README.md LICENSE src/lib.rs examples/trace.rs tests/learn.rs; do
  [ -e "unpacked/exphil-$version/$file" ] || fail "the crate exphil has no $file"
done
[ $# -gt 0 ] || { echo "rust, node: the packages have the library's source, whole"; exit 0; }
# A program of somebody's, whose registry is these packages and Debian's crates.
"$source/tools/crates" . "$out/exphil-sys-$version.crate" "$out/exphil-$version.crate"
mkdir -p player/src/bin
cp unpacked/exphil-"$version"/examples/*.rs player/src/bin
cat >player/Cargo.toml <<END
[package]
name = "player"
version = "0.0.0"
edition = "2021"
[dependencies]
exphil = "$version"
[features]
vendored = ["exphil/vendored"]
END
export CARGO_NET_OFFLINE=true CARGO_TERM_COLOR=never
# alone COMMAND...: where no library is installed.
alone() { env -u LD_LIBRARY_PATH -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR=/nowhere CC="$compile" "$@"; }
compile=${CC:-cc}
if command -v ccache >/dev/null 2>&1; then compile="ccache $compile"; fi
(
  cd player
  export CARGO_TARGET_DIR=../alone
  quiet alone "$cargo" build
)
if readelf -d alone/debug/trace | grep -q libexphil; then fail "the program still wants a library"; fi
for folder in $EXPHIL_TRACES; do alone alone/debug/trace check "$folder/policy.safetensors" "$folder/frames.trace"; done
# It learns the drill, and what it has learnt plays it.
"$EXPHIL_PREFIX/bin/exphil" drill --frames 1800 --out drill.slp >/dev/null
alone alone/debug/train alone.safetensors 20 drill.slp >log
alone alone/debug/play alone.safetensors | grep buttons >alone.said
[ "$(wc -l <alone.said)" -eq 60 ] || fail "the example does not play"
"$EXPHIL_PREFIX/bin/exphil" drill alone.safetensors >log || { cat log >&2; fail "the policy does not play the drill"; }
# Where a library is installed, that is linked, and comes to the same bits.
(cd player && CARGO_TARGET_DIR=../linked quiet "$cargo" build)
readelf -d linked/debug/trace | grep -q libexphil || fail "where a library is installed, it is not linked"
linked/debug/train linked.safetensors 20 drill.slp >log
cmp alone.safetensors linked.safetensors || fail "the crate's own library trains to other bits than the installed one"
linked/debug/play alone.safetensors | grep buttons >linked.said
cmp alone.said linked.said || fail "the crate's own library plays other bits than the installed one"
# With the feature nobody asks what is installed; then the crates' own tests.
(cd player && CARGO_TARGET_DIR=../chosen quiet "$cargo" build --features vendored)
if readelf -d chosen/debug/trace | grep -q libexphil; then fail "with the feature vendored the program wants a library"; fi
for crate in exphil-sys exphil; do
  cp -R "registry/$crate-$version" "test-$crate"
  (cd "test-$crate" && CARGO_TARGET_DIR=../alone quiet alone "$cargo" test)
  grep -h '^test result' "test-$crate/log" | awk '{ sum += $4 } END { exit !(sum >= 2) }' || fail "$crate: few tests ran"
done
echo "rust: exphil-sys-$version.crate is compiled, plays as the installed library does, and trains"
