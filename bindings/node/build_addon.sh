#!/bin/sh
# Builds exphil.node with the C compiler alone. Node's own headers lie beside it, or in Debian's package libnode-dev;
# $NODE_INCLUDE names another folder. libexphil is found by pkg-config. A package (npm pack) carries its source in the folder
# libexphil: where none that fits is installed, or with EXPHIL_VENDORED=1, that is compiled into the addon. Folders may have spaces
# in their names.
set -eu
cd "$(dirname "$0")"
fail() { echo "build_addon.sh: $*" >&2; exit 1; }

# installed: says why not, if none of the package's minor version is known to pkg-config.
installed() {
  command -v pkg-config >/dev/null || { echo "no pkg-config, which is asked for libexphil: install it"; return 1; }
  why=$(pkg-config --print-errors --exists exphil 2>&1) || {
    echo "libexphil is not found: install it, and set PKG_CONFIG_PATH to the folder of exphil.pc where that is no folder of the" \
      "system ($why)"
    return 1
  }
  wanted=$(node -p 'require("./package.json").version.replace(/[.][0-9]+$/, "")')
  case $(pkg-config --modversion exphil) in
    "$wanted".*) ;;
    *) echo "libexphil $(pkg-config --modversion exphil) is installed, this addon is for $wanted"; return 1 ;;
  esac
}

# compile: the source in libexphil, by the list in it (cmake/Sources.cmake of the source tree explains it), as libexphil/exphil.a;
# as many files at a time as there are processors.
compile() {
  cd libexphil
  case $(uname -s) in Darwin) system=macos ;; *) system=posix ;; esac
  case $(node -p process.arch) in x64) processor=x86 ;; arm64) processor=arm ;; *) processor=any ;; esac
  macros=$(echo | ${CC:-cc} -dM -E -x c -) || fail "no C compiler: ${CC:-cc}"
  case $macros in *__clang__*) compiler=clang ;; *__GNUC__*) compiler=gnu ;; *) fail "${CC:-cc} is neither gcc nor clang" ;; esac
  rm -rf objects
  awk -v here="$system" -v processor="$processor" -v compiler="$compiler" '
    $2 == "any" || $2 == processor { if ($1 == "groups") for (i = 3; i <= NF; i++) order[++groups] = $i }
    $1 == "flags" && ($3 == "any" || $3 == processor) {
      for (i = 4; i <= NF; i++) {
        word = $i
        if (word ~ /^(gnu|clang):/ && !sub("^" compiler ":", "", word)) continue
        flags[$2] = flags[$2] " " word
      }
    }
    $1 == "file" && index("," $3 ",", "," here ",") { files[$2] = files[$2] " " $4 }
    END {
      for (i = 1; i <= groups; i++) {
        count = split(files[order[i]], names, " ")
        for (k = 1; k <= count; k++) {
          object = names[k]
          gsub("/", "_", object)
          print flags[order[i]], "-c", names[k], "-o objects/" order[i] "-" object ".o"
        }
      }
    }' sources.txt >commands
  mkdir objects
  # shellcheck disable=SC2086 # CC may be several words
  sed 's/"/\\"/g' commands | xargs -L 1 -P "$(getconf _NPROCESSORS_ONLN)" ${CC:-cc} -fPIC || fail "libexphil cannot be compiled"
  rm -f exphil.a
  ${AR:-ar} rc exphil.a objects/*.o
  [ "$(ar t exphil.a | wc -l)" -eq "$(grep -c . commands)" ] || fail "libexphil was not compiled whole"
  rm -r objects commands
  cd ..
}

why=$(installed) && found=yes || found=
[ -n "$found" ] || [ -e libexphil/sources.txt ] || fail "$why"
[ -w . ] || fail "$PWD cannot be written to: copy the folder first, and build the copy"
beside=$(node -p 'require("path").resolve(process.execPath, "../../include/node")')
for include in "${NODE_INCLUDE:-}" "$beside" /usr/include/node; do
  [ ! -e "$include/node_api.h" ] || break
done
[ -e "$include/node_api.h" ] || fail "no node_api.h in $beside or /usr/include/node: install libnode-dev, or set NODE_INCLUDE"
if [ -n "$found" ] && [ -z "${EXPHIL_VENDORED:-}" ]; then
  # pkg-config writes for a shell, with backslashes before spaces: one reads the flags, the one folder is freed of them.
  eval "set -- $(pkg-config --cflags --libs exphil)"
  libdir=$(pkg-config --variable=libdir exphil | sed 's/\\\(.\)/\1/g')
  set -- "$@" -Xlinker -rpath -Xlinker "$libdir"
else
  [ -e libexphil/sources.txt ] || fail "EXPHIL_VENDORED: this folder has no source of libexphil, which packages have (tools/packages node)"
  [ -n "${EXPHIL_VENDORED:-}" ] ||
    echo "libexphil is compiled from the package's source, some minutes. One that is installed is not linked, for: $why"
  compile
  # The addon's own, which no other library of the process sees.
  set -- -Ilibexphil/include libexphil/exphil.a -Xlinker --exclude-libs -Xlinker exphil.a -pthread -lm -ldl
fi
# shellcheck disable=SC2086 # CFLAGS are several
${CC:-cc} -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Wpedantic -Wconversion ${CFLAGS:-} -DNAPI_VERSION=8 \
  -isystem "$include" -o exphil.node addon.c addon_fields.c addon_values.c addon_play.c addon_train.c addon_melee.c "$@"
