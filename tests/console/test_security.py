"""What every request must pass and every answer carries."""

import asyncio
import re
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

from latchwork.decisions.states import JobState
from latchwork_console.console import Permission
from latchwork_console.routes import ADDRESSES, Address, UndeclaredPermission, build_routes
from latchwork_console.security import HEADERS, UnsafeAddress, check_loopback
from latchwork_console.server import create_console, run_console
from tests.console.worlds import ADDRESS, SAME_ORIGIN, World

PAGES = ("/", "/log", "/jobs", "/queues", "/nodes", "/health")
WRITES = tuple(one for one in ADDRESSES if one.method == "POST")

FILLINGS = {None: "anything", ":path": "anything", ":int": "1", ":uuid": str(uuid4())}
"""What stands in an address for a parameter of each kind."""


def filled(address: Address) -> str:
    """An address's path with something in the place of each of its parameters."""
    return re.sub(r"{\w+(:\w+)?}", lambda found: FILLINGS[found[1]], address.path)


def carries_all(headers: object) -> bool:
    return all(headers[name] == value for name, value in HEADERS.items())  # type: ignore[index]


@pytest.mark.parametrize("path", [*PAGES, "/nothing-here", "/jobs/not-an-id", "/jobs?state=no"])
def test_every_answer_carries_the_security_headers(world: World, path: str) -> None:
    answer = world.client.get(path)
    assert carries_all(answer.headers)
    assert answer.headers["cache-control"] == "no-store"


def test_the_policy_allows_nothing_unsafe() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")


def test_a_defect_is_answered_with_the_headers_and_without_details(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(world.app.monitor, "nodes", fail)
    answer = world.client.get("/nodes")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert carries_all(answer.headers)


def test_static_files_are_kept_for_ever_under_their_digest_only(world: World) -> None:
    static = world.client.app.state.console.renderer.static  # type: ignore[attr-defined]
    kept = world.client.get(f"/static/{static.digest}/console.css")
    assert "immutable" in kept.headers["cache-control"]
    assert world.client.get("/static/old/console.css").headers["cache-control"] == "no-store"
    assert world.client.get(f"/static/{static.digest}/%2e%2e/layout.html").status_code == 404


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8321", "127.0.0.1:9", "[::1]:80", "10.1.2.3"]
)
def test_localhost_and_literal_addresses_are_answered(world: World, host: str) -> None:
    assert world.client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "a@localhost", "", "[::1"],
)
def test_another_host_name_is_refused_before_routing(world: World, host: str) -> None:
    answer = world.client.get("/health", headers={"Host": host})
    assert answer.status_code == 421
    assert carries_all(answer.headers)


def test_a_host_name_on_the_list_is_answered(world: World) -> None:
    client = TestClient(create_console(world.app, allowed_hosts=["Jobs.Example"]), base_url=ADDRESS)
    assert client.get("/health", headers={"Host": "jobs.example:8443"}).status_code == 200


def test_two_host_headers_are_refused(world: World) -> None:
    answer = world.client.get("/health", headers=[("Host", "localhost"), ("Host", "localhost")])
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": ADDRESS},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_write_from_elsewhere_is_refused(world: World, headers: dict[str, str]) -> None:
    answers = {one.name: world.client.post(filled(one), headers=headers) for one in WRITES}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(
        answers, 403
    )
    assert all(carries_all(answer.headers) for answer in answers.values())


def test_a_write_with_this_origin_passes_also_behind_a_proxy_that_ends_tls(world: World) -> None:
    job = world.jobs[JobState.DEAD_LETTERED]
    origin = {"Origin": ADDRESS.replace("http", "https")}
    assert world.client.post(f"/jobs/{job}/requeue", headers=origin).status_code == 303


@pytest.mark.parametrize(
    "kind", ["multipart/form-data; boundary=x", "text/plain", "application/json"]
)
def test_only_one_content_type_is_accepted(world: World, kind: str) -> None:
    headers = SAME_ORIGIN | {"Content-Type": kind}
    answer = world.client.post("/jobs/cancel", headers=headers, content=b"x")
    assert answer.status_code == 415


def test_a_write_route_answers_to_no_other_method(world: World) -> None:
    statuses = {one.name: world.client.get(filled(one)).status_code for one in WRITES}
    assert {name: status for name, status in statuses.items() if status not in (404, 405)} == {}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_changes_nothing(world: World, path: str) -> None:
    before = world.app.monitor.log_token()
    world.client.get(path)
    assert world.client.post(path, headers=SAME_ORIGIN).status_code == 405
    assert world.app.monitor.log_token() == before


def test_a_body_over_its_bound_is_refused(world: World) -> None:
    answer = world.post("/jobs/cancel", job="x" * 70_000)
    assert answer.status_code == 413
    assert carries_all(answer.headers)


def test_an_address_without_a_permission_stops_the_start() -> None:
    undeclared = Address("/new", None, lambda _: None, "new")  # type: ignore[arg-type]
    with pytest.raises(UndeclaredPermission, match="/new"):
        build_routes((*ADDRESSES, undeclared))


def test_who_has_no_permission_reaches_only_what_is_public(world: World) -> None:
    client = TestClient(
        create_console(world.app, permissions=lambda _: frozenset()), base_url=ADDRESS
    )
    refused = {
        one.name
        for one in ADDRESSES
        if client.request(one.method, filled(one), headers=SAME_ORIGIN).status_code == 403
    }
    assert refused == {one.name for one in ADDRESSES if one.permission is not Permission.PUBLIC}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "jobs.example", ""])  # noqa: S104
def test_another_address_than_loopback_is_refused(world: World, host: str) -> None:
    with pytest.raises(UnsafeAddress, match="this machine only"):
        asyncio.run(run_console(world.app, host, 0, stop=asyncio.Event()))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_accepted(host: str) -> None:
    check_loopback(host)


def test_health_says_nothing_but_ok(world: World) -> None:
    assert world.client.get("/health").text == "ok"
