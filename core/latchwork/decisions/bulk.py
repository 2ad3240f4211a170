"""Which states an operator's action on many jobs is legal in."""

from collections.abc import Collection

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import requeue_edge


def requeueable(states: Collection[JobState]) -> tuple[JobState, ...]:
    """Those of ``states`` that a requeue moves; of all states if none are given."""
    return tuple(state for state in states or tuple(JobState) if requeue_edge(state) is not None)


def cancellable(states: Collection[JobState]) -> tuple[JobState, ...]:
    """Those of ``states`` that a cancel moves or asks to stop; of all states if none are given."""
    return tuple(state for state in states or tuple(JobState) if not state.terminal)
