#!/bin/sh
# The two minutes in which the policy of examples/web learns to beat its visitor, by a clock of frames: a minute with relaxed SIMD.
# The environment is that of every host suite.
set -eu
exec sh "$EXPHIL_SOURCE/tests/hosts/web_page.sh" 7200
