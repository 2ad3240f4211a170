"""The pages of docs/ made from the code: ``make docs`` writes them, a test compares them."""

from collections.abc import Callable

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import EDGES, Edge
from latchwork.settings import Settings
from tests.conformance.page import conformance
from tests.packaging.files import ROOT
from tests.proof.page import reliability

NOTICE = "<!-- Made from the code by `make docs`: change the code, not this page. -->"

MEANINGS = {
    JobState.SCHEDULED: "Waits for its due time, then for a free slot.",
    JobState.AWAITING_PARENT: "Waits until its last parent has settled.",
    JobState.LEASED: "Runs on the node that holds its lease. The only state in which a job runs.",
    JobState.SUCCEEDED: "Its handler returned; its output, if any, is stored.",
    JobState.CANCELLED: "Stopped by an operator, or because a parent did not succeed.",
    JobState.DEAD_LETTERED: "Ran and failed until its attempts were used up, or gave up.",
    JobState.QUARANTINED: "Could not be started: no handler of its name, or a payload it refuses.",
}


def state_machine() -> str:
    """The seven states and every legal transition."""
    states = "\n".join(
        f"| {state.label} | `{state.value}` | {'terminal' if state.terminal else 'live'} "
        f"| {MEANINGS[state]} |"
        for state in JobState
    )
    arrows = dict.fromkeys((edge.source, edge.target) for edge in EDGES)
    diagram = "\n".join(f"  {arrow(source)} --> {target.value}" for source, target in arrows)
    names = "\n".join(f'  state "{state.label}" as {state.value}' for state in JobState)
    edges = "\n".join(edge_row(edge) for edge in EDGES)
    return f"""# The state machine

{NOTICE}

A job is in one of seven states. Every move between them is one of the transitions below; each
appends exactly one row to the transition log, in the same transaction as the change.

## States

| state | in JSON, addresses and tables | kind | meaning |
|---|---|---|---|
{states}

A terminal job moves again only by an operator action.

## Transitions

```mermaid
stateDiagram-v2
{names}
{diagram}
```

| # | from | to | event | only if | with it, in the same transaction | failure detail |
|---|---|---|---|---|---|---|
{edges}
"""


def arrow(source: JobState | None) -> str:
    """Where a transition starts in the diagram: a birth starts at the dot."""
    return source.value if source else "[*]"


def edge_row(edge: Edge) -> str:
    """One transition as a row of the table."""
    cells = (
        edge.number,
        edge.source.label if edge.source else "-",
        edge.target.label,
        ", ".join(f"`{event.value}`" for event in edge.events),
        edge.guard or "-",
        edge.effect,
        "yes" if edge.detail else "no",
    )
    return f"| {' | '.join(cells)} |"


def settings() -> str:
    """Every setting, its default and what it does."""
    prefix = Settings.model_config["env_prefix"]
    rows = "\n".join(
        f"| `{(prefix + name).upper()}` | `{name}` | `{field.default}` | {field.description} |"
        for name, field in Settings.model_fields.items()
    )
    return f"""# Settings

{NOTICE}

Settings say how a process uses its database. Each comes from the environment, or from
`Latchwork(url, settings=Settings(...))`.

| in the environment | in `Settings` | default | meaning |
|---|---|---|---|
{rows}
"""


PAGES: dict[str, Callable[[], str]] = {
    "docs/state-machine.md": state_machine,
    "docs/settings.md": settings,
    "docs/reliability.md": reliability,
    "docs/conformance.md": lambda: conformance(NOTICE),
}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()
