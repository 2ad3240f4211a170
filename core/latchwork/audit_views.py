"""The audit trail as it is listed: who did what to what, and when."""

from dataclasses import dataclass

from latchwork.views import AuditRow


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which operator actions are listed; an empty filter lists all.

    ``subject`` is the name or id of what was acted on, ``subject_kind`` what that is.
    """

    actor: str | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of the audit trail, newest first.

    ``older`` and ``newer`` are row numbers for ``before`` and ``after``, or None at the ends.
    ``partial`` says that the search stopped at its bound before the page was full.
    """

    rows: tuple[AuditRow, ...]
    older: int | None
    newer: int | None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class AuditNames:
    """The actors and actions among the newest rows, to choose a filter from."""

    actors: tuple[str, ...]
    actions: tuple[str, ...]
