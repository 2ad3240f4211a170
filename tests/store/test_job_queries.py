"""Listing jobs: filters, and paging both ways while rows come and go."""

import random
from uuid import UUID

import pytest
from sqlalchemy import delete

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.store import keyset
from latchwork.store.database import Database
from latchwork.store.schema import jobs
from latchwork.views import JobFilter, JobPage, JobView
from tests.store.scene import Scene

S = JobState


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def ids(page: JobPage) -> list[UUID]:
    return [job.id for job in page.jobs]


def walk(scene: Scene, job_filter: JobFilter, limit: int) -> list[JobView]:
    """Every job, page by page from the newest, checking the way back at each step."""
    page = scene.monitor.jobs(job_filter, limit=limit)
    assert page.previous is None
    met = list(page.jobs)
    while page.next is not None:
        following = scene.monitor.jobs(job_filter, page.next, limit=limit)
        if page.jobs and following.jobs and not page.partial:
            assert following.previous is not None
            assert ids(scene.monitor.jobs(job_filter, following.previous, limit=limit)) == ids(page)
        page = following
        met += page.jobs
    return met


def test_pages_join_without_a_hole_or_a_repeat_both_ways(scene: Scene) -> None:
    made = scene.enqueue_many(23)
    for limit in (1, 5, 23, 50):
        assert [job.id for job in walk(scene, JobFilter(), limit)] == made[::-1]


def test_the_ends_have_no_cursor(scene: Scene) -> None:
    scene.enqueue_many(4)
    first = scene.monitor.jobs(limit=2)
    assert first.previous is None
    assert first.next is not None
    last = scene.monitor.jobs(page=first.next, limit=2)
    assert last.next is None
    assert last.previous is not None
    assert scene.monitor.jobs(limit=4).next is None


def test_an_empty_table_is_one_empty_page(scene: Scene) -> None:
    assert scene.monitor.jobs() == JobPage((), None, None)


def test_new_jobs_appear_on_the_way_back(scene: Scene) -> None:
    scene.enqueue_many(4)
    older = scene.monitor.jobs(page=scene.monitor.jobs(limit=2).next, limit=2)
    fresh = scene.enqueue_many(3)
    back = scene.monitor.jobs(page=older.previous, limit=2)
    assert back.previous is not None, "the newer jobs are a page further"
    newest = scene.monitor.jobs(page=back.previous, limit=10)
    assert ids(newest) == fresh[::-1]
    assert newest.previous is None


@pytest.mark.no_audit("jobs are deleted by hand")
def test_cursors_hold_when_the_rows_under_them_are_deleted(scene: Scene) -> None:
    made = scene.enqueue_many(9)
    page = scene.monitor.jobs(limit=3)

    def purge(*gone: UUID) -> None:
        scene.database.write(lambda c: c.execute(delete(jobs).where(jobs.c.id.in_(gone))))

    purge(made[6], made[5])  # the last row of the page, and the first of the next
    following = scene.monitor.jobs(page=page.next, limit=3)
    assert ids(following) == [made[4], made[3], made[2]]
    purge(*made[7:])
    assert scene.monitor.jobs(page=page.next, limit=3).previous is None
    purge(*made[:5])
    gone = scene.monitor.jobs(page=following.next, limit=3)
    assert gone == JobPage((), None, None)


def test_every_combination_of_filters_gives_exactly_its_jobs(scene: Scene) -> None:
    chance = random.Random(3)  # noqa: S311 - repeatable
    for _ in range(60):
        scene.enqueue(
            chance.choice(["charge", "mail"]),
            queue=chance.choice(["default", "slow"]),
            tags=tuple(chance.sample(["red", ("customer", "7")], chance.randint(0, 2))),
        )
    for queue in ("default", "slow"):
        for claimed in scene.claim(20, queue=queue):
            scene.end(claimed, chance.choice([S.SUCCEEDED, S.DEAD_LETTERED, S.CANCELLED]))
    everything = scene.monitor.jobs(limit=200).jobs
    choices = [
        JobFilter(states=states, queue=queue, wire_name=wire_name, tag=tag, cause_type=cause_type)
        for states in ((), (S.SUCCEEDED,), (S.CANCELLED, S.DEAD_LETTERED, S.SCHEDULED))
        for queue in (None, "slow")
        for wire_name in (None, "mail")
        for tag in (None, "red", ("customer", "7"))
        for cause_type in (None, "ValueError")
    ]
    for one in choices:
        wanted = [job for job in everything if matches(one, job)]
        assert walk(scene, one, 25) == wanted, one


