#!/bin/sh
# The Python package as a user builds it: out of a copy of bindings/python, installed into an environment of its own; then
# pytest, the common trace, and the examples of its README; all below a folder whose name has a space. The environment is
# that of every host suite.
#   python.sh | python.sh bench
# shellcheck disable=SC2030,SC2031 # python is another one in some subshells, and there only
set -eu
python=${PYTHON:-/usr/bin/python3}
command -v "$python" >/dev/null || { echo "SKIPPED: no $python"; exit 0; }
for module in cffi numpy setuptools wheel pip pytest; do
    "$python" -c "import $module" 2>/dev/null || { echo "SKIPPED: $python has no $module"; exit 0; }
done

fail() { echo "python: $*" >&2; exit 1; }

export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
rm -rf "with space"
mkdir "with space"
cd "with space"
cp -R "$EXPHIL_SOURCE/bindings/python" source
wheel() {
    "$python" -m pip wheel -q --no-build-isolation --no-deps --no-index --no-cache-dir -w source/dist ./source >build.log 2>&1 || {
        cat build.log >&2
        fail "the wheel is not built"
    }
}
if [ "${1:-}" != bench ]; then
    # A library below a folder with a space is found, while building and by the wheel; and this build leaves nothing behind.
    mkdir elsewhere
    libdir=$(pkg-config --variable=libdir exphil)
    cp -P "$libdir"/libexphil.so* elsewhere
    ln -s "$(pkg-config --variable=includedir exphil)" elsewhere/include
    sed -e 's,^prefix=.*,prefix=${pcfiledir},' -e 's,^libdir=.*,libdir=${prefix},' \
        -e 's,^includedir=.*,includedir=${prefix}/include,' "$(pkg-config --variable=pcfiledir exphil)/exphil.pc" >elsewhere/exphil.pc
    PKG_CONFIG_PATH=$PWD/elsewhere wheel
    "$python" -m zipfile -e source/dist/exphil-*-abi3-*.whl elsewhere/site
    loaded=$(cd elsewhere/site && env -u LD_LIBRARY_PATH "$python" -c 'import exphil; print(exphil.library_path())')
    case $loaded in "$PWD"/elsewhere/*) ;; *) fail "the wheel of $PWD/elsewhere runs $loaded" ;; esac
fi
# Where it cannot be written to (root always can), the build says so.
chmod a-w source
if [ ! -w source ]; then
    if (wheel) >read_only.log 2>&1; then fail "built in a folder that cannot be written to"; fi
    grep -q "copy the folder first" read_only.log || { cat read_only.log >&2; fail "a read-only folder is not explained"; }
fi
chmod u+w source
# Without what the native part is made with, the build ends, and says what to install. An environment that has setuptools and
# wheel alone, linked from where they are: cffi's metadata must be missing, too.
"$python" -m venv --without-pip bare
rm -rf source/dist
"$python" - "$(bare/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'END'
import glob, importlib.util, os, sys
for name in ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel"):
    found = importlib.util.find_spec(name)
    if found:
        folder = os.path.dirname(os.path.dirname(found.origin))
        for path in [os.path.join(folder, name)] + glob.glob(os.path.join(folder, name + "-*")):
            os.symlink(path, os.path.join(sys.argv[1], os.path.basename(path)))
END
if (python=$PWD/bare/bin/python && wheel) >bare.log 2>&1; then fail "a wheel is built without cffi"; fi
grep -q "without cffi (No module named 'cffi'): install python3-cffi" bare.log ||
    { cat bare.log >&2; fail "a missing cffi is not explained"; }
mkdir nowhere
if (export PKG_CONFIG_LIBDIR="$PWD/nowhere" PKG_CONFIG_PATH="$PWD/nowhere" && wheel) >nowhere.log 2>&1; then
    fail "a wheel is built without libexphil"
fi
grep -q "libexphil is not found; install it and set PKG_CONFIG_PATH" nowhere.log ||
    { cat nowhere.log >&2; fail "a missing libexphil is not explained"; }
if ls source/dist/*.whl >/dev/null 2>&1; then fail "a build that failed left a wheel"; fi
# Installed as its README says, beside the sources, which must not be taken for the package.
"$python" -m venv --system-site-packages --without-pip source/.venv
venv=$PWD/source/.venv/bin/python
# What an environment has that $PYTHON itself is of.
"$python" -c 'import sys, sysconfig; sys.prefix != sys.base_prefix and print(sysconfig.get_path("purelib"))' >outer.pth
cp outer.pth "$("$venv" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
python=$venv
sed -n 's/^    \.venv\/bin\/\(python -m pip install .*\)/.venv\/bin\/\1 -q --no-cache-dir/p' source/README.md >install.sh
[ "$(grep -c 'pip install .* \. ' install.sh)" -eq 1 ] || fail "README.md does not say how to install"
(cd source && sh -eu ../install.sh) >install.log 2>&1 || { cat install.log >&2; fail "README.md's pip install . fails"; }
native=$(cd source && "$python" -c 'import exphil._native; print(exphil._native.__file__)')
# Neither the earlier build's folder nor that of this one is in it.
if grep -q -e "$PWD" -e "build/temp" "$native"; then fail "the wheel names a folder of this build"; fi

# What an index would show stands alone: no link of it leads to a file beside README.md.
"$python" -c 'from importlib import metadata; print(metadata.distribution("exphil").read_text("METADATA"))' >metadata.log
grep -q "^# exphil for Python" metadata.log || fail "the package has no description"
if grep "](\.\./" metadata.log >&2; then fail "a link of the package's description leads nowhere"; fi

if [ "${1:-}" = bench ]; then
    exec "$python" source/tests/bench_step.py "$EXPHIL_TRACE/small.safetensors"
fi

(cd source && "$python" -m pytest -ra --basetemp=../pytest >../pytest.log 2>&1) || {
    cat pytest.log >&2
    fail "pytest failed"
}
# What pytest left out is told as every suite tells it, but what JAX and a torch of their own are there for (below).
frameworks=${EXPHIL_FRAMEWORKS_PYTHON:-$EXPHIL_SOURCE/build/frameworks/bin/python3}
there=
if "$frameworks" -c "import jax, torch, pytest" 2>import.log; then there=yes; fi
sed -n 's/^SKIPPED \[[0-9]*\] [^ ]* /SKIPPED: /p' pytest.log >skipped.log
grep -v ${there:+-e "jax is not installed" -e "registered operators"} -e "^$" skipped.log || true
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

# The examples, word for word, in the folder that the README names.
for number in 1 2 3 6 7 8 9; do
    awk -v want=$number '/^```python/ { at++; on = at == want; next } /^```/ { on = 0 } on' source/README.md >source/example$number.py
    [ "$(grep -c . source/example$number.py)" -ge 5 ] || fail "the README has no example $number"
done
cd source
# The first plays a ready policy: here that of the installed library.
[ "$("$python" -c "import exphil; print(exphil.ready('drill'))")" = \
    "$(realpath "$EXPHIL_PREFIX/share/doc/exphil/policies/drill.safetensors")" ] ||
    fail "exphil.ready does not know the policies of the installed library"
"$python" example1.py >example1.log
grep -q "^59 \[" example1.log || fail "the first example did not play 60 frames"
"$EXPHIL_PREFIX/bin/exphil" drill --force --out drill.slp >/dev/null
"$python" example2.py >example2.log
grep -q "^60 " example2.log && [ -s fox.safetensors ] || fail "the second example did not train"
# Half of the replay is said to be that.
cp drill.slp whole.slp
head -c 500000 whole.slp >drill.slp
"$python" example2.py >example2.log
grep -q "ends early" example2.log || { cat example2.log >&2; fail "the second example is silent about a cut replay"; }
# Links of the README lead to something wherever the folder stands: in the source tree, and installed.
# shellcheck disable=SC2013 # no link has a space
for link in $(sed -n 's/.*](\([^)#]*\)).*/\1/p' README.md); do
    for folder in "$EXPHIL_SOURCE/bindings/python" "$EXPHIL_PREFIX/share/doc/exphil/bindings/python"; do
        [ ! -d "$folder" ] || [ -e "$folder/$link" ] || fail "README.md links to $link, which $folder does not reach"
    done
