"""Every parameter has bounds; beyond them the answer is 400 and a sentence, never 500."""

import pytest

from tests.console.worlds import World

BAD_NUMBERS = ("-1", "1e309", "NaN", "9" * 19, "9" * 200, "0x10", "٣", "1.5", " 1")
BAD_PLACES = ("-1", "x", "1~", "1~2-", "5~9", "9" * 40, "1~" + "1," * 3_000)


@pytest.mark.parametrize("value", BAD_NUMBERS)
@pytest.mark.parametrize(
    "address", ["/jobs?before=", "/jobs?after=", "/log?before=", "/log?after="]
)
def test_a_number_out_of_its_range_is_refused(world: World, address: str, value: str) -> None:
    answer = world.client.get(address + value)
    assert answer.status_code == 400
    assert "parameter" in answer.text


@pytest.mark.parametrize("name", ["queue", "wire_name", "tag", "cause", "cause_type", "id"])
def test_a_text_over_its_bound_is_refused(world: World, name: str) -> None:
    assert world.client.get("/jobs", params={name: "x" * 500}).status_code == 400


@pytest.mark.parametrize("name", ["queue", "wire_name", "tag"])
@pytest.mark.parametrize("value", ["%00", "a%01b", "%ED%A0%80", "%FF", "%25", "_%25_", "%5C"])
def test_odd_bytes_never_break_a_listing(world: World, name: str, value: str) -> None:
    assert world.client.get(f"/jobs?{name}={value}").status_code in (200, 400)


@pytest.mark.parametrize(
    "query", ["state=", "queue=", "tag=", "failing=&state=leased", "unknown=1"]
)
def test_empty_and_unknown_parameters_are_as_if_absent(world: World, query: str) -> None:
    assert world.client.get(f"/jobs?{query}").status_code == 200
    assert world.client.get(f"/log?{query}").status_code == 200


def test_a_parameter_given_twice_is_refused(world: World) -> None:
    assert world.client.get("/jobs?queue=a&queue=b").status_code == 400


def test_too_many_parameters_are_refused(world: World) -> None:
    assert world.client.get("/jobs?" + "&".join(["state=leased"] * 60)).status_code == 400


def test_a_query_over_its_bound_is_refused(world: World) -> None:
    assert world.client.get("/jobs?x=" + "y" * 10_000).status_code == 414


@pytest.mark.parametrize("at", ["yesterday", "2026-13-01", "99999-01-01T00:00", "x" * 41])
def test_a_time_that_is_none_is_refused(world: World, at: str) -> None:
    assert world.client.get("/log", params={"at": at}).status_code == 400


@pytest.mark.parametrize(
    "at", ["2026-01-01T00:00", "2099-01-01T00:00:00Z", "0001-01-01", "9999-12-31"]
)
def test_any_time_is_a_page_of_the_log(world: World, at: str) -> None:
    assert world.client.get("/log", params={"at": at}).status_code == 200


@pytest.mark.parametrize("place", BAD_PLACES)
def test_a_place_in_the_log_that_is_none_is_refused(world: World, place: str) -> None:
    assert world.client.get("/log/stream", params={"after": place}).status_code in (400, 414)
    refused = world.client.get("/log/stream", headers={"Last-Event-ID": place})
    assert refused.status_code == 400


@pytest.mark.parametrize("query", ["view=none", "job=x", "state=x", "subject=" + "x" * 129])
def test_a_stream_of_nothing_is_refused(world: World, query: str) -> None:
    assert world.client.get(f"/log/stream?{query}").status_code == 400


def test_a_page_is_clamped_to_its_bound(world: World) -> None:
    answer = world.client.get("/jobs?limit=100000", headers={"Accept": "application/json"})
    assert answer.status_code == 200
