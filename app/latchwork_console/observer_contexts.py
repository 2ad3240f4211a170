"""What the pages of observers and of the history policy show."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from latchwork.decisions.states import HistoryPolicy
from latchwork.observer_views import (
    DeadDelivery,
    HistoryPolicyView,
    ObserverView,
    SettingPreview,
)
from latchwork_console.console import Console, Permission

POLICY_LABELS = {
    HistoryPolicy.OFF: "Off",
    HistoryPolicy.TRANSITIONS: "Transitions",
    HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL: "With detail",
}
DEAD_SHOWN = 50


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """One rung of the history policy, with what choosing it would do."""

    policy: HistoryPolicy
    label: str
    current: bool
    preview: SettingPreview


@dataclass(frozen=True, slots=True)
class ObserversRegions:
    """What changes on the page of all observers."""

    observers: tuple[ObserverView, ...]


@dataclass(frozen=True, slots=True)
class ObserversContext(ObserversRegions):
    """All observers, and the history policy they depend on."""

    history: HistoryPolicyView
    choices: tuple[PolicyChoice, ...]
    permitted: bool
    stream_token: str


@dataclass(frozen=True, slots=True)
class ObserverRegions:
    """What changes on the page of one observer."""

    observer: ObserverView
    dead: tuple[DeadDelivery, ...]
    more_dead: bool
    retire: SettingPreview
    permitted: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class ObserverContext(ObserverRegions):
    """One observer, and the place to follow the log from."""

    stream_token: str


def read_observers(console: Console, permissions: Collection[Permission]) -> ObserversContext:
    """All observers, and the place to follow the log from, read before them."""
    monitor, operator = console.app.monitor, console.app.operator
    token = monitor.log_token()
    history = monitor.history_policy()
    return ObserversContext(
        observers=monitor.observers(),
        history=history,
        choices=tuple(
            PolicyChoice(
                policy=policy,
                label=label,
                current=policy is history.policy,
                preview=operator.preview_set_history_policy(policy),
            )
            for policy, label in reversed(POLICY_LABELS.items())
        ),
        permitted=Permission.MANAGE_OBSERVERS in permissions,
        stream_token=token,
    )


def read_observer(
    console: Console, name: str, permissions: Collection[Permission]
) -> ObserverRegions | None:
    """One observer as somebody with ``permissions`` sees it; None if it is not known."""
    monitor = console.app.monitor
    found, retire = monitor.observer(name), console.app.operator.preview_retire_observer(name)
    if found is None or retire is None:
        return None
    sensitive = Permission.VIEW_SENSITIVE in permissions
    dead = monitor.dead_deliveries(name, limit=DEAD_SHOWN + 1)
    return ObserverRegions(
        observer=found if sensitive else replace(found, last_error=None),
        dead=tuple(one if sensitive else replace(one, error=None) for one in dead[:DEAD_SHOWN]),
        more_dead=len(dead) > DEAD_SHOWN,
        retire=retire,
        permitted=Permission.MANAGE_OBSERVERS in permissions,
        sensitive=sensitive,
    )
