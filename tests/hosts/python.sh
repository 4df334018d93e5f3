#!/bin/sh
# The Python package as a user builds it: a wheel out of a copy of bindings/python, installed into a folder of its own; then
# pytest, the common trace, and the examples of its README. The environment is that of every host suite.
#   python.sh | python.sh bench
set -eu
python=${PYTHON:-/usr/bin/python3}
command -v "$python" >/dev/null || { echo "SKIPPED: no $python"; exit 0; }
for module in cffi numpy setuptools wheel pip pytest; do
    "$python" -c "import $module" 2>/dev/null || { echo "SKIPPED: $python has no $module"; exit 0; }
done

fail() { echo "python: $*" >&2; exit 1; }

export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
rm -rf source dist site
cp -R "$EXPHIL_SOURCE/bindings/python" source
"$python" -m pip wheel -q --no-build-isolation --no-deps --no-index --no-cache-dir -w dist ./source >build.log 2>&1 || {
    cat build.log >&2
    fail "the wheel is not built"
}
"$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target site dist/exphil-*-abi3-*.whl
export PYTHONPATH="$PWD/site"

if [ "${1:-}" = bench ]; then
    exec "$python" source/tests/bench_step.py "$EXPHIL_TRACE/small.safetensors"
fi

# Nothing of the source may be imported in place of what was installed.
rm -rf source/exphil
(cd source && "$python" -m pytest -ra --basetemp=../pytest >../pytest.log 2>&1) || {
    cat pytest.log >&2
    fail "pytest failed"
}
# What pytest left out is told as every suite tells it.
sed -n 's/^SKIPPED \[[0-9]*\] [^ ]* /SKIPPED: /p' pytest.log
tail -n 1 pytest.log
for folder in $EXPHIL_TRACES; do
  "$python" source/tests/check_trace.py "$folder/policy.safetensors" "$folder/frames.trace"
done

# A trace with a flipped bit must be found out.
"$python" - "$EXPHIL_TRACE/frames.trace" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-1] ^= 1
open("wrong.trace", "wb").write(data)
END
if "$python" source/tests/check_trace.py "$EXPHIL_TRACE/policy.safetensors" wrong.trace >wrong.log 2>&1; then
    fail "a wrong trace passed"
fi

# The examples, word for word.
for number in 1 2; do
    awk -v want=$number '/^```python/ { at++; on = at == want; next } /^```/ { on = 0 } on' source/README.md >example$number.py
    [ "$(grep -c . example$number.py)" -ge 8 ] || fail "the README has no example $number"
done
cp "$EXPHIL_TRACE/policy.safetensors" .
"$python" example1.py >example1.log
grep -q "^59 \[" example1.log || fail "the first example did not play 60 frames"
"$EXPHIL_PREFIX/bin/exphil" drill --force --out drill.slp >/dev/null
"$python" example2.py >example2.log
grep -q "^60 " example2.log && [ -s fox.safetensors ] || fail "the second example did not train"
