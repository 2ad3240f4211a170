"""A proxy before PostgreSQL that watches for one kind of operation and strikes in the middle of it.

It reads the messages that callers send (Parse, Bind, Query), so that it knows which statements the
transaction on each connection has sent, and sees the COMMIT before the server does.
"""

import re
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import URL

LENGTH = struct.Struct(">I")
BACKEND_KEY = struct.Struct(">ii")
CHUNK = 65536

OPERATIONS = {
    "enqueue": re.compile(r"INSERT INTO latchwork_jobs "),
    "claim": re.compile(r"claim_number=\(?latchwork_jobs\.claim_number \+"),
    "heartbeat": re.compile(r"coalesce\(latchwork_jobs\.cancel_delivered_at"),
    "outcome": re.compile(r"applied_outcome="),
    "release of children": re.compile(r"latchwork_jobs\.parents_remaining - "),
    "expire": re.compile(r"lapses=\(?latchwork_jobs\.lapses \+"),
    "cancel or requeue": re.compile(r"INSERT INTO latchwork_audit "),
}
"""How the statement by which an operation is known looks."""


class Strike(NamedTuple):
    """What to do, once: ``act`` gets the session that is in the middle of ``operation``.

    ``at_commit`` waits until the transaction is about to commit, else it is the statement itself.
    """

    operation: str
    at_commit: bool
    act: "Callable[[Session], None]"


class Proxy:
    """Listens on a port of its own and passes everything on to the server of ``database_url``."""

    def __init__(self, database_url: URL) -> None:
        self._server = f"{database_url.query['host']}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._strike: Strike | None = None
        self._lock = threading.Lock()
        self.struck = threading.Event()
        port = self._listener.getsockname()[1]
        query = {"sslmode": "disable", "gssencmode": "disable"}
        self.url = database_url.set(host="127.0.0.1", port=port, query=query)
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def arm(self, strike: Strike) -> None:
        """Wait for the operation; ``struck`` is set when the strike has been carried out."""
        self.struck.clear()
        self._strike = strike

    def disarm(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._strike = None

    def taken(self, sent: set[str], *, commits: bool) -> Strike | None:
        """The strike, for the one session that meets it first."""
        with self._lock:
            strike = self._strike
            if strike is None or strike.operation not in sent or strike.at_commit != commits:
                return None
            self._strike = None
            return strike

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
            except OSError:  # the server is away: so are we
                server.close()
                caller.close()
                continue
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Session(self, caller, server).start()


class Session:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, caller: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._caller = caller
        self._server = server
        self._statements: dict[bytes, set[str]] = {}
        self._sent: set[str] = set()
        self._answers_pass = threading.Event()
        self._answers_pass.set()
        self._answered = threading.Event()
        self.backend = 0

    def start(self) -> None:
        """Pass everything on, both ways, until one end closes."""
        answers = threading.Thread(target=self._until_closed, args=(self._from_server,))
        answers.daemon = True
        answers.start()
        threading.Thread(target=self._serve, args=(answers,), daemon=True).start()

    def hold_back_answers(self) -> None:
        """From now on the caller hears nothing."""
        self._answers_pass.clear()
        self._answered.clear()

    def send_commit(self) -> None:
        """Let the COMMIT through, but not its answer."""
        self._server.sendall(b"Q" + LENGTH.pack(11) + b"COMMIT\0")

    def wait_for_answer(self, timeout_seconds: float) -> bool:
        """Whether the server has answered since the answers were held back."""
        return self._answered.wait(timeout_seconds)

    def cut(self) -> None:
        """Break both ends."""
        for end in (self._caller, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self, answers: threading.Thread) -> None:
        self._until_closed(self._from_caller)
        answers.join()
        self._caller.close()
        self._server.close()

    def _until_closed(self, work: Callable[[], None]) -> None:
        with suppress(OSError):
            work()
        self.cut()

    def _from_server(self) -> None:
        head = b""
        while chunk := self._server.recv(CHUNK):
            if not self.backend and len(head) < CHUNK:
                head += chunk
                self._look_for_backend(head)
            self._answered.set()
            if self._answers_pass.is_set():
                self._caller.sendall(chunk)

    def _look_for_backend(self, head: bytes) -> None:
        """Find the BackendKeyData message among those at the start."""
        at = 0
        while at + 5 <= len(head):
            [length] = LENGTH.unpack_from(head, at + 1)
            if head[at : at + 1] == b"K" and at + 5 + BACKEND_KEY.size <= len(head):
                self.backend = BACKEND_KEY.unpack_from(head, at + 5)[0]
                return
            at += 1 + length

    def _from_caller(self) -> None:
        waiting = b""
        started = False
        while chunk := self._caller.recv(CHUNK):
            waiting += chunk
            ready = 0
            while len(waiting) - ready >= 5:
                at = ready + started  # only the first message has no type before its length
                [length] = LENGTH.unpack_from(waiting, at)
                if len(waiting) < at + length:
                    break
                if started:
                    self._meet(waiting[ready : ready + 1], waiting[at + 4 : at + length])
                started = True
                ready = at + length
            if ready:
                self._server.sendall(waiting[:ready])
                waiting = waiting[ready:]

    def _meet(self, kind: bytes, body: bytes) -> None:
        """Look at one message before it goes to the server."""
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._statements[name] = operations_of(text)
        elif kind == b"B":
            name = body.split(b"\0", 2)[1]
            begun = self._statements.get(name, set())
            self._sent |= begun
            self._strike_if(begun, commits=False)
        elif kind == b"Q":
            text = body.rstrip(b"\0").upper()
            if text == b"COMMIT":
                self._strike_if(self._sent, commits=True)
            if text in (b"COMMIT", b"ROLLBACK"):
                self._sent = set()

    def _strike_if(self, sent: set[str], *, commits: bool) -> None:
        strike = self._proxy.taken(sent, commits=commits)
        if strike is not None:
            strike.act(self)
            self._proxy.struck.set()


def operations_of(text: bytes) -> set[str]:
    """Which operations a statement belongs to."""
    statement = text.decode(errors="replace")
    return {name for name, known in OPERATIONS.items() if known.search(statement)}
