"""``latchwork worker``, ``console`` and ``run``: what stays up until it is told to stop."""

import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Annotated

import typer

from latchwork.cli.applications import load_application
from latchwork.cli.options import AppName
from latchwork.errors import InvalidValue
from latchwork.metrics import serving_metrics
from latchwork.worker.shutdown import run_processes

Queues = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Queues to serve, the first first; or A=3,B=1 to share slots by weight. "
        "All its job types' by default.",
    ),
]
Slots = Annotated[int, typer.Option(help="Jobs that run at the same time.")]
LeaseSeconds = Annotated[float, typer.Option(help="How long a lease lasts without a heartbeat.")]
HeartbeatSeconds = Annotated[
    float | None, typer.Option(help="Time between heartbeats; a third of the lease by default.")
]
GraceSeconds = Annotated[float, typer.Option(help="How long running jobs may go on at shutdown.")]
Processes = Annotated[int, typer.Option(min=1, max=256, help="Nodes, each in its own process.")]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Answer Prometheus on this port of this machine."),
]
Host = Annotated[str, typer.Option(help="The address the console listens on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The console's port; 0 picks one.")]

command = typer.Typer()


@command.command()
def worker(
    name: AppName,
    *,
    queues: Queues = None,
    slots: Slots = 20,
    lease_seconds: LeaseSeconds = 60,
    heartbeat_seconds: HeartbeatSeconds = None,
    grace_seconds: GraceSeconds = 30,
    processes: Processes = 1,
    metrics_port: MetricsPort = None,
) -> None:
    """Run worker nodes until SIGTERM or SIGINT; jobs that run may finish."""
    app = load_application(name)
    node = app.worker(
        queues=_served(queues),
        slots=slots,
        lease_seconds=lease_seconds,
        heartbeat_seconds=heartbeat_seconds,
        grace_seconds=grace_seconds,
    )
    _log_to_stderr()
    options = {
        "--queues": queues,
        "--slots": slots,
        "--lease-seconds": lease_seconds,
        "--heartbeat-seconds": heartbeat_seconds,
        "--grace-seconds": grace_seconds,
    }
    given = [f"{option}={value}" for option, value in options.items() if value is not None]
    one_node = [sys.executable, "-m", "latchwork", "worker", name, *given]
    with nullcontext() if metrics_port is None else serving_metrics(app, metrics_port) as port:
        if port is not None:
            typer.echo(f"metrics are at http://127.0.0.1:{port}/metrics")
        if processes > 1:
            raise typer.Exit(run_processes(one_node, processes))
        node.run()


@command.command()
def console(name: AppName, *, host: Host = "127.0.0.1", port: Port = 8321) -> None:
    """Serve the console until SIGTERM or SIGINT."""
    from latchwork_console.server import serve_console

    app = load_application(name)
    _log_to_stderr()
    serve_console(app, host, port, on_started=_say_where)


@command.command()
def run(
    name: AppName,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8321,
    queues: Queues = None,
    slots: Slots = 20,
    lease_seconds: LeaseSeconds = 60,
    heartbeat_seconds: HeartbeatSeconds = None,
    grace_seconds: GraceSeconds = 30,
) -> None:
    """Run a worker node and the console in one process, until SIGTERM or SIGINT."""
    from latchwork.cli.beside import console_beside

    app = load_application(name)
    node = app.worker(
        queues=_served(queues),
        slots=slots,
        lease_seconds=lease_seconds,
        heartbeat_seconds=heartbeat_seconds,
        grace_seconds=grace_seconds,
    )
    _log_to_stderr()
    with console_beside(app, host, port, on_started=_say_where):
        node.run()


def _served(option: str | None) -> Sequence[str] | Mapping[str, int] | None:
    """``a,b`` is an order, ``a=3,b=1`` are weights."""
    if option is None:
        return None
    parts = [part.strip().rpartition("=") for part in option.split(",")]
    if not any(equals for _, equals, _ in parts):
        return tuple(name for _, _, name in parts)
    if not all(weight.isascii() and weight.isdecimal() for _, _, weight in parts):
        raise InvalidValue("--queues", "must be names, or each name with its weight: a=3,b=1")
    return {name.strip(): int(weight) for name, _, weight in parts}


def _say_where(address: str) -> None:
    typer.echo(f"the console is at {address}")


def _log_to_stderr() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("latchwork").setLevel(logging.INFO)