done
"$python" example3.py >example3.log
[ "$(tail -n 1 example3.log)" = "move 2" ] || { cat example3.log >&2; fail "the third example did not learn"; }
tensors() { # tensors EXAMPLE: the examples that any torch runs, by $python; the sixth in a file that may go on
    "$python" "$1.py" >"$1.log" 2>&1
    grep -q "^nll [0-9.]* plays (1, " "$1.log" && [ -s tuned.safetensors ] ||
        { cat "$1.log" >&2; fail "the sixth example did not train"; }
    "$python" example8.py >example8.log
    [ "$(cat example8.log)" = "torch.Size([2, 64, 60]) torch.Size([2, 64, 60])" ] ||
        { cat example8.log >&2; fail "the eighth example has other gradients"; }
}
if "$python" -c "import torch" 2>/dev/null; then
    tensors example6
else
    echo "SKIPPED: $python has no torch: the examples in PyTorch are untested"
fi

# The same wheel where JAX is, and a torch that has operators: the tests of both, and the examples that need them.
cd ..
[ "$there" ] || {
    echo "SKIPPED: $frameworks has no JAX, torch and pytest (tools/deps hosts brings them from PyPI): the operations in JAX and"\
        "as operators of torch are untested"
    exit 0
}
purelib() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
"$frameworks" -m venv --without-pip frameworks
installed=$(purelib "$python")/exphil
python=$PWD/frameworks/bin/python
purelib "$frameworks" >"$(purelib "$python")/outer.pth"
cp -R "$installed" "$(purelib "$python")"
export OMP_NUM_THREADS=1 # threads that wait for each other take twice the time
# The way by autograd.Function was tested with the torch above.
(cd source && "$python" -m pytest -ra --basetemp=../pytest -k "not function" tests/test_ops_jax.py tests/test_ops_torch.py \
    tests/test_torch_names.py >../frameworks.log 2>&1) || {
    cat frameworks.log >&2
    fail "pytest failed with JAX and torch"
}
# Here nothing is left out.
if grep "^SKIPPED" frameworks.log >&2; then fail "$frameworks is not what tools/deps makes"; fi
tail -n 1 frameworks.log
cd source
rm -f tuned.safetensors
cat example6.py example7.py >exported.py
tensors exported
grep -q "^exported torch.Size(\[1, [0-9]*\]) torch.Size(\[1, [0-9]*\])$" exported.log ||
    { cat exported.log >&2; fail "the seventh example did not export"; }
"$python" example9.py >example9.log
printf '%s\n' "(2, 64, 60) (2, 64, 60) (2, 2, 64, 60)" "twice as much in, twice as much out: True" | cmp - example9.log ||
    { cat example9.log >&2; fail "the ninth example computes something else"; }
