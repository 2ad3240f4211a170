"""When a failed attempt is tried again (contract section 2, Retries). Policy is data, not code."""

import math
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how late a failed job is tried again; stored with the job at enqueue.

    The delay after failed attempt n is ``min(cap, base * factor ** (n - 1))`` seconds, spread by
    ``jitter`` (0 to 1: the share of the delay that chance may take away).
    """

    max_attempts: int = 10
    base_seconds: float = 2
    factor: float = 2
    cap_seconds: float = 300
    jitter: float = 0

    def __post_init__(self) -> None:
        """Refuse a policy that could never be followed: ValueError names the field."""
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int):
            raise ValueError("max_attempts must be a whole number")
        if not 1 <= self.max_attempts <= 1000:
            raise ValueError("max_attempts must be from 1 to 1000")
        bounds = {
            "base_seconds": (self.base_seconds, 0, 10**9),
            "factor": (self.factor, 1, 10**9),
            "cap_seconds": (self.cap_seconds, 0, 10**9),
            "jitter": (self.jitter, 0, 1),
        }
        for name, (value, lowest, highest) in bounds.items():
            if not (math.isfinite(value) and lowest <= value <= highest):
                raise ValueError(f"{name} must be from {lowest} to {highest}")


def delay_seconds(policy: RetryPolicy, attempt: int, chance: float = 0.0) -> float:
    """The wait after failed attempt ``attempt`` (from 1); ``chance`` is random, in [0, 1)."""
    try:
        delay = min(policy.cap_seconds, policy.base_seconds * policy.factor ** (attempt - 1))
    except OverflowError:
        delay = policy.cap_seconds
    return delay * (1 - policy.jitter * chance)


def next_due(
    policy: RetryPolicy, attempt: int, now: datetime, *, chance: float = 0.0,
    after_seconds: float | None = None,
) -> datetime | None:  # fmt: skip
    """When the job runs again after its attempt number ``attempt`` failed; None dead-letters it.

    ``after_seconds`` is a delay the handler asked for by raising ``Retry``; at the ceiling it does
    not help.
    """
    if attempt >= policy.max_attempts:
        return None
    delay = delay_seconds(policy, attempt, chance) if after_seconds is None else after_seconds
    return now + timedelta(seconds=delay)
