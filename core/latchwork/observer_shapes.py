"""Observers, their dead deliveries and the history policy as JSON: one shape per thing."""

from datetime import datetime

from latchwork.json_shapes import Shape, time_shape, transition_shape
from latchwork.observer_views import DeadDelivery, HistoryPolicyView, ObserverView
from latchwork.views import BoundedCount


def observer_shape(one: ObserverView, now: datetime, *, sensitive: bool = True) -> Shape:
    """One observer; without ``sensitive`` the text of its last error is left out."""
    return {
        "name": one.name,
        "states": [state.value for state in one.states],
        "wire_name": one.wire_name,
        "queue": one.queue,
        "state": one.state.value,
        "behind": one.is_behind(now),
        "behind_seconds": one.behind(now).total_seconds(),
        "registered_at": time_shape(one.registered_at),
        "last_seen_at": time_shape(one.last_seen_at),
        "retired_at": time_shape(one.retired_at),
        "retired_by": one.retired_by,
        "owner": one.owner,
        "token": one.token,
        "passed_position": one.passed_position,
        **_count_shape("lag", one.lag),
        **_count_shape("pending", one.pending),
        **_count_shape("backing_off", one.backing_off),
        **_count_shape("dead", one.dead),
        "delivered": one.delivered,
        "last_delivered_at": time_shape(one.last_delivered_at),
        "skipped": one.skipped,
        "last_error": one.last_error if sensitive else None,
        "last_error_at": time_shape(one.last_error_at),
    }


def dead_delivery_shape(one: DeadDelivery, *, sensitive: bool = True) -> Shape:
    """One dead delivery with its copy of the row."""
    return {
        "id": one.id,
        "observer": one.observer,
        "failures": one.failures,
        "starts": one.starts,
        "error": one.error if sensitive else None,
        "dead_at": time_shape(one.dead_at),
        "transition": transition_shape(one.transition, sensitive=sensitive),
    }


def history_policy_shape(one: HistoryPolicyView) -> Shape:
    """The history policy in force."""
    return {"policy": one.policy.value, "since": time_shape(one.since)}


def _count_shape(name: str, count: BoundedCount) -> Shape:
    return {name: count.value, f"{name}_is_capped": count.capped}
