"""Bounds of contract section 9: exactly at a bound is fine, one over it is refused by name."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from latchwork.errors import InvalidValue, OutputTooLarge, ValueTooLarge
from latchwork.values import (
    checked_bytes,
    checked_id,
    checked_json,
    checked_name,
    checked_tags,
    cut_text,
    encode_json,
    storable_text,
)

SURROGATE = "\ud800"
INFINITY = float("inf")


def name_of(length: int) -> Any:
    return checked_name("queue", "n" * length)


def wide_name_of(length: int) -> Any:
    return checked_name("queue", "\U0001f600" * length)


def label_of(length: int) -> Any:
    return checked_tags(["t" * length])


def key_of(length: int) -> Any:
    return checked_tags([("k" * length, "v")])


def value_of(length: int) -> Any:
    return checked_tags([("k", "v" * length)])


def tags_of(count: int) -> Any:
    return checked_tags([f"tag {number}" for number in range(count)])


def ascii_bytes_of(size: int) -> Any:
    return checked_bytes("payload", "b" * size, 65_536)


def mixed_bytes_of(size: int) -> Any:
    return checked_bytes("payload", "\u20ac" + "b" * (size - 3), 65_536)


@pytest.mark.parametrize(
    ("of", "bound", "field"),
    [
        (name_of, 128, "queue"),
        (wide_name_of, 128, "queue"),
        (label_of, 64, "tag"),
        (key_of, 64, "tag key"),
        (value_of, 256, "tag value"),
        (tags_of, 32, "tags"),
        (ascii_bytes_of, 65_536, "payload"),
        (mixed_bytes_of, 65_536, "payload"),
    ],
)
def test_exactly_at_a_bound_is_fine_and_one_over_it_names_field_and_bound(
    of: Callable[[int], Any], bound: int, field: str
) -> None:
    of(bound)
    with pytest.raises(ValueTooLarge) as refused:
        of(bound + 1)
    assert (refused.value.field, refused.value.size, refused.value.bound) == (
        field, bound + 1, bound,
    )  # fmt: skip


def test_an_output_over_its_bound_has_an_error_of_its_own() -> None:
    with pytest.raises(OutputTooLarge):
        checked_bytes("output", "b" * 11, 10, OutputTooLarge)


def test_a_repeated_tag_counts_once_and_the_order_stays() -> None:
    assert checked_tags(["b", ("k", "v"), "a", "b", ("k", "v")]) == ("b", ("k", "v"), "a")
    labels = [f"tag {number}" for number in range(32)]
    assert checked_tags(labels * 2) == tuple(labels)


@pytest.mark.parametrize("value", ["", "a\nb", "a\0", "\x7f", "\x85", SURROGATE, "a" + SURROGATE])
def test_a_name_without_text_or_with_what_cannot_be_shown_is_refused(value: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        checked_name("wire_name", value)
    assert refused.value.field == "wire_name"


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"]])
def test_a_name_that_is_no_string_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValue):
        checked_name("queue", value)


@pytest.mark.parametrize("value", ["a b", "\u00e9t\u00e9", "\u4ed5\u4e8b", "\u200d", "\U0001f600"])
def test_a_name_may_hold_any_character_that_can_be_stored_and_shown(value: str) -> None:
    assert checked_name("queue", value) == value


@pytest.mark.parametrize(
    "tags", ["one", [""], [3], [("k",)], [("k", "v", "w")], [("", "v")], [("k", "")], [("k", 1)]]
)
def test_a_malformed_tag_is_refused(tags: Any) -> None:
    with pytest.raises(InvalidValue):
        checked_tags(tags)


def test_an_id_is_a_uuid_and_not_its_text() -> None:
    job_id = uuid4()
    assert checked_id("job_id", job_id) is job_id
    with pytest.raises(InvalidValue):
        checked_id("job_id", str(job_id))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [float("nan"), INFINITY, -INFINITY, [INFINITY], {"a": float("nan")}, object(), {1, 2}, b"b"],
)
def test_a_value_without_a_strict_json_form_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        encode_json("output", value)
    assert refused.value.field == "output"


@pytest.mark.parametrize("value", [SURROGATE, [SURROGATE], {SURROGATE: 1}])
def test_a_lone_surrogate_is_refused_wherever_it_is(value: object) -> None:
    with pytest.raises(InvalidValue):
        encode_json("payload", value)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(InvalidValue):
        encode_json("payload", value)


def test_nul_is_kept_as_its_escape() -> None:
    assert encode_json("payload", "a\0b") == '"a\\u0000b"'
    assert checked_json("payload", '"a\\u0000b"') == '"a\\u0000b"'


@pytest.mark.parametrize(
    "text", ["{}", ' { "a" : 1.50 } ', '"\\ud83d\\ude00"', '"\U0001f600"', "null", "1e300"]
)
def test_json_text_is_kept_as_it_is(text: str) -> None:
    assert checked_json("payload", text) is text


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "NaN", "[Infinity]", "-Infinity", "1e999", '"\\ud800"', f'"{SURROGATE}"',
     "1 2", "[" * 100_000],
)  # fmt: skip
def test_text_that_is_no_strict_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        checked_json("payload", text)


def test_json_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidValue):
        checked_json("payload", b"{}")  # type: ignore[arg-type]


def test_what_a_database_cannot_hold_is_replaced_and_the_rest_kept() -> None:
    assert storable_text(f"a\0b{SURROGATE}c\U0001f600") == "a\ufffdb\ufffdc\U0001f600"
    assert storable_text("plain") == "plain"


@pytest.mark.parametrize(
    ("text", "cut"), [("abcd", "abcd"), ("abcdef", "abcd"), ("abc\u20ac", "abc")]
)
def test_a_text_is_cut_on_a_code_point(text: str, cut: str) -> None:
    assert cut_text(text, 4) == cut
