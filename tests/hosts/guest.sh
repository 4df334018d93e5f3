#!/bin/sh
# What hosts do to a library: plugins of one process that each bring it along, small stacks, forks, threads, another locale,
# handles destroyed in every order. See guest_host.c.
set -eu
# shellcheck disable=SC2046
cc -std=c11 -O1 -g -Wall -Wextra -Werror -fPIC -shared "$EXPHIL_SOURCE/tests/hosts/guest_plugin.c" -o plugin.so \
  $(pkg-config --cflags --libs exphil) -pthread
cp plugin.so copy.so
cc -std=c11 -O1 -g -Wall -Wextra -Werror "$EXPHIL_SOURCE/tests/hosts/guest_host.c" -o host -ldl -pthread
if readelf -d host | grep -q libexphil; then echo "the host must not be linked to the library"; exit 1; fi
./host ./plugin.so ./copy.so