def matches(one: JobFilter, job: JobView) -> bool:
    return (
        (not one.states or job.state in one.states)
        and one.queue in (None, job.queue)
        and one.wire_name in (None, job.wire_name)
        and (one.tag is None or one.tag in job.tags)
        and (one.cause_type is None or (job.cause is not None and job.cause.type == one.cause_type))
    )


def test_a_label_is_not_a_key(scene: Scene) -> None:
    labelled = scene.enqueue(tags=("red",))
    scene.enqueue(tags=(("red", "dark"),))
    assert ids(scene.monitor.jobs(JobFilter(tag="red"))) == [labelled]


def test_a_search_that_meets_its_bound_says_so_and_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyset, "WALK_BOUNDS", (2, 5))
    rare = scene.enqueue("rare", queue="default")
    scene.enqueue_many(8, wire_name="rare", queue="slow")
    scene.enqueue_many(8, wire_name="common", queue="default")
    both = JobFilter(queue="default", wire_name="rare")
    first = scene.monitor.jobs(both)
    assert first.partial
    assert first.jobs == ()
    assert first.next is not None
    assert [job.id for job in walk(scene, both, 5)] == [rare]
    back = scene.monitor.jobs(both, after=1)
    assert back.jobs == ()
    assert back.partial


@pytest.mark.parametrize("limit", [1, 200, 201, 10_000])
def test_a_page_has_at_most_two_hundred_rows(scene: Scene, limit: int) -> None:
    scene.enqueue_many(205)
    assert len(scene.monitor.jobs(limit=limit).jobs) == min(limit, 200)


@pytest.mark.parametrize(
    "page",
    ["", "7", "before:", "before:x", "before:-1", "after:1.5", "before:99999999999999999999",
     "before:9223372036854775808", "BEFORE:1", "before: 1", "after:\u0661", "before:1:2"],
)  # fmt: skip
def test_a_malformed_cursor_is_refused(scene: Scene, page: str) -> None:
    with pytest.raises(InvalidValue):
        scene.monitor.jobs(page=page)


def test_malformed_arguments_are_refused(scene: Scene) -> None:
    with pytest.raises(InvalidValue):
        scene.monitor.jobs(limit=0)
    with pytest.raises(InvalidValue):
        scene.monitor.jobs(after=1, before=2)
    with pytest.raises(InvalidValue):
        scene.monitor.jobs(before=2**63)
    for broken in ("a\0b", "", "\ud800", "x" * 129):
        with pytest.raises(InvalidValue):
            scene.monitor.jobs(JobFilter(queue=broken))
    with pytest.raises(InvalidValue):
        scene.monitor.jobs(JobFilter(tag=("key", "a\0b")))


def test_a_job_is_shown_with_everything_around_it(scene: Scene) -> None:
    parent = scene.enqueue("charge-card", tags=("red", ("customer", "7")))
    child = scene.enqueue("send-receipt", parents=(parent,), step="receipt")
    scene.run(S.SUCCEEDED, output='{"transaction":"t-1"}')
    detail = scene.monitor.detail(parent)
    assert detail is not None
    assert detail.payload == '{"order":"42"}'
    assert detail.output == '{"transaction":"t-1"}'
    assert detail.job.tags == ("red", ("customer", "7"))
    assert detail.retry.max_attempts == detail.job.max_attempts == 10
    (related,) = detail.children
    assert (related.id, related.step, related.open) == (child, "receipt", False)
    below = scene.monitor.detail(child, with_output=False)
    assert below is not None
    assert [one.id for one in below.parents] == [parent]
    hidden = scene.monitor.detail(parent, with_output=False)
    assert hidden is not None
    assert hidden.output is None


def test_a_job_with_many_children_lists_two_hundred(scene: Scene) -> None:
    parent = scene.enqueue()
    scene.enqueue_many(201, parents=(parent,))
    detail = scene.monitor.detail(parent)
    assert detail is not None
    assert len(detail.children) == 200
    assert detail.more_children


def test_an_unknown_job_is_nothing(scene: Scene) -> None:
    unknown = UUID(int=1)
    monitor = scene.monitor
    assert monitor.job(unknown) is None
    assert monitor.detail(unknown) is None
    assert monitor.graph(unknown) is None
    assert monitor.explain(unknown) is None
    assert monitor.output(unknown).state is None
    assert monitor.history(unknown).transitions == ()
    assert monitor.audit_of_job(unknown) == ()
