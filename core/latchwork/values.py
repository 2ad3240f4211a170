"""What a store may hold: bounds (contract section 9) and the checks on every value that enters."""

import json
import math
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from latchwork.errors import InvalidValue, ValueTooLarge
from latchwork.views import JobFilter, Tag

MAX_PAYLOAD_BYTES = 65_536
MAX_OUTPUT_BYTES = 65_536
MAX_NAME_CHARACTERS = 128
MAX_LIMIT = 2**31 - 1
MAX_TAGS = 32
MAX_TAG_KEY_CHARACTERS = 64
MAX_TAG_VALUE_CHARACTERS = 256
MAX_TAG_CHARACTERS = MAX_TAG_KEY_CHARACTERS + 1 + MAX_TAG_VALUE_CHARACTERS
MAX_CAUSE_TEXT_BYTES = 512
MAX_FAILURE_DETAIL_BYTES = 8_192
MAX_PARENTS = 16

# What text columns cannot hold (surrogates) or no screen can show (control characters).
_REFUSED_CATEGORIES = frozenset({"Cc", "Cs"})


def checked_name(field: str, value: str, max_characters: int = MAX_NAME_CHARACTERS) -> str:
    """``value`` if it can name a wire name, queue, tag, actor or schedule.

    Raises:
        InvalidValue: it is not a string, empty, or holds control characters or lone surrogates.
        ValueTooLarge: it has more than ``max_characters`` characters.
    """
    if not isinstance(value, str):
        raise InvalidValue(field, f"must be a string, not {type(value).__name__}")
    if not value:
        raise InvalidValue(field, "must not be empty")
    if len(value) > max_characters:
        raise ValueTooLarge(field, len(value), max_characters, "characters")
    if not value.isprintable() and any(
        unicodedata.category(character) in _REFUSED_CATEGORIES for character in value
    ):
        raise InvalidValue(field, "must not hold control characters or lone surrogates")
    return value


def checked_id(field: str, value: UUID) -> UUID:
    """``value`` if it is a UUID; raises InvalidValue for anything else."""
    if not isinstance(value, UUID):
        raise InvalidValue(field, f"must be a UUID, not {type(value).__name__}")
    return value


def checked_limit(limit: int | None) -> int | None:
    """``limit`` if it is a whole number of at least 1, or None; raises InvalidValue otherwise."""
    whole: object = limit  # callers are not all typed
    if isinstance(whole, bool) or not isinstance(whole, int | None):
        raise InvalidValue("limit", "must be a whole number or None")
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise InvalidValue("limit", f"must be from 1 to {MAX_LIMIT:,}, or None")
    return limit


def checked_tags(tags: Iterable[Tag]) -> tuple[Tag, ...]:
    """``tags`` checked and without repeats, in the order given.

    A tag is a label, or a pair of key and value (section 9).

    Raises:
        InvalidValue: a tag is malformed.
        ValueTooLarge: a label, key or value is too long, or there are too many tags.
    """
    if isinstance(tags, str):
        raise InvalidValue("tags", "must be a collection of tags, not one string")
    checked = tuple(dict.fromkeys(_checked_tag(tag) for tag in tags))
    if len(checked) > MAX_TAGS:
        raise ValueTooLarge("tags", len(checked), MAX_TAGS, "tags")
    return checked


def _checked_tag(tag: Tag) -> Tag:
    if isinstance(tag, str):
        return checked_name("tag", tag, MAX_TAG_KEY_CHARACTERS)
    try:
        key, value = tag
    except (TypeError, ValueError):
        raise InvalidValue("tag", "must be a label or a pair of key and value") from None
    return (
        checked_name("tag key", key, MAX_TAG_KEY_CHARACTERS),
        checked_name("tag value", value, MAX_TAG_VALUE_CHARACTERS),
    )


