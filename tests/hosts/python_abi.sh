#!/bin/sh
# The Python package without a compiled module, as Windows has it: a wheel by bindings/python/build_wheel.py of the installed library,
# here for this system; its files, the common trace, and the package's own tests.
set -eu
python=${PYTHON:-/usr/bin/python3}
command -v "$python" >/dev/null || { echo "SKIPPED: no $python"; exit 0; }
for module in cffi numpy pip pytest; do
  "$python" -c "import $module" 2>/dev/null || { echo "SKIPPED: $python has no $module"; exit 0; }
done
fail() { echo "python_abi: $*" >&2; exit 1; }
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
cp -R "$EXPHIL_SOURCE/bindings/python" source
wheel() {
  "$python" source/build_wheel.py --tag linux_x86_64 --prefix "$EXPHIL_PREFIX" --cc cc "$1" >wheel.log 2>&1 ||
    { cat wheel.log >&2; fail "no wheel"; }
}
wheel dist
wheel again
made=$(basename dist/*.whl)
cmp "dist/$made" "again/$made" || fail "made twice, the wheel is another"
check="$python $EXPHIL_SOURCE/tests/hosts/wheel_check.py"
$check "dist/$made" py3-none-linux_x86_64 libexphil.so.0 libexphil_python.so || fail "the wheel is not as it should be"
# A byte that is changed, and a file that RECORD does not know, are found.
"$python" - "dist/$made" "again/$made" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w") as new:
    for entry in old.infolist():
        data = old.read(entry)
        new.writestr(entry, data + b"\n" if entry.filename == "exphil/session.py" else data)
    new.writestr("exphil/planted.pyd", b"")
END
if $check "again/$made" py3-none-linux_x86_64 libexphil.so.0 libexphil_python.so >said; then fail "a changed wheel passes"; fi
for word in "RECORD of exphil/session.py" "RECORD names other files" "native files"; do
  grep -q "$word" said || { cat said >&2; fail "a changed wheel is refused without a word of: $word"; }
done
# The library inside is the one that runs, not the installed one.
"$python" -m venv --system-site-packages --without-pip venv
python=$PWD/venv/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -m pip install -q --no-deps --no-index --target "$site" "dist/$made"
loaded=$("$python" -c 'import exphil; print(exphil.library_path())')
[ "$loaded" = "$site/exphil/libexphil.so.0" ] || fail "the wheel runs $loaded"
for folder in $EXPHIL_TRACES; do "$python" source/tests/check_trace.py "$folder/policy.safetensors" "$folder/frames.trace"; done
# Without its library, or with an older one, the package says so.
mkdir broken
cp -R "$site/exphil" broken/exphil
rm broken/exphil/libexphil.so.0
if PYTHONPATH=broken "$python" -c 'import exphil' >said 2>&1; then fail "it is imported without its library"; fi
grep -q "ImportError: .*/broken/exphil/libexphil.so.0 cannot be loaded" said ||
  { cat said >&2; fail "a missing library is not named"; }
for name in $("$EXPHIL_SOURCE/tools/symbols" --names); do
  [ "$name" = exphil_version ] || echo "int $name(void) { return 0; }"
done >older.c
echo 'unsigned exphil_version(void) { return 9u; }' >>older.c
cc -shared -fPIC -w -Wl,-soname,libexphil.so.0 -Wl,--version-script="$EXPHIL_SOURCE/lib/abi/exphil.map" \
  -o broken/exphil/libexphil.so.0 older.c
if PYTHONPATH=broken "$python" -c 'import exphil' >said 2>&1; then fail "it is imported with an older library"; fi
grep -q "ImportError: exphil was built for libexphil .*, but version 0.0.9 is loaded" said ||
  { cat said >&2; fail "an older library is not named"; }
# What takes long, or needs C of its own (operators of torch, JAX), is hosts.python's; so is what an import says without a compiled
# module (above: what it says here).
(cd source && "$python" -m pytest -ra --basetemp=../pytest tests/test_arrays.py tests/test_context.py tests/test_dataset.py \
  tests/test_errors.py tests/test_learn.py tests/test_life.py tests/test_live.py tests/test_melee_slp.py tests/test_model.py \
  tests/test_ops.py tests/test_session.py tests/test_told.py tests/test_trainer.py tests/test_types.py tests/test_world.py \
  -k "not test_import_with_another_library and not test_sources_are_not_the_package and not test_the_library_is_gone") \
  >pytest.log 2>&1 ||
  { cat pytest.log >&2; fail "pytest failed"; }
tail -n 1 pytest.log
