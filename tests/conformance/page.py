"""docs/conformance.md, made from the clauses and the scenarios."""

from tests.conformance.clauses import CLAUSES
from tests.conformance.proofs import Proof
from tests.conformance.scenarios import SCENARIOS


def conformance(notice: str) -> str:
    """The page: what must hold, and by which tests."""
    return f"""# What must hold, and the tests that hold us to it

{notice}

Each line is a promise and the tests that fail when it is broken. The tests of the store run on
SQLite and on PostgreSQL, and after each of them an audit looks at every row of its database.

## The contract

| section | what must hold | tests |
|---|---|---|
{_rows(CLAUSES)}

## Bugs that others had

Seventy bugs of other job systems, taken from their public issue threads, as scenarios for this one.

| | what must hold | tests |
|---|---|---|
{_rows(SCENARIOS)}
"""


def _rows(proofs: tuple[Proof, ...]) -> str:
    return "\n".join(
        f"| {proof.key} | {' '.join(filter(None, (proof.holds, proof.why_not)))} "
        f"| {'<br>'.join(map(_test, proof.tests)) or 'none'} |"
        for proof in proofs
    )


def _test(name: str) -> str:
    file, _, function = name.partition("::")
    return f"[{function.removeprefix('test_').replace('_', ' ')}](../tests/{file})"
