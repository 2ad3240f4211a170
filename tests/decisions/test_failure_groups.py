"""Failures of one kind have one message, however their numbers and names differ."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latchwork.decisions.failure_groups import (
    MAX_MESSAGE_CHARACTERS,
    group_key,
    kind_message,
    normalised,
)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Order 42 not found", "Order <n> not found"),
        ("user_12 has -3.50 left", "user_<n> has <n> left"),
        ("Card 'tok 9' declined", "Card <value> declined"),
        ("can't open it, won't", "can't open it, won't"),
        ("connect to 10.0.0.3:5432: refused", "connect to <n>: refused"),
        ('File "/srv/x.py", line 3', "File <value>, line <n>"),
        ("open /var/lib/a-3/b.txt: missing", "open <path>: missing"),
        (r"open C:\tmp\a.txt failed", "open <path> failed"),
        ("either/or", "either/or"),
        ("no charge ch_3NhTgN2eZvKYlo2C", "no charge <id>"),
        ("rows 1, 2, 3 and 4 failed", "rows <n>… failed"),
        ("<Foo at 0x7F00aa>", "<Foo at <hex>>"),
        ("blob b3f1c9aa0042", "blob <hex>"),
        ("order 12345678 and 1234567", "order <n>…"),
        ("late since 2026-12-01T04:05:06.789+01:00", "late since <time>"),
        ("late since 04:05:06", "late since <time>"),
        ("job 019adf00-0000-7000-8000-abcdefabcdef locked", "job <uuid> locked"),
        ("https://x.example/a?b=1 said 503", "<address> said <n>"),
        ("bob@x.example bounced", "<address> bounced"),
        ("two\n  lines", "two lines"),
    ],
)
def test_what_differs_from_job_to_job_becomes_a_placeholder(message: str, kind: str) -> None:
    assert normalised(message) == kind


@given(st.text(max_size=600))
def test_any_message_has_a_kind_that_is_short_and_on_one_line(message: str) -> None:
    kind = normalised(message)
    assert len(kind) <= MAX_MESSAGE_CHARACTERS
    assert "\n" not in kind


@given(st.integers(), st.integers())
def test_numbers_never_tell_kinds_apart(one: int, other: int) -> None:
    assert normalised(f"order {one} is unknown") == normalised(f"order {other} is unknown")


def test_a_lapse_is_one_kind_whoever_held_the_lease() -> None:
    assert kind_message("lease_lapsed", "the lease of web-1:77:ab lapsed at 12:00") is None


def test_without_a_text_kinds_are_told_apart_by_type_alone() -> None:
    assert kind_message("attempts_exhausted", None) is None
    assert group_key("a", "failed", "ValueError", None) != group_key("a", "failed", "OSError", None)


def test_every_part_of_a_kind_tells_groups_apart() -> None:
    parts = ("wire", "code", "type", "message")
    keys = {group_key(*parts)}
    for place in range(4):
        changed = list(parts)
        changed[place] = "other"
        keys.add(group_key(*changed))
    keys.add(group_key("wirecode", "", "type", "message"))
    assert len(keys) == 6


def test_a_key_is_the_same_in_every_process_and_version() -> None:
    assert group_key("pack", "gave_up", None, "no <n>") == "d85133985b3a322fecd04998f31a28ea"
