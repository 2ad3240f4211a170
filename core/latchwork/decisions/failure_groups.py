"""Which failures are of one kind: their messages without what differs from job to job.

Two failures belong together when they have the same wire name, cause code, exception type and
message, once numbers, times, ids, quoted values, paths and addresses in it are placeholders.
"""

import hashlib
import json
import re

MAX_MESSAGE_CHARACTERS = 160
"""Where a kind's message ends: what stands beyond is detail, and may have been cut by its bound."""

CODES_OF_ONE_KIND = frozenset({"lease_lapsed"})
"""Causes whose text says only who and when: it tells no kinds apart."""

_PLACEHOLDERS = (
    # 2026-12-01T04:05:06.789+01:00, 2026-12-01, 04:05:06
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<time>"),
    (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    (r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", "<uuid>"),
    (r"(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)\"[^\"\n]*\"(?!\w)|`[^`\n]*`", "<value>"),
    (r"\b[a-z][a-z0-9+.-]*://[^\s<>,;)\]}]+", "<address>"),
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<address>"),
    (r"(?<![\w<>/])(?:[a-z]:\\|~?/)[^\s<>:,;'\"()\[\]{}]+", "<path>"),
    (r"\b0x[0-9a-f]+\b", "<hex>"),
    (r"\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{8,}\b", "<hex>"),
    # ch_3NhTgN2eZvKYlo2C: a long word with letters and several digits is somebody's id.
    (r"\b(?=\w*[a-z])(?=(?:\w*\d){3})\w{12,}\b", "<id>"),
    (r"(?<!\w)[+-]?\d+(?:[.,:]\d+)*|\d+", "<n>"),
)
_RULES = tuple((re.compile(pattern, re.IGNORECASE), put) for pattern, put in _PLACEHOLDERS)
_REPEATS = re.compile(r"(<[a-z]+>)(?:(?:[,;] (?:and )?| and )\1)+")


def normalised(message: str) -> str:
    """``message`` with placeholders for what differs, on one line, at most 160 characters."""
    text = " ".join(message.split())
    for pattern, placeholder in _RULES:
        text = pattern.sub(placeholder, text)
    # A list of three is the same failure as a list of four.
    text = _REPEATS.sub(r"\1…", text)
    return text[:MAX_MESSAGE_CHARACTERS]


def kind_message(cause_code: str, cause_text: str | None) -> str | None:
    """What a kind's message is, for a cause of this code and text; None where the text says none.

    Also None when failure detail is disabled: kinds are then told apart by type alone.
    """
    if not cause_text or cause_code in CODES_OF_ONE_KIND:
        return None
    return normalised(cause_text)


def group_key(wire_name: str, cause_code: str, cause_type: str | None, message: str | None) -> str:
    """The name of the group of such failures: the same on every node and in every version."""
    parts = json.dumps([wire_name, cause_code, cause_type, message], separators=(",", ":"))
    return hashlib.sha256(parts.encode()).hexdigest()[:32]
