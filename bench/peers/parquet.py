#!/usr/bin/env python3
"""How many bytes a game frame takes: a corpus of games beside the replays, beside what zstd and xz make of each, and beside
one Parquet file a game out of the Arrow columns of peppi-py, compressed with zlib, as slippi-ai keeps its data.

Wants peppi-py and pyarrow (pip), zstd and xz. Replays that peppi-py or the corpus refuse are in neither figure. Parquet here
holds what peppi-py reads: no items before 3.0, the frames that a rollback replaced too."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import pyarrow
    import pyarrow.parquet
    from peppi_py import _peppi
except ImportError as error:
    sys.exit(f"parquet.py: SKIPPED: {error}; pip install peppi-py pyarrow")


def parquet_bytes(path, out):
    """None: peppi-py cannot read it."""
    try:
        columns = _peppi.read_slippi(str(path)).frames
    except OSError:
        return None
    pyarrow.parquet.write_table(pyarrow.Table.from_batches([pyarrow.RecordBatch.from_struct_array(columns)]), out,
                                compression="gzip")  # fmt: skip
    return out.stat().st_size


def compressed_bytes(words, path):
    with open(path, "rb") as file:
        return len(subprocess.run(words, stdin=file, stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exphil", default="build/release/bin/exphil", help="the program (default: %(default)s)")
    parser.add_argument("replays", help="folder of replays")
    asked = parser.parse_args()
    total = {"replays": 0, "zstd -3": 0, "xz -6": 0, "Parquet, zlib": 0}
    with tempfile.TemporaryDirectory() as name:
        folder, taken = Path(name), []
        for path in sorted(Path(asked.replays).rglob("*.slp")):
            columns = parquet_bytes(path, folder / "columns.parquet")
            one = [asked.exphil, "corpus", "--quiet", "--force", "--out", folder / "one.games", path]
            if columns is None or subprocess.run(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
                continue
            taken.append(path)
            for what, size in (("replays", path.stat().st_size), ("zstd -3", compressed_bytes(["zstd", "-3", "-c"], path)),
                               ("xz -6", compressed_bytes(["xz", "-6", "-c"], path)), ("Parquet, zlib", columns)):  # fmt: skip
                total[what] += size
        if not taken:
            sys.exit("parquet.py: no replay that both read")
        whole = folder / "all.games"
        subprocess.run([asked.exphil, "corpus", "--quiet", "--out", whole, *taken], stdout=subprocess.DEVNULL, check=True)
        info = json.loads(subprocess.run([asked.exphil, "info", "--json", whole], stdout=subprocess.PIPE, check=True).stdout)
        total["corpus of games"] = whole.stat().st_size
        frames = info["frames"]
    print(f"{len(taken)} replays, {info['games']} games, {frames} frames")
    for what, size in total.items():
        print(f"{what:16} {size:12} bytes {size / frames:8.2f} a frame")


if __name__ == "__main__":
    main()