def checked_filter(job_filter: JobFilter) -> JobFilter:
    """``job_filter`` if every value in it could be stored; raises InvalidValue otherwise."""
    names = {
        "queue": job_filter.queue,
        "wire_name": job_filter.wire_name,
        "cause_code": job_filter.cause_code,
        "cause_type": job_filter.cause_type,
        "cause_group": job_filter.cause_group,
    }
    for field, name in names.items():
        if name is not None:
            checked_name(field, name)
    tag = (job_filter.tag,) if isinstance(job_filter.tag, str) else job_filter.tag or ()
    for part in tag:
        checked_name("tag", part, max(MAX_TAG_KEY_CHARACTERS, MAX_TAG_VALUE_CHARACTERS))
    return job_filter


def encode_json(field: str, value: object) -> str:
    """``value`` as compact, strict JSON text.

    Raises:
        InvalidValue: it has no JSON form, or holds NaN, an infinity or a lone surrogate.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(field, f"cannot be written as JSON: {error}") from error
    return _without_surrogates(field, text)


def json_text(
    field: str, value: object, max_bytes: int, too_large: type[ValueTooLarge] = ValueTooLarge
) -> str:
    """Any value that has a JSON form as strict JSON text of at most ``max_bytes`` bytes.

    Raises:
        InvalidValue: it has no JSON form, or holds NaN, an infinity or a lone surrogate.
        ValueTooLarge: the text is too long; nothing is ever cut. Or ``too_large`` in its place.
    """
    try:
        plain = to_jsonable_python(value, inf_nan_mode="constants")
    except ValueError as error:
        raise InvalidValue(field, f"cannot be written as JSON: {error}") from error
    text = encode_json(field, plain)
    refuse_lost_numbers(field, text, value)
    return checked_bytes(field, text, max_bytes, too_large)


def refuse_lost_numbers(field: str, text: str, value: object) -> None:
    """Raise InvalidValue if a number of ``value`` became null in its JSON ``text``.

    Pydantic writes NaN and infinities as null, in silence, where a type says Any. Models and
    dataclasses are taken apart.
    """
    if "null" in text and _holds_non_finite(_ANYTHING.dump_python(value)):
        raise InvalidValue(field, "must not hold NaN or an infinity")


def _holds_non_finite(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(_holds_non_finite(part) for part in value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(_holds_non_finite(part) for part in value)
    return False


def checked_json(field: str, text: str) -> str:
    """``text``, unchanged, if it is strict JSON.

    Raises:
        InvalidValue: it is not JSON, or holds NaN, an infinity or a lone surrogate.
    """
    if not isinstance(text, str):
        raise InvalidValue(field, f"must be JSON text, not {type(text).__name__}")
    try:
        value: object = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(field, f"is not JSON: {error}") from error
    if "\\u" in text:  # an escaped lone surrogate decodes to one
        _without_surrogates(field, _ENCODER.encode(value))
    return _without_surrogates(field, text)


def checked_bytes(
    field: str, text: str, max_bytes: int, error: type[ValueTooLarge] = ValueTooLarge
) -> str:
    """``text`` if its UTF-8 form has at most ``max_bytes`` bytes; else ``error`` is raised."""
    # No character takes more than four bytes, so most texts need no encoding to be measured.
    if len(text) * 4 > max_bytes:
        size = len(text.encode())
        if size > max_bytes:
            raise error(field, size, max_bytes, "bytes")
    return text


def storable_text(text: str) -> str:
    """``text`` with what a database cannot hold (NUL, lone surrogates) replaced by U+FFFD."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut_text(text: str, max_bytes: int) -> str:
    """``text`` shortened to at most ``max_bytes`` bytes of UTF-8, cut on a code point."""
    if len(text) * 4 <= max_bytes:
        return text
    return text.encode()[:max_bytes].decode(errors="ignore")


def _without_surrogates(field: str, text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(field, "must not hold lone surrogates") from error
    return text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is out of range")
    return number


_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
