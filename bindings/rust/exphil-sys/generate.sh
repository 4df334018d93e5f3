#!/bin/sh
# Writes the declarations of the installed headers as Rust: generate.sh OUTPUT [more options of bindgen]. Whoever changes
# the headers runs it with src/bindings.rs --no-layout-tests and commits that, so that nobody else needs bindgen. Made with
# Debian 12's 0.60.1.
set -eu
output=$1
shift
# A newer libclang than Debian 12's leaves out the constants of enumerations without a name.
[ -n "${LIBCLANG_PATH:-}" ] || [ ! -d /usr/lib/llvm-14/lib ] || export LIBCLANG_PATH=/usr/lib/llvm-14/lib
# xargs takes the backslashes away that pkg-config puts before spaces.
include=$(PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 pkg-config --cflags-only-I exphil | xargs printf '%s\n' | sed -n 's/^-I//p;q')
bindgen "$include/exphil/games.h" --allowlist-function 'exphil_.*' --allowlist-type 'exphil_.*' \
  --allowlist-var 'EXPHIL_.*' --size_t-is-usize --default-macro-constant-type signed --no-prepend-enum-name \
  --no-doc-comments --with-derive-default "$@" -o "$output" -- -I"$include" -include exphil/conditions.h \
  -include exphil/plan.h -include exphil/notes.h -include exphil/examine.h -include exphil/match.h -include exphil/blocks.h \
  -include exphil/live.h -include exphil/ranks.h -include exphil/ops.h
