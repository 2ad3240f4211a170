"""What acting on selected jobs would do, told before it is done."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from latchwork.decisions.states import JobState
from latchwork.views import ActionPreview, BoundedCount
from latchwork_console.actions.results import skip_reason

Preview = Callable[[UUID], ActionPreview | None]


@dataclass(frozen=True, slots=True)
class Group:
    """Selected jobs in the same state: None for those that are no longer stored."""

    count: int
    state: JobState | None
    reason: str


@dataclass(frozen=True, slots=True)
class SelectionContext:
    """The page that asks once more: which of the selected jobs qualify, which not and why."""

    action: str
    route: str
    job_ids: tuple[UUID, ...]
    qualifying: tuple[Group, ...]
    skipped: tuple[Group, ...]
    cascade: BoundedCount
    stays_cancelled: BoundedCount
    back: str
    count: int
    """How many jobs would be acted on."""


def preview_selection(
    action: str, job_ids: Sequence[UUID], preview: Preview, back: str
) -> SelectionContext:
    """Preview an action on each job; sums over them may name a job below two of them twice."""
    told = [preview(job_id) for job_id in job_ids]
    allowed = [one for one in told if one is not None and one.allowed]
    refused = [one for one in told if one is None or not one.allowed]
    skipped = Counter(None if one is None else one.state for one in refused)
    reasons = {one.state: one.reason for one in allowed}
    return SelectionContext(
        action=action,
        route=f"{action}_jobs",
        job_ids=tuple(job_ids),
        qualifying=tuple(
            Group(count, state, reasons[state])
            for state, count in Counter(one.state for one in allowed).items()
        ),
        skipped=tuple(
            Group(count, state, skip_reason(action, state)) for state, count in skipped.items()
        ),
        cascade=_most(one.cascade for one in allowed),
        stays_cancelled=_most(one.stays_cancelled for one in allowed),
        back=back,
        count=len(allowed),
    )


def _most(counts: Iterable[BoundedCount]) -> BoundedCount:
    found = list(counts)
    return BoundedCount(sum(one.value for one in found), any(one.capped for one in found))
