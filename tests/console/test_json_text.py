import json

from hypothesis import given, settings
from hypothesis import strategies as st

from latchwork_console.json_text import indented

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_numbers_and_strings_are_shown_as_they_are_stored() -> None:
    text = '{"id":12345678901234567890123,"price":1.10,"e":1E400,"s":"a,b:[{\\"\\u0000"}'
    assert indented(text) == (
        '{\n  "id": 12345678901234567890123,\n  "price": 1.10,\n  "e": 1E400,\n'
        '  "s": "a,b:[{\\"\\u0000"\n}'
    )


@settings(deadline=None)
@given(VALUES)
def test_indenting_changes_nothing_but_blanks(value: object) -> None:
    text = json.dumps(value)
    shown = indented(text)
    if shown is not None:
        assert json.loads(shown) == value
        assert json.dumps(value, indent=2) == shown


def test_what_lines_would_not_help_is_left_alone() -> None:
    assert indented("12") is None
    assert indented("[" * 30_000 + "]" * 30_000) is None
    assert indented("[[], {}]") == "[\n  [],\n  {}\n]"
