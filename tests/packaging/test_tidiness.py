"""Style rules that matter are tests."""

import ast
import re
from pathlib import Path

from tests.packaging.files import each, files

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

PYTHON = files("*.py")
# A schema version is one list of statements, written by a tool and never changed again.
FUNCTIONS = [path for path in PYTHON if path.parent.name != "versions"]
TEMPLATES = files("*.html")

FORBIDDEN_MARKUP = {
    "a style attribute": r"<[^>]*\sstyle\s*=",
    "an event attribute": r"<[^>]*\son[a-z]+\s*=",
    "an htmx event attribute, which needs eval": r"<[^>]*\shx-on\b",
    "an inline style sheet": r"<style\b",
    "an inline script": r"<script\b(?![^>]*\bsrc\s*=)",
    "a script address": r"javascript:",
}


@each(files("*.py", "*.html", "*.js", "*.css"))
def test_a_file_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LINES_MAX


@each(FUNCTIONS)
def test_every_function_fits_on_a_screen(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {one.name: (one.end_lineno or one.lineno) - one.lineno + 1 for one in functions}
    assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES_MAX} == {}


@each([path for path in PYTHON if path.parent.name == "store"])
def test_no_two_statements_share_what_sqlalchemy_fills_in_at_first_use(path: Path) -> None:
    """Two threads that use a shared alias first, at once, each get columns of their own.

    A statement made of both never compiles again: a node could report no outcome any more.
    """
    shared = {"alias", "subquery", "cte", "table_valued", "lateral"}
    statements = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
    ]
    made = {
        ast.unparse(one.targets[0] if isinstance(one, ast.Assign) else one.target)
        for one in statements
        if one.value is not None and _last_call(one.value) in shared
    }
    assert made == set()


def _last_call(value: ast.expr) -> str | None:
    is_method = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
    return value.func.attr if is_method else None  # type: ignore[attr-defined]


@each(TEMPLATES)
def test_a_template_holds_nothing_that_the_content_security_policy_forbids(path: Path) -> None:
    markup = re.sub(r"\{#.*?#\}", "", path.read_text(), flags=re.DOTALL)
    rules = FORBIDDEN_MARKUP.items()
    assert {what for what, rule in rules if re.search(rule, markup, re.IGNORECASE)} == set()


def test_there_is_something_to_check() -> None:
    assert PYTHON
    assert TEMPLATES
