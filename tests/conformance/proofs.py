"""How a clause or a scenario names its tests, and how one finds out that they exist."""

import ast
from dataclasses import dataclass
from functools import cache

from tests.packaging.files import ROOT


@dataclass(frozen=True, slots=True)
class Proof:
    """Something that must hold, and the tests that fail when it does not.

    ``tests`` are ``folder/test_file.py::test_name`` below tests/. ``why_not`` says, where there are
    none, why this cannot happen here.
    """

    key: str
    holds: str
    tests: tuple[str, ...] = ()
    why_not: str = ""


@cache
def names_in(file: str) -> frozenset[str]:
    """The test functions of a file below tests/; empty if there is no such file."""
    path = ROOT / "tests" / file
    if not path.is_file():
        return frozenset()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    parsed = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in parsed if isinstance(node, functions))


def missing(proof: Proof) -> list[str]:
    """The named tests that are not there."""
    found = []
    for name in proof.tests:
        file, _, function = name.partition("::")
        if function not in names_in(file):
            found.append(name)
    return found
