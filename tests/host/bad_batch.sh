#!/bin/sh
# --keep-bad-batch: of a run whose loss is not finite the first batch is kept as safetensors, with the games and frames that it
# is of, and the program says where in it the policy goes wrong; of other runs nothing is kept.
#   bad_batch.sh <exphil>
set -u
exphil=$(realpath "$1")
# shellcheck source=tests/host/expect.sh
. "$(dirname "$0")/expect.sh"
expect 0 "" drill --frames 900 --out one.slp
expect 0 "" drill --frames 900 --seed 2 --out two.slp
quiet="--quiet --threads 1 --batch 4 --time 30 --alone 0"
# shellcheck disable=SC2086
expect 0 "" train $quiet --blocks gru --hidden 8 --head-width 8 --updates 3 --out first.safetensors --keep-bad-batch none.st one.slp
[ -e none.st ] && complain "a batch of a good run was kept"

# Weights so large that logits overflow wherever the trunk is above 0: finite in the file, not in an update.
python3 - <<'PYTHON' || complain "weights could not be changed"
import json, struct
data = bytearray(open("first.safetensors", "rb").read())
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
begin, end = header["heads.logits.weight"]["data_offsets"]
at = 8 + length
data[at + begin:at + end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
del header["__metadata__"]["exphil.data_xxh64"]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 64)
open("huge.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data[at:])
PYTHON
# shellcheck disable=SC2086
expect 1 "is kept in bad.st" train $quiet --init huge.safetensors --updates 20 --seed 5 --out second.safetensors \
  --keep-bad-batch bad.st one.slp two.slp
grep -qE '^exphil: lane [0-3], game [0-9a-f]{16}, port [12], frame [0-9]+: what the policy says is not finite$' err ||
  complain "no place: $(cat err)"
[ "$(grep -c 'is kept in' err)" = 1 ] || complain "kept more than once: $(cat err)"
grep -q "batch 0 of epoch 0" err || complain "another batch: $(cat err)"
"$python" - <<'PYTHON' || complain "the file is not what it should be"
import json, re, struct
data = open("bad.st", "rb").read()
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length])
about = header.pop("__metadata__")
assert about["layout"] == "melee2" and about["codec"] == "exphil81" and about["update"] == "1" and "finite" in about["error"], about
arrays, end = {}, 0
for name, place in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    kind, size = {"U64": ("Q", 8), "I64": ("q", 8), "F32": ("f", 4), "I32": ("i", 4), "U8": ("B", 1)}[place["dtype"]]
    begin, stop = place["data_offsets"]
    count = 1
    for extent in place["shape"]:
        count *= extent
    assert begin == end and stop - begin == count * size, name
    arrays[name] = struct.unpack(f"<{count}{kind}", data[8 + length + begin:8 + length + stop])
    assert place["shape"][:2] == [4, 30], name
    end = stop
assert 8 + length + end == len(data)
assert len(set(arrays["game"])) in (2, 3) and set(arrays["port"]) <= {-1, 1, 2} and set(arrays["mask"]) <= {0.0, 1.0}
assert all(abs(value) < 1e6 for value in arrays["floats"]) and header["actions"]["shape"] == [4, 30, 6]
for row in range(1, 120):
    if row % 30 and not arrays["reset"][row] and arrays["mask"][row]:
        assert arrays["rows"][row] == arrays["rows"][row - 1] + 1 and arrays["frame"][row] == arrays["frame"][row - 1] + 1
        # past actions are those of the row before
        assert arrays["past"][row * 6:row * 6 + 6] == arrays["actions"][row * 6 - 6:row * 6]
lane, game, port, frame = re.search(r"lane (\d), game (\w+), port (\d), frame (\d+)", open("err").read()).groups()
here = [r for r in range(int(lane) * 30, int(lane) * 30 + 30) if arrays["frame"][r] == int(frame)]
assert here and arrays["game"][here[0]] == int(game, 16) and arrays["port"][here[0]] == int(port)
try:
    from safetensors.numpy import load_file
except ImportError:
    print("SKIPPED: safetensors.numpy, which is not installed")
else:
    loaded = load_file("bad.st")
    assert loaded["floats"].shape == tuple(header["floats"]["shape"]) and int(loaded["game"][0, 0]) == arrays["game"][0]
PYTHON
# shellcheck disable=SC2086
expect 1 "is there already" train $quiet --init huge.safetensors --out third.safetensors --keep-bad-batch bad.st one.slp
# shellcheck disable=SC2086
expect 1 "--keep-bad-batch" train $quiet --force --blocks gru --out same.safetensors --keep-bad-batch same.safetensors one.slp
echo "$checks checks"
exit $failed
