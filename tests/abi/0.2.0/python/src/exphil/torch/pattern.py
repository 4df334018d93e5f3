"""The list of blocks of a policy: sequence = item { item }, item = ( name | "(" sequence ")" ) [ "*" n ]."""
from __future__ import annotations

import re
from typing import Collection, List, Tuple

from .errors import ConfigError

TEXT_MOST, BLOCKS_MOST, DEPTH_MOST = 255, 64, 16
_TOKEN = re.compile(r"[ \t]*(?:(?P<word>[a-z0-9_]+)|(?P<open>\()|(?P<close>\)))")
_TIMES = re.compile(r"[ \t]*\*[ \t]*(?P<count>[0-9]*)")


def _refuse(at: int, what: str) -> ConfigError:
    return ConfigError(f"blocks, column {at + 1}: {what}")


def _times(text: str, at: int) -> Tuple[int, int]:
    """How often what stands before `at` is repeated, and where reading goes on."""
    found = _TIMES.match(text, at)
    if not found:
        return 1, at
    digits = found["count"]
    if not digits:
        raise _refuse(found.end(), 'a number must follow "*"')
    count = int(digits.lstrip("0")[:3] or 0)  # more than 64 is refused anyway
    if count == 0:
        raise _refuse(found.start("count"), "the count must be 1 or more")
    return count, found.end()


def read_pattern(text: str, words: Collection[str]) -> List[str]:
    """The words of all blocks, from the first to the last."""
    if len(text) > TEXT_MOST:
        raise _refuse(TEXT_MOST, f"the text is longer than {TEXT_MOST} characters")
    stack: List[Tuple[int, List[str]]] = [(0, [])]
    at, end = 0, len(text.rstrip(" \t"))
    while at < end:
        token = _TOKEN.match(text, at)
        if not token:
            raise _refuse(at, 'expected a block, "(" or ")"')
        place, at = token.end() - len(token[0].lstrip(" \t")), token.end()
        if token["open"]:
            if len(stack) > DEPTH_MOST:
                raise _refuse(place, f"more than {DEPTH_MOST} parentheses inside each other")
            stack.append((place, []))
            continue
        if token["word"] and token["word"] not in words:
            raise _refuse(place, f'"{token["word"][:40]}" is no block ({", ".join(words)})')
        if token["close"] and len(stack) == 1:
            raise _refuse(place, '")" without "("')
        item = [token["word"]] if token["word"] else stack.pop()[1]
        if not item:
            raise _refuse(place, "nothing between the parentheses")
        count, at = _times(text, at)
        if sum(len(group) for _, group in stack) + len(item) * count > BLOCKS_MOST:
            raise _refuse(place, f"this makes more than {BLOCKS_MOST} blocks")
        stack[-1][1].extend(item * count)
    if len(stack) > 1:
        raise _refuse(stack[-1][0], '"(" without ")"')
    if not stack[0][1]:
        raise _refuse(0, "there is no block")
    return stack[0][1]
