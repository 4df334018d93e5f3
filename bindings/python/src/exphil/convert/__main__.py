"""python -m exphil.convert FILE -o OUT"""
from __future__ import annotations

import argparse
import json
import sys
from typing import List, Optional

from . import Damaged, Refused, convert

_ENDS = """Exit status: 0 done; 1 the file is damaged, or cannot be read or written; 2 wrong use; 3 refused: the file is whole, but
something is missing here or in it, which the message names."""


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m exphil.convert",
        description="Converts a policy of ExPhil (_policy.bin, .npz, safetensors, a folder of export_numpy.exs) or of slippi-ai (a"
        " JAX checkpoint) into a weights file of libexphil. Nothing in FILE is executed.",
        epilog=_ENDS,
    )
    made.add_argument("file", metavar="FILE")
    made.add_argument("-o", "--out", required=True, metavar="OUT", help="the new weights file; an old one is replaced at the end")
    made.add_argument("--layout", metavar="NAME", help="refuse a policy that was not trained on this layout")
    made.add_argument("--codec", metavar="NAME", help="refuse a policy that was not trained on this codec")
    made.add_argument("--config", metavar="JSON", help="the configuration of an ExPhil policy whose file has weights alone")
    made.add_argument("--mode", choices=("window", "carry"), default="",
                      help="of an ExPhil policy: windows, as it was trained (default), or its state carried on")  # fmt: skip
    made.add_argument("--player", metavar="NAME",
                      help="of a slippi-ai policy: the name it plays as, for good (default: a condition)")  # fmt: skip
    made.add_argument("--b-mean-dt", action="store_true",
                      help="of an ExPhil mamba: the scan of its CPU path; refused, as there is no block for it")  # fmt: skip
    made.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    return made


def main(arguments: Optional[List[str]] = None) -> int:
    """Gives the exit status."""
    asked = _parser().parse_args(arguments)
    if asked.b_mean_dt:
        print("convert: --b-mean-dt: needs a block whose scan takes the mean of the steps; mamba_exphil takes each channel's",
              file=sys.stderr)  # fmt: skip
        return 3
    try:
        told = convert(asked.file, asked.out, layout=asked.layout, codec=asked.codec, config=asked.config, mode=asked.mode,
                       player=asked.player)  # fmt: skip
    except Refused as reason:
        print(f"convert: refused: {reason}", file=sys.stderr)
        return 3
    except (Damaged, OSError) as reason:
        print(f"convert: {reason}", file=sys.stderr)
        return 1
    if asked.json:
        print(json.dumps(told, sort_keys=True))
    else:
        print(f"{told['source']} policy: {told['blocks']}, {told['parameters']} parameters, layout {told['layout']}, codec"
              f" {told['codec']}, mode {told['mode']}, delay {told['delay_frames']}")  # fmt: skip
        for line in told.get("assumed", ()):
            print(f"assumed: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
