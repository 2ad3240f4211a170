"""Show JSON text indented without touching a single value: tokens are moved, never read."""

import re
from collections.abc import Iterator

DEPTH_MAX = 32
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_INDENT = "  "
_OPENING = ("{", "[")
_CLOSING = ("}", "]")


def indented(text: str) -> str | None:
    """JSON text laid out over lines, every string and number exactly as it is stored.

    Args:
        text: strict JSON.

    Returns:
        None when lines would not help: a single value, or nesting deeper than 32.
    """
    tokens = _TOKEN.findall(text)
    if len(tokens) < 2 or _depth(tokens) > DEPTH_MAX:
        return None
    return "".join(_laid_out(tokens))


def _depth(tokens: list[str]) -> int:
    depth = deepest = 0
    for one in tokens:
        depth += (one in _OPENING) - (one in _CLOSING)
        deepest = max(deepest, depth)
    return deepest


def _laid_out(tokens: list[str]) -> Iterator[str]:
    depth = 0
    before = ""
    for one in tokens:
        opened = before in _OPENING
        if one in _CLOSING:
            depth -= 1
        if opened != (one in _CLOSING) or before == ",":
            yield "\n" + _INDENT * depth
        yield one + " " if one == ":" else one
        depth += one in _OPENING
        before = one
