#!/bin/sh
# Policies of every kind, made and played with the installed library, and made again in PyTorch from doc/model.md alone: the
# same tensors, logits, actions and losses. The environment is that of every host suite.
set -eu
python=${PYTHON:-/usr/bin/python3}
for module in numpy torch; do
  "$python" -c "import $module" 2>/dev/null || { echo "SKIPPED: $python has no $module"; exit 0; }
done
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 # matrices are small: threads would only wait for each other
mkdir files
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror -O2 "$EXPHIL_SOURCE/tests/data/policies.c" -o policies $(pkg-config --cflags --libs exphil) -lm
./policies files
"$python" "$EXPHIL_SOURCE/tests/data/rebuild_check.py" \
  "$EXPHIL_SOURCE/doc/model.md" files
# A page that says something else must be found out.
sed 's/| `blocks.<i>.A_log` | `\[D, N\]`/| `blocks.<i>.A_log` | `[D, N + 1]`/' "$EXPHIL_SOURCE/doc/model.md" >wrong.md
if "$python" "$EXPHIL_SOURCE/tests/data/rebuild_check.py" wrong.md files >wrong.log 2>&1; then
  echo "a wrong page passed"
  exit 1
fi
grep -q 'A_log has shape .* the page says' wrong.log || { cat wrong.log; exit 1; }
