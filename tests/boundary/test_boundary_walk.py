"""Pairs that meet in the situation both were made for; `make prove` walks all pairs in all."""

from itertools import product

import pytest

from tests.boundary.operations import OPERATIONS
from tests.boundary.scenes import SITUATIONS
from tests.boundary.walk import walking


@pytest.mark.parametrize("scene", [situation.__name__ for situation in SITUATIONS])
def test_two_operations_end_as_one_of_their_two_orders_would(database_url: str, scene: str) -> None:
    at_home = [operation for operation in OPERATIONS if operation.scene == scene]
    with walking(database_url) as walk:
        findings = [
            finding
            for first, second in product(at_home, repeat=2)
            for finding in walk.pair(first, second, scene)
        ]
        assert walk.totals.boundaries > 0
    assert findings == []
