"""Transition observers: code of yours that is called when a job reaches a state (section 7).

An observer watches; it changes nothing. It is called at least once per row, so it must bear being
called twice for the same one.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.observer_views import ObserverScope, Start
from latchwork.values import checked_name
from latchwork.views import TransitionView

__all__ = ["ObserverContext", "ObserverRegistry", "OnTransition"]


@dataclass(frozen=True, slots=True)
class ObserverContext:
    """What an observer is told beside the transition.

    ``attempt`` counts the calls for this row, from 1. ``key`` is the same at each of them and no
    other row's: give it to a receiver that should act once.
    """

    observer: str
    attempt: int
    key: str


OnTransition = Callable[[TransitionView, ObserverContext], Awaitable[None] | None]
"""An observer's function, ``async`` or plain; what it raises is a failure, and tried again."""


@dataclass(frozen=True, slots=True)
class RegisteredObserver:
    """An observer of this process: what it is called for, and what is called."""

    scope: ObserverScope
    on_transition: OnTransition


class ObserverRegistry:
    """The observers of one application, by name."""

    def __init__(self) -> None:
        self._observers: dict[str, RegisteredObserver] = {}

    def add(self, scope: ObserverScope, on_transition: OnTransition) -> None:
        """Add an observer; InvalidValue if its name is taken or it cannot be called."""
        if scope.name in self._observers:
            raise InvalidValue("name", f"{scope.name} is the name of another observer")
        if not callable(on_transition):
            raise InvalidValue("observer", "must be a function of a transition and a context")
        self._observers[scope.name] = RegisteredObserver(scope, on_transition)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._observers)

    def __iter__(self) -> Iterator[RegisteredObserver]:
        """Each of them."""
        return iter(self._observers.values())


def checked_scope(
    name: str,
    states: Iterable[JobState | str],
    *,
    wire_name: str | None,
    queue: str | None,
    start: Start,
) -> ObserverScope:
    """What an observer is called for, checked.

    Raises:
        InvalidValue: a name is malformed, or there is no such state or start.
        ValueTooLarge: a name is too long.
    """
    checked_name("name", name)
    for field, given in (("wire_name", wire_name), ("queue", queue)):
        if given is not None:
            checked_name(field, given)
    if start not in ("beginning", "end"):
        raise InvalidValue("start", "must be beginning or end")
    chosen = {states} if isinstance(states, str) else set(states)
    unknown = sorted(str(one) for one in chosen - set(JobState))
    if unknown:
        raise InvalidValue("states", f"must be job states, not {', '.join(unknown)}")
    if not chosen:
        raise InvalidValue("states", "must name at least one job state")
    in_order = tuple(state for state in JobState if state in chosen)
    return ObserverScope(name, in_order, wire_name, queue, start)
