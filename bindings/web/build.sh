#!/bin/sh
# Makes the package of npm, for browsers and Node:
#   bindings/web/build.sh --out FOLDER [--modules FOLDER]
# FOLDER/exphil-play-VERSION.tgz is what npm takes; equal sources give equal bytes. Modules are built by tools/systems (tools/deps
# systems installs zig), or taken from --modules, where a package was unpacked.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "build.sh: $*" >&2; exit 1; }

# A module's file, and the target of tools/systems that it is built for.
targets='exphil_play.wasm wasm32-wasi
exphil_play_relaxed.wasm wasm32-wasi-relaxed'

out='' modules=''
while [ $# -gt 0 ]; do
  case $1 in
    --out | --modules) [ $# -ge 2 ] || fail "$1 wants a folder" ;;
  esac
  case $1 in
    --out) out=$2 ;;
    --modules) modules=$2 ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; [ "$1" = --help ] && exit 0; exit 2 ;;
  esac
  shift 2
done
[ -n "$out" ] || fail "--out FOLDER is missing"
mkdir -p "$out"
out=$(cd "$out" && pwd)
number() { sed -n "s/^#define EXPHIL_VERSION_$1 \([0-9]*\)$/\1/p" "$root/include/exphil/exphil.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
here=$root/bindings/web
grep -q "\"version\": \"$version\"" "$here/package.json" || fail "package.json is of another version than the header, $version"

# One at a time: all build in one folder.
if [ -z "$modules" ] && command -v flock >/dev/null 2>&1; then
  mkdir -p "$root/build"
  exec 9>"$root/build/web.lock"
  flock 9
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/package"
echo "$targets" | while read -r file target; do
  if [ -n "$modules" ]; then
    cp "$modules/$file" "$work/package/$file" || fail "no $file in $modules"
    continue
  fi
  "$root/tools/systems" play "$target" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "$file does not build"; }
  python3 "$here/strip.py" "$("$root/tools/systems" folder "$target")/web/exphil_play.wasm" "$work/package/$file"
done
for file in exphil_play.js exphil_memory.js exphil_melee.js exphil_names.js exphil_play.d.ts package.json README.md; do
  cp "$here/$file" "$work/package/$file"
done
cp "$root/LICENSE" "$work/package/LICENSE"
chmod -R u=rwX,go=rX "$work/package"

# What a reader has to fetch, at most.
for file in "$work"/package/*.wasm; do
  bytes=$(gzip -9 -n -c "$file" | wc -c)
  echo "$(basename "$file"): $(wc -c <"$file") bytes, $bytes by gzip"
  [ "$bytes" -lt 300000 ] || fail "$(basename "$file") is $bytes bytes by gzip, at most 300000 are wanted"
done

# The date of the commit, or of the release where the sources are no repository.
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 315532800)}
tar -C "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --format=ustar -cf "$work/package.tar" package
gzip -9 -n "$work/package.tar"
mv "$work/package.tar.gz" "$out/exphil-play-$version.tgz"
echo "$out/exphil-play-$version.tgz"
