"""Settings, read from the environment in one place (prefix ``LATCHWORK_``)."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """How this process uses its database. Every field may come from ``LATCHWORK_FIELD_NAME``."""

    model_config = SettingsConfigDict(env_prefix="LATCHWORK_", frozen=True, extra="ignore")

    disable_failure_detail: bool = Field(
        default=False,
        description="Store no failure detail and no cause text, whatever the history policy says.",
    )
    sqlite_synchronous: Literal["FULL", "NORMAL"] = Field(
        default="FULL",
        description="SQLite durability: FULL syncs every commit; NORMAL may lose the last commits "
        "at power failure, though never corrupt the file.",
    )
    sqlite_busy_seconds: float = Field(
        default=5.0, ge=0, le=600, description="How long a writer waits for SQLite's write lock."
    )
    pool_size: int = Field(
        default=10, ge=1, le=200, description="Connections kept open to PostgreSQL per process."
    )
    retention_done_hours: float = Field(
        default=24.0, ge=0, le=876_000, allow_inf_nan=False,
        description="How long Succeeded and Cancelled jobs are kept after their end.",
    )  # fmt: skip
    retention_failed_days: float = Field(
        default=14.0, ge=0, le=36_500, allow_inf_nan=False,
        description="How long Dead-Lettered and Quarantined jobs are kept after their end.",
    )  # fmt: skip
    console_metrics: bool = Field(
        default=False,
        description="Answer Prometheus at /metrics of the console (extra: metrics).",
    )
    tracing: bool = Field(
        default=False,
        description="Trace enqueues and attempts with OpenTelemetry (extra: tracing).",
    )
