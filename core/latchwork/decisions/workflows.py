"""Workflows decided: their status, and what a retry moves (contract section 6)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from latchwork.decisions.states import LIVE_STATES, JobState


class WorkflowStatus(StrEnum):
    """What a workflow's members make of it; never stored."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def label(self) -> str:
        """The status in prose and on screen, such as ``Running``."""
        return self.value.capitalize()


class RetryScope(StrEnum):
    """Which members of an ended workflow a retry gives a new life."""

    UNFINISHED = "unfinished"
    DOWNSTREAM = "downstream"
    ALL = "all"


DECIDING_STATES: dict[WorkflowStatus, frozenset[JobState]] = {
    WorkflowStatus.RUNNING: LIVE_STATES,
    WorkflowStatus.FAILED: frozenset({JobState.DEAD_LETTERED, JobState.QUARANTINED}),
    WorkflowStatus.CANCELLED: frozenset({JobState.CANCELLED}),
    WorkflowStatus.SUCCEEDED: frozenset({JobState.SUCCEEDED}),
}
"""The first status with a state that any member is in is the workflow's."""


def status_of(states: Collection[JobState]) -> WorkflowStatus:
    """The status of a workflow whose members are in ``states``."""
    for status, deciding in DECIDING_STATES.items():
        if not deciding.isdisjoint(states):
            return status
    return WorkflowStatus.SUCCEEDED


class MemberEdge(NamedTuple):
    """A dependency between two members, by their enqueue numbers."""

    parent: int
    child: int


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """What a retry moves: every moved member with its new latch, and the edges it opens again."""

    latches: dict[int, int]
    reopened: tuple[MemberEdge, ...]


def plan_retry(
    states: Mapping[int, JobState], edges: Iterable[MemberEdge], scope: RetryScope
) -> RetryPlan:
    """What retrying ended members, by enqueue number, moves.

    Edges between moved members open again: a member waits for those of its parents that run again,
    and for no other.
    """
    edges = sorted(edges)
    moved = {
        sequence
        for sequence, state in states.items()
        if scope is RetryScope.ALL or state is not JobState.SUCCEEDED
    }
    if scope is RetryScope.DOWNSTREAM:
        # One pass is enough: a child's number is above its parents', and edges come by parent.
        for parent, child in edges:
            if parent in moved:
                moved.add(child)
    reopened = tuple(edge for edge in edges if edge.parent in moved and edge.child in moved)
    latches = dict.fromkeys(sorted(moved), 0)
    for edge in reopened:
        latches[edge.child] += 1
    return RetryPlan(latches, reopened)
