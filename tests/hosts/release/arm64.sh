#!/bin/sh
# Debian's packages for 64-bit ARM (tools/packages debian-arm64): the files of those for this machine, for that processor, with the
# dependencies that dpkg-shlibdeps finds; unpacked into a folder the program trains and plays under qemu, with the bits of this machine.
#   arm64.sh [FOLDER]      what release/twice made, or the packages there
set -eu
fail() { echo "arm64: $*" >&2; exit 1; }
out=${1:-$EXPHIL_BUILD/hosts/release.packages}
for tool in qemu-aarch64-static aarch64-linux-gnu-readelf dpkg-deb; do
  command -v $tool >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }
done
ls "$out"/*_arm64.deb >/dev/null || fail "no packages in $out: release/twice makes them"
[ "$(find "$out" -name '*_arm64.deb' | wc -l)" -eq 3 ] || fail "not three packages: $(ls "$out"/*_arm64.deb)"
here=$(dpkg --print-architecture)
for package in libexphil0 libexphil-dev exphil-tools; do
  deb=$(ls "$out/$package"_*_arm64.deb)
  [ "$(dpkg-deb -f "$deb" Architecture)" = arm64 ] || fail "$deb is for $(dpkg-deb -f "$deb" Architecture)"
  dpkg-deb -x "$deb" root
  # The same files with the same dependencies: other processors have other C libraries, whose versions may differ.
  twin=$(ls "$out/$package"_*_"$here".deb)
  for kind in Depends Recommends Version Section Description; do
    for file in "$deb" "$twin"; do
      dpkg-deb -f "$file" $kind | sed 's/libc6 (>= [^)]*)/libc6/' >"field.$(dpkg-deb -f "$file" Architecture)"
    done
    cmp "field.$here" field.arm64 || fail "$kind of $package is '$(cat field.arm64)', on $here '$(cat "field.$here")'"
  done
  for file in "$deb" "$twin"; do
    dpkg-deb -c "$file" | awk '{ print $1, $6 }' | sed 's,[a-z0-9_]*-linux-gnu,TRIPLET,' >"files.$(dpkg-deb -f "$file" Architecture)"
  done
  diff "files.$here" files.arm64 || fail "$package has other files than on $here"
done
dpkg-deb -f "$out"/libexphil0_*_arm64.deb Depends | grep -Eq '^libc6 \(>= 2[.][0-9]+\)$' || fail "libexphil0 depends on something else"
dpkg-deb -f "$out"/exphil-tools_*_arm64.deb Depends | grep -Eq 'libc6 \(>= 2[.][0-9]+\), libjansson4 \(>= 2[.][0-9]+\)' ||
  fail "exphil-tools depends on $(dpkg-deb -f "$out"/exphil-tools_*_arm64.deb Depends)"
find root -type f \( -name 'libexphil.so.*' -o -path '*bin/exphil' \) >binaries
[ "$(wc -l <binaries)" -eq 2 ] || fail "no library, or no program"
while read -r file; do
  aarch64-linux-gnu-readelf -h "$file" | grep -q AArch64 || fail "$file is for another processor"
  if aarch64-linux-gnu-readelf -d "$file" | grep -E 'RPATH|RUNPATH'; then fail "$file looks for libraries in folders of its own"; fi
  if aarch64-linux-gnu-readelf -S "$file" | grep -q debug_info; then fail "$file is not stripped"; fi
done <binaries
libraries=$EXPHIL_SOURCE/build/packages/twice/a/tree/build/packages/arm64/root/usr/lib/aarch64-linux-gnu
[ $# -eq 0 ] || libraries=$EXPHIL_SOURCE/build/packages/arm64/root/usr/lib/aarch64-linux-gnu
arm() {
  qemu-aarch64-static -cpu max -L /usr/aarch64-linux-gnu \
    -E "LD_LIBRARY_PATH=root/usr/lib/aarch64-linux-gnu:/usr/aarch64-linux-gnu/lib:$libraries" "$@"
}
here() { "$EXPHIL_PREFIX/bin/exphil" "$@"; }
for side in here arm; do
  mkdir $side
  program=here
  [ $side = here ] || program="arm root/usr/bin/exphil"
  $program drill --frames 1200 --out $side/drill.slp >$side/log
  $program train --port 1 --no-previous-action --blocks gru --hidden 16 --rate 0.01 --updates 20 --threads 1 --force \
    --out $side/drill.safetensors $side/drill.slp >>$side/log 2>&1 || { cat $side/log; fail "train, $side"; }
done
cmp here/drill.slp arm/drill.slp || fail "the drill has other bits"
cmp here/drill.safetensors arm/drill.safetensors || fail "the policy has other bits"
# A program of ARM that is built against the unpacked packages and replays what C recorded here.
aarch64-linux-gnu-gcc -std=c11 -O2 "$EXPHIL_SOURCE/tests/hosts/trace.c" -o trace -Iroot/usr/include \
  -Lroot/usr/lib/aarch64-linux-gnu -lexphil -lm
arm ./trace check "$EXPHIL_TRACE/policy.safetensors" "$EXPHIL_TRACE/frames.trace"
echo "arm64: $(dpkg-deb -f "$out"/exphil-tools_*_arm64.deb Depends)"
