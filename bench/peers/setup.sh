#!/bin/sh
# Installs the peers that libexphil is timed against into one folder: PyTorch, ONNX Runtime and oneDNN from PyPI, and the two
# small programs of this folder that drive the latter two. About 6 GB, most of it what PyTorch's wheel brings for GPUs.
#   setup.sh FOLDER
# Nothing outside FOLDER changes. Run again to bring in what is missing.
set -eu
folder=${1:?setup.sh wants a folder}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
folder=$(cd "$folder" && pwd)
pip() { "$folder/bin/python" -m pip --disable-pip-version-check -q "$@"; }
has() { "$folder/bin/python" -c "import $1" 2>/dev/null; }

pip install numpy safetensors
has onnxruntime || pip install onnxruntime onnx || echo "SKIPPED: onnxruntime cannot be installed here" >&2
[ -e "$folder/lib/libdnnl.so" ] || pip install onednn-devel-cpu-gomp || echo "SKIPPED: onednn cannot be installed here" >&2
has torch || pip install torch || echo "SKIPPED: torch cannot be installed here" >&2

cc=${CC:-cc}
$cc -O2 -o "$folder/bin/ort_peer" "$here/ort_peer.c" -ldl
if [ -e "$folder/lib/libdnnl.so" ]; then
  $cc -O2 -I"$folder/include" -o "$folder/bin/onednn_peer" "$here/onednn_peer.c" -L"$folder/lib" -Wl,-rpath,"$folder/lib" -ldnnl
fi
