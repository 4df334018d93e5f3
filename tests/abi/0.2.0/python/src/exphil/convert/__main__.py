"""python -m exphil.convert FILE -o OUT"""
from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from typing import Any, List, NoReturn, Optional

from . import Damaged, Refused, convert
from .refusal import line

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


def _system_text(reason: OSError) -> str:
    """The file, and what the system has against it."""
    why = reason.strerror or str(reason)
    return why if reason.filename is None else f"{os.fsdecode(reason.filename) or repr('')}: {why}"


def _stop(number: int, _: Any) -> NoReturn:
    """A signal ends the program as an error does: nothing half-written is left."""
    raise SystemExit(128 + number)


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
    except Damaged as reason:
        print(f"convert: {reason}", file=sys.stderr)
        return 1
    except OSError as reason:
        print(f"convert: {line(_system_text(reason))}", file=sys.stderr)
        return 1
    except Exception as reason:  # a fault of a reader is no reason for a file to be taken, nor for a traceback
        print(f"convert: {line(asked.file)}: it cannot be read ({type(reason).__name__})", file=sys.stderr)
        return 1
    if asked.json:
        print(json.dumps(told, sort_keys=True))
    else:
        print(f"{told['source']} policy: {told['blocks']}, {told['parameters']} parameters, layout {told['layout']}, codec"
              f" {told['codec']}, mode {told['mode']}, delay {told['delay_frames']}")  # fmt: skip
        for one in told.get("assumed", ()):
            print(f"assumed: {one}")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    sys.exit(main())
