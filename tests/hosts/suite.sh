#!/bin/sh
# Runs the suite of one host in an empty folder of its own, with what all suites are given.
#   suite.sh <source folder> <build folder> <host> [argument of its script]
# EXPHIL_TRACES: folders with policy.safetensors and frames.trace that every language replays.
#   suite.sh <source folder> <build folder> install      what comes first: the library, installed; weights and a trace
set -eu
source=$1 build=$2 host=$3
shift 3
hosts=$build/hosts
EXPHIL_SOURCE=$source
EXPHIL_BUILD=$build
EXPHIL_PREFIX=$hosts/prefix
EXPHIL_TRACE=$hosts/trace
EXPHIL_REPLAYS=${EXPHIL_REPLAYS:-$source/../shared/replays}
libdir=$(find "$EXPHIL_PREFIX" -name 'libexphil.so' -printf '%h\n' 2>/dev/null | head -n 1)
PKG_CONFIG_PATH=$libdir/pkgconfig
LD_LIBRARY_PATH=$libdir
PATH=$EXPHIL_PREFIX/bin:$PATH
export EXPHIL_SOURCE EXPHIL_BUILD EXPHIL_PREFIX EXPHIL_TRACE EXPHIL_REPLAYS PKG_CONFIG_PATH LD_LIBRARY_PATH PATH
if [ "$host" = install ]; then
  rm -rf "$hosts"
  mkdir -p "$EXPHIL_TRACE"
  cmake --install "$build" --prefix "$EXPHIL_PREFIX" >"$hosts/install.log"
  libdir=$(find "$EXPHIL_PREFIX" -name 'libexphil.so' -printf '%h\n' | head -n 1)
  # shellcheck disable=SC2046
  PKG_CONFIG_PATH=$libdir/pkgconfig cc -std=c11 -O2 "$source/tests/hosts/trace.c" -o "$hosts/trace/trace" \
    $(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs exphil) -Wl,-rpath,"$libdir"
  "$hosts/trace/trace" make "$EXPHIL_TRACE"
  "$hosts/trace/trace" check "$EXPHIL_TRACE/policy.safetensors" "$EXPHIL_TRACE/frames.trace"
  exit 0
fi
[ -n "$libdir" ] || { echo "nothing is installed: run hosts.install first"; exit 1; }
# The plugin's own trace, where its suite has run; all others replay that, too.
[ "$host" != libretro ] || export EXPHIL_TRACE_OUT="$EXPHIL_TRACE/plugin"
EXPHIL_TRACES=$EXPHIL_TRACE
[ ! -e "$EXPHIL_TRACE/plugin/frames.trace" ] || EXPHIL_TRACES="$EXPHIL_TRACES $EXPHIL_TRACE/plugin"
export EXPHIL_TRACES
work=$hosts/$host
rm -rf "$work"
mkdir -p "$work"
cd "$work"
# Open MPI's daemons share a folder, and one that ends takes it from under another suite's. Its sockets need a short name.
OMPI_MCA_orte_tmpdir_base=$(mktemp -d "${TMPDIR:-/tmp}/exphil-mpi-XXXXXX")
export OMPI_MCA_orte_tmpdir_base
trap 'rm -rf "$OMPI_MCA_orte_tmpdir_base"' EXIT
sh "$source/tests/hosts/$host.sh" "$@"
