"""A console over a database that holds what an operator may meet, hostile names included."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from httpx2 import Response
from starlette.testclient import TestClient

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from latchwork.store.heartbeats import NodeRecord, register_node
from latchwork.store.moves import Cause
from latchwork_console.server import create_console
from tests.store.builders import Store

ADDRESS = "http://localhost:8321"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
HOSTILE = "<script>alert('x')</script>\"& \u202egnp.exe 🚀 a/b+c#d%2F"
"""What no page may let through: markup, quotes, a direction override, characters of addresses."""


@dataclass
class World:
    """A client of a console, the application behind it, and jobs in every state."""

    app: Latchwork
    store: Store
    client: TestClient
    jobs: dict[JobState, UUID]

    def post(self, path: str, **fields: object) -> Response:
        """Send a form as the console's own page does."""
        return self.client.post(path, data=fields, headers=SAME_ORIGIN, follow_redirects=False)


def make_world(app: Latchwork) -> World:
    """One job in each state, all of them with hostile names, on a node with a hostile name."""
    now = datetime.now(UTC)
    store = Store(app.database, now=now - timedelta(minutes=2))
    jobs: dict[JobState, UUID] = {}
    for index, state in enumerate(JobState):
        names = {
            "wire_name": f"{HOSTILE} {index}",
            "queue": f"{HOSTILE} queue {index}",
            "tags": (HOSTILE, ("key=", HOSTILE)),
        }
        if state is JobState.AWAITING_PARENT:
            jobs[state] = store.enqueue(jobs[JobState.SCHEDULED], **names)
            continue
        jobs[state] = store.enqueue(**names)
        if state is JobState.LEASED:
            store.lease(jobs[state], worker=HOSTILE)
        elif state is JobState.CANCELLED:
            store.cancel(jobs[state], actor=HOSTILE)
        elif state is not JobState.SCHEDULED:
            cause = Cause(code="failed", type=HOSTILE[:60], text=HOSTILE)
            given = {"output": '"o"'} if state is JobState.SUCCEEDED else {"cause": cause}
            store.end(jobs[state], state, **given)
    store.now = now
    app.database.write(
        register_node,
        NodeRecord(
            worker_id=HOSTILE,
            host=HOSTILE,
            pid=1,
            version="0",
            started_at=now,
            heartbeat_seconds=20,
            slots=4,
            queues=(HOSTILE,),
            wire_names=(HOSTILE,),
        ),
    )
    client = TestClient(
        create_console(app), base_url=ADDRESS, raise_server_exceptions=False, follow_redirects=False
    )
    return World(app, store, client, jobs)
