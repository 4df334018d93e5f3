#!/bin/sh
# The packages: Debian's are without errors for lintian, each has what its name says, a program builds and runs from what they
# unpack; the archive works from any folder; every package of every host has the version of the header.
set -eu
source=$EXPHIL_SOURCE
version=$(sed -n 's/^#define EXPHIL_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$source/include/exphil/exphil.h" | paste -sd .)
for tool in cpack dpkg-deb dpkg-shlibdeps lintian; do
  command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool"; exit 0; }
done
# An empty set of variables of the suite: what is unpacked must do without them.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH

cpack --config "$EXPHIL_BUILD/CPackConfig.cmake" -B "$PWD" >cpack.log 2>&1 || { cat cpack.log; exit 1; }
lintian --fail-on error --tag-display-limit 0 ./*.deb >lintian.log 2>&1 || { cat lintian.log; exit 1; }
echo "lintian: no errors in $(find . -maxdepth 1 -name '*.deb' | wc -l) packages, $(grep -c '^W:' lintian.log || true) warnings"

wanted="exphil-tools libexphil-dev libexphil0"
[ ! -e "$EXPHIL_BUILD/libexphil_cuda.so" ] || wanted="exphil-cuda $wanted"
for package in $wanted; do
  deb=$(ls "$package"_*.deb)
  [ "$(dpkg-deb -f "$deb" Version)" = "$version-1" ] || { echo "$deb is not of version $version"; exit 1; }
  dpkg-deb -x "$deb" root
done
[ "$(find . -maxdepth 1 -name '*.deb' | wc -l)" -eq "$(echo "$wanted" | wc -w)" ] ||
  { echo "other packages than $wanted: $(ls ./*.deb)"; exit 1; }
for file in usr/include/exphil/exphil.h usr/include/exphil/slp.h usr/include/exphil/games.h \
  usr/include/exphil/notes.h usr/include/exphil/examine.h usr/include/exphil/learn.h usr/bin/exphil usr/share/man/man1/exphil.1.gz \
  usr/share/doc/exphil/README.md usr/share/doc/libexphil0/copyright; do
  [ -e "root/$file" ] || { echo "no package has $file"; exit 1; }
done
for document in root/usr/share/doc/*/copyright; do
  grep -q "Copyright: (c) Meta Platforms" "$document" || { echo "$document does not tell whose zstd is"; exit 1; }
done
dpkg-deb -f libexphil0_*.deb Recommends | grep -qF libzstd1 || { echo "libexphil0 does not recommend what it loads"; exit 1; }
# What the installed README names is there.
documents=root/usr/share/doc/exphil
if grep -nE 'tools/|cmake (-S|--)|cpack' $documents/README.md; then echo "the installed README tells of the source tree"; exit 1; fi
grep -o '\]([^)]*)' $documents/README.md | sed 's/^](//; s/)$//' | sort -u >links
[ "$(wc -l <links)" -gt 10 ] || { echo "the installed README has no links"; exit 1; }
while read -r link; do
  [ -e "$documents/${link%%#*}" ] || { echo "the installed README names $link, which no package has"; exit 1; }
done <links
[ -x root/usr/share/doc/exphil/examples/pong/make-roms ] || { echo "scripts of the examples cannot be run"; exit 1; }
dpkg-deb -f libexphil-dev_*.deb Depends | grep -qF "libexphil0 (= $version-1)" || { echo "libexphil-dev fits any library"; exit 1; }
dpkg-deb -f exphil-tools_*.deb Depends | grep -qF jansson || { echo "exphil-tools has no dependencies"; exit 1; }

# run_from FOLDER: a program is built against what lies there and plays.
run_from() {
  pc=$(find "$1" -name exphil.pc)
  libdir=$(cd "$(dirname "$pc")/.." && pwd)
  [ "$(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --modversion exphil)" = "$version" ] || { echo "$pc has another version"; exit 1; }
  # shellcheck disable=SC2046
  cc "$source/tests/hosts/trace.c" -o "$1.trace" $(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs exphil)
  LD_LIBRARY_PATH=$libdir "./$1.trace" check "$EXPHIL_TRACE/policy.safetensors" "$EXPHIL_TRACE/frames.trace" >"$1.said"
  program=$(find "$1" -path '*bin/exphil')
  "$program" --version | grep -qF "$version" || { echo "$program has another version"; exit 1; }
}
run_from root
mkdir archive
tar -xzf exphil-"$version"-*.tar.gz -C archive
run_from archive
sha256sum --check --quiet ./*.sha256
if find root -name 'libexphil.so.0.*' -exec readelf -S {} \; | grep -q debug_info; then echo "the library is not stripped"; exit 1; fi

# fits VERSION: a program that asks for it takes this release, which fits who was written for an earlier one.
fits() {
  printf 'set(PACKAGE_FIND_VERSION %s)\nset(PACKAGE_FIND_VERSION_MAJOR %s)\nset(PACKAGE_FIND_VERSION_MINOR %s)\n' "$1" "${1%%.*}" "${1#*.}"
  echo "set(CMAKE_SIZEOF_VOID_P 8)"
  echo "include(\"$PWD/$(find root -name exphilConfigVersion.cmake)\")"
  # shellcheck disable=SC2016
  echo 'message("${PACKAGE_VERSION_COMPATIBLE}")'
}
for asked in 0.0 0.1 0.2 1.0; do
  fits $asked >asked.cmake
  wanted_fit=FALSE
  [ "${asked%.*}" != "${version%%.*}" ] ||
    [ "$(printf '%s\n' "$asked" "${version%.*}" | sort -V | tail -n 1)" != "${version%.*}" ] || wanted_fit=TRUE
  [ "$(cmake -P asked.cmake 2>&1)" = $wanted_fit ] || { echo "find_package(exphil $asked): not $wanted_fit"; exit 1; }
done

# With an MPI there are two packages more, of a library that is found where the program looks for it; and what is installed as source
# builds against what is installed. For these two cpack need not build all the rest.
if pkg-config --exists ompi-c; then
  {
    cmake -S "$source" -B with_mpi -DCMAKE_INSTALL_PREFIX=/usr -DEXPHIL_PACKAGES=ON -DEXPHIL_TESTS=OFF -DEXPHIL_TOOLS=OFF \
      -DEXPHIL_MPI=ompi-c -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON && cmake --build with_mpi --target exphil_mpi &&
      cpack --config with_mpi/CPackConfig.cmake -G DEB -D "CPACK_COMPONENTS_ALL=mpi;mpi_development" -B mpi_packages &&
      lintian --fail-on error --tag-display-limit 0 mpi_packages/*.deb &&
      PKG_CONFIG_PATH=$(dirname "$(find root -name exphil.pc)") cmake -S $documents/mpi -B from_root -DEXPHIL_MPI=ompi-c \
        -Dexphil_DIR="$(dirname "$(find "$PWD/root" -name exphilConfig.cmake)")" && cmake --build from_root
  } >mpi.log 2>&1 || { cat mpi.log; exit 1; }
  for package in libexphil-mpi0 libexphil-mpi-dev; do dpkg-deb -x mpi_packages/${package}_*.deb mpi_root; done
  dpkg-deb -f mpi_packages/libexphil-mpi0_*.deb Depends | grep -q openmpi || { echo "libexphil-mpi0 depends on no MPI"; exit 1; }
  for file in 'libexphil_mpi.so.0' 'libexphil_mpi.so' exphil_mpi.h exphil_mpi.pc; do
    [ -n "$(find mpi_root -name "$file")" ] || { echo "no package has $file"; exit 1; }
  done
  [ -n "$(find from_root -name libexphil_mpi.so.0)" ] || { echo "mpi/, as installed, builds nothing"; exit 1; }
else
  echo "SKIPPED in part: no ompi-c for pkg-config, packages of libexphil_mpi are not made"
fi

# What people built inside the source folders is neither installed nor archived, wherever the source tree lies.
mkdir -p build/copy stage
tar -C "$source" --exclude=./build --exclude=./.git -cf - . | tar -C build/copy -xf -
for folder in bindings/rust/target bindings/elixir/_build bindings/python/build bindings/python/src/exphil.egg-info \
  bindings/python/.venv bindings/node/build bindings/node/node_modules bindings/csharp/obj examples/slippi/build \
  bindings/python/src/exphil/__pycache__ bindings/python/.mypy_cache; do
  mkdir -p build/copy/$folder
  touch build/copy/$folder/leftover
done
for file in bindings/python/src/exphil/leftover.abi3.so bindings/node/leftover.node examples/slippi/leftover.o \
  examples/libretro/leftover.so.1 bindings/csharp/leftover.dll; do
  touch build/copy/$file
done
{
  cmake -S build/copy -B configured -DEXPHIL_PACKAGES=ON -DEXPHIL_TESTS=OFF -DEXPHIL_TOOLS=OFF -DEXPHIL_CUDA=OFF
  touch configured/libexphil.a && ln -s libexphil.so.0 configured/libexphil.so # never built: only the documents matter
  cmake --install configured --component development --prefix stage
  cpack --config configured/CPackSourceConfig.cmake -B sources
} >configured.log 2>&1 || { cat configured.log; exit 1; }
find stage >installed.list
tar -tzf sources/*.tar.gz >sources.list
if grep -H leftover installed.list sources.list; then echo "that was built, and is no source"; exit 1; fi
for file in mpi/exphil_mpi.c bindings/rust/exphil/build.rs bindings/elixir/mix.exs bindings/node/build_addon.sh examples/pong/make-roms; do
  for list in installed sources; do grep -q "/$file\$" $list.list || { echo "$list: no $file"; exit 1; }; done
done
for file in CMakeLists.txt include/exphil/exphil.h tools/demo tests/hosts/packages.sh .clang-format; do
  grep -q "^[^/]*/$file\$" sources.list || { echo "the source archive has no $file"; exit 1; }
done

# One source of the version: what must carry a number of its own has the header's.
failed=0
agree() {
  [ "$2" = "$version" ] || { echo "$1 has version '$2', the header $version"; failed=1; }
}
# Above the newest release stands what comes after it.
agree "CHANGELOG.md" "$(sed -n '/not released/d; s/^## \([0-9.]*\).*/\1/p' "$source/CHANGELOG.md" | head -n 1)"
for crate in "$source"/bindings/rust/*/Cargo.toml; do
  agree "${crate#"$source"/}" "$(sed -n 's/^version = "\(.*\)"/\1/p' "$crate" | head -n 1)"
done
agree "exphil-sys, as exphil wants it," \
  "$(sed -n 's/^exphil-sys = .*version = "=\([^"]*\)".*/\1/p' "$source/bindings/rust/exphil/Cargo.toml")"
for package in node web; do
  agree bindings/$package/package.json "$(sed -n 's/^ *"version": "\(.*\)",*/\1/p' "$source/bindings/$package/package.json" | head -n 1)"
done
agree mix.exs "$(sed -n 's/^ *@version "\(.*\)"/\1/p' "$source/bindings/elixir/mix.exs")"
agree Exphil.csproj "$(sed -n 's,^ *<Version>\(.*\)</Version>,\1,p' "$source/bindings/csharp/Exphil.csproj")"
[ "$failed" -eq 0 ] || exit 1
echo "packages: $wanted, and an archive, of $version"
