"""``app.worker(...)``: an option out of its range is refused by name, before anything starts."""

from typing import Any

import pytest

from latchwork import InvalidValue, JobContext, Latchwork


@pytest.fixture
def app() -> Latchwork:
    """An application whose database is never opened."""
    app = Latchwork("sqlite://")

    @app.job("one", queue="mail")
    def one(context: JobContext) -> None: ...

    return app


@pytest.mark.parametrize(
    "options",
    [
        {"slots": 1},
        {"slots": 10_000},
        {"lease_seconds": 0.1, "heartbeat_seconds": 0.01},
        {"lease_seconds": 1_000_000},
        {"lease_seconds": 3, "heartbeat_seconds": 1},
        {"lease_seconds": 0.3, "heartbeat_seconds": 0.1},
        {"poll_seconds": 0.01},
        {"sweep_seconds": 0.01},
        {"grace_seconds": 0},
        {"queues": ["q" * 128]},
        {"queues": {"mail": 1_000}},
    ],
)
def test_an_option_exactly_at_its_bound_is_fine(app: Latchwork, options: dict[str, Any]) -> None:
    app.worker(**options)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"slots": 0}, "slots"),
        ({"slots": 10_001}, "slots"),
        ({"slots": 1.0}, "slots"),
        ({"slots": True}, "slots"),
        ({"lease_seconds": 0.09}, "lease_seconds"),
        ({"lease_seconds": 1_000_001}, "lease_seconds"),
        ({"lease_seconds": float("nan")}, "lease_seconds"),
        ({"lease_seconds": float("inf")}, "lease_seconds"),
        ({"lease_seconds": "60"}, "lease_seconds"),
        ({"heartbeat_seconds": 0}, "heartbeat_seconds"),
        ({"lease_seconds": 3, "heartbeat_seconds": 1.01}, "heartbeat_seconds"),
        ({"poll_seconds": 0}, "poll_seconds"),
        ({"poll_seconds": None}, "poll_seconds"),
        ({"sweep_seconds": 0}, "sweep_seconds"),
        ({"grace_seconds": -1}, "grace_seconds"),
        ({"queues": []}, "queues"),
        ({"queues": {}}, "queues"),
        ({"queues": "mail"}, "queues"),
        ({"queues": [""]}, "queue"),
        ({"queues": ["q" * 129]}, "queue"),
        ({"queues": [3]}, "queue"),
        ({"queues": {"mail": 0}}, "weight of mail"),
        ({"queues": {"mail": 1_001}}, "weight of mail"),
        ({"queues": {"mail": 1.5}}, "weight of mail"),
    ],
)
def test_an_option_out_of_its_range_is_refused_by_name(
    app: Latchwork, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        app.worker(**options)
    assert refused.value.field == field


def test_left_out_the_queues_are_those_of_the_job_types_and_default_in_equal_parts(
    app: Latchwork,
) -> None:
    options = app.worker().options
    assert options.queues == ("default", "mail")
    assert options.weights == {"default": 1, "mail": 1}


def test_a_list_of_queues_is_an_order_and_a_mapping_gives_weights(app: Latchwork) -> None:
    listed = app.worker(queues=["mail", "default", "mail"]).options
    assert (listed.queues, listed.weights) == (("mail", "default"), None)
    weighted = app.worker(queues={"mail": 3, "default": 1}).options
    assert weighted.weights == {"mail": 3, "default": 1}


def test_the_heartbeat_is_a_third_of_the_lease_if_left_out(app: Latchwork) -> None:
    assert app.worker(lease_seconds=9).options.heartbeat_seconds == 3
