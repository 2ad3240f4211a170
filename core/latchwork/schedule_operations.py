"""What one may do to schedules; a part of the operator."""

from functools import partial

from uuid_utils.compat import uuid7

from latchwork.audited_actions import AuditedActions
from latchwork.schedule_views import TriggerPreview, TriggerResult
from latchwork.store import schedule_actions
from latchwork.values import checked_name


class ScheduleOperator(AuditedActions):
    """Acts on schedules (contract section 8)."""

    def trigger_schedule(self, schedule_id: str, *, actor: str) -> TriggerResult:
        """Enqueue a job of the schedule now; its ticks stay as they are.

        REFUSED when the schedule may not overlap and its last job has not ended: that one's runs
        never overlap, whoever asks.
        """
        checked_name("schedule_id", schedule_id)
        act = partial(schedule_actions.trigger, schedule_id=schedule_id, job_id=uuid7())
        return self._carry_out(act, actor)

    def preview_trigger_schedule(self, schedule_id: str) -> TriggerPreview | None:
        """What ``trigger_schedule`` would do now; None for an unknown schedule."""
        checked_name("schedule_id", schedule_id)
        return self._database.read(schedule_actions.preview_trigger, schedule_id)
