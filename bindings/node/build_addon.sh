#!/bin/sh
# Builds exphil.node with the C compiler alone. Node's own headers lie beside it, or in Debian's package libnode-dev;
# $NODE_INCLUDE names another folder. libexphil is found by pkg-config. Folders may have spaces in their names.
set -eu
cd "$(dirname "$0")"
fail() { echo "build_addon.sh: $*" >&2; exit 1; }
command -v pkg-config >/dev/null || fail "no pkg-config, which is asked for libexphil: install it"
why=$(pkg-config --print-errors --exists exphil 2>&1) ||
  fail "libexphil is not found: install it, and set PKG_CONFIG_PATH to the folder of exphil.pc where that is no folder of the system ($why)"
[ -w . ] || fail "$PWD cannot be written to: copy the folder first, and build the copy"
beside=$(node -p 'require("path").resolve(process.execPath, "../../include/node")')
for include in "${NODE_INCLUDE:-}" "$beside" /usr/include/node; do
  [ ! -e "$include/node_api.h" ] || break
done
[ -e "$include/node_api.h" ] || fail "no node_api.h in $beside or /usr/include/node: install libnode-dev, or set NODE_INCLUDE"
# pkg-config writes for a shell, with backslashes before spaces: one reads the flags, the one folder is freed of them.
eval "set -- $(pkg-config --cflags --libs exphil)"
libdir=$(pkg-config --variable=libdir exphil | sed 's/\\\(.\)/\1/g')
# shellcheck disable=SC2086 # CFLAGS are several
${CC:-cc} -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wpedantic -Wconversion ${CFLAGS:-} -DNAPI_VERSION=8 \
  -isystem "$include" -o exphil.node addon.c addon_fields.c addon_values.c addon_play.c addon_train.c addon_melee.c \
  "$@" -Xlinker -rpath -Xlinker "$libdir"
