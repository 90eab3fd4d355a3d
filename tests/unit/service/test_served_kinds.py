"""Kinds that a cluster begins to serve, or serves in another version, while it is recorded."""

import pytest
from anyio import run
from msgspec.structs import replace

from app.domain.errors import ClusterUnreachable, Forbidden, NotFound
from app.domain.log import Actor, ObjectKey
from app.domain.log.recorded_cluster import ListPage, ServedKind
from app.domain.log.records import LIST, WATCH, Loss, Op, Record, TimeQuality
from app.domain.values.timestamps import Instant
from app.service.recording import known, recorder, served_kinds, snapshot
from app.service.recording.following import gap
from app.service.recording.snapshot import SnapshotBounds

BOUNDS = SnapshotBounds(tries_max=1, pause_seconds=0.0)


def kind(resource: str, version: str = "v1", group: str = "") -> ServedKind:
    return ServedKind(group=group, version=version, resource=resource, kind="K", is_namespaced=True)


PODS, NODES, WIDGETS = kind("pods"), kind("nodes"), kind("widgets", "v1", "example.com")
NEWER = kind("widgets", "v2", "example.com")


class Source:
    """A cluster that serves kinds; each may be listed, or a problem says why not."""

    def __init__(self, *served: ServedKind, missing=(), problem=None, refused=(), versions=()):
        self._served, self._missing, self._problem = [*served], [*missing], problem
        self._refused, self._versions = dict(refused), dict(versions)
        self.listed: list[str] = []

    async def kinds(self):
        if self._problem is not None:
            raise self._problem
        return self._served, self._missing

    async def list_page(self, kind, *, limit, version="", token=""):
        assert limit == 1
        self.listed.append(kind.name)
        if kind.name in self._refused:
            raise self._refused[kind.name]
        return ListPage(items=(), version=self._versions.get(kind.name, "7"))


@pytest.mark.parametrize(
    ("served", "found"),
    [
        ((PODS, WIDGETS), None),
        ((PODS, NEWER), NEWER),
        ((NEWER, WIDGETS), NEWER),
        ((PODS, NODES), None),
        ((), None),
    ],
)
def test_kind_is_found_in_another_version_of_its_own_name(served, found) -> None:
    async def look():
        return await served_kinds.in_other_version(Source(*served), WIDGETS)

    assert run(look) == found


def test_kind_of_a_cluster_that_does_not_answer_is_in_no_other_version() -> None:
    async def look():
        source = Source(NEWER, problem=ClusterUnreachable("no answer"))
        return await served_kinds.in_other_version(source, WIDGETS)

    assert run(look) is None


def later(source: Source, *followed: ServedKind):
    async def look():
        return await snapshot.probe_later(source, followed, BOUNDS)

    return run(look)


@pytest.mark.parametrize(
    ("source", "followed"),
    [
        (Source(PODS, NODES), (PODS, NODES)),
        (Source(PODS), (PODS, NODES)),
        (Source(PODS, NEWER), (PODS, WIDGETS)),
        (Source(PODS, WIDGETS, problem=ClusterUnreachable("no answer")), (PODS,)),
        (Source(PODS, WIDGETS, refused={PODS.name: ClusterUnreachable("no answer")}), (PODS,)),
    ],
    ids=["the same", "fewer", "another version", "no answer", "no list"],
)
def test_cluster_has_no_new_kind(source: Source, followed: tuple[ServedKind, ...]) -> None:
    assert later(source, *followed) is None


def test_new_kinds_are_probed_behind_one_that_is_followed_and_told_without_it() -> None:
    source = Source(PODS, NODES, WIDGETS, missing=["gadgets"])
    new, missing, probed = later(source, PODS, NODES)
    assert (new, missing) == ([WIDGETS], ["gadgets"])
    assert source.listed[:2] == [PODS.name, WIDGETS.name]
    assert probed.starts.keys() == {WIDGETS.name}
    assert not probed.starts[WIDGETS.name].is_denied
    assert probed.denied == {}


@pytest.mark.parametrize("problem", [Forbidden("refused with 403"), NotFound("refused with 404")])
def test_new_kind_and_followed_one_that_are_refused(problem: Exception) -> None:
    source = Source(PODS, WIDGETS, refused={PODS.name: problem, WIDGETS.name: problem})
    new, _, probed = later(source, PODS)
    assert new == [WIDGETS]
    assert probed.starts.keys() == probed.denied.keys() == {WIDGETS.name}
    assert probed.starts[WIDGETS.name].is_denied
    assert probed.denied[WIDGETS.name] == str(problem)


@pytest.mark.parametrize(("version", "shares"), [("7", True), ("3", False), ("none", False)])
def test_new_kind_shares_the_counter_of_the_followed_one_or_not(version, shares) -> None:
    source = Source(PODS, WIDGETS, versions={WIDGETS.name: version})
    _, _, probed = later(source, PODS)
    assert probed.starts[WIDGETS.name].shares_counter == shares


@pytest.mark.parametrize(
    ("problems", "sentences"),
    [
        ({}, []),
        ({"pods": "no answer"}, ["no answer"]),
        ({"pods": "no answer", "nodes": "no answer"}, ["no answer"]),
        ({"pods": "/api/v1/pods: no answer"}, ["pods: /api/v1/pods: no answer"]),
        (
            {"pods": "/api/v1/pods: no answer", "nodes": "/api/v1/nodes: no answer"},
            ["several kinds: no answer"],
        ),
        (
            {"pods": "/api/v1/pods: no answer", "nodes": "/api/v1/nodes: refused"},
            ["pods: /api/v1/pods: no answer", "nodes: /api/v1/nodes: refused"],
        ),
        (
            {"pods": "the cluster: no answer", "nodes": "another: no answer"},
            ["the cluster: no answer", "another: no answer"],
        ),
    ],
)
def test_problems_of_one_cause_are_one_sentence(problems, sentences) -> None:
    assert recorder.together(problems) == sentences


def test_record_of_a_gap_and_of_a_deletion_say_all_that_is_known() -> None:
    key, now = ObjectKey("example.com", "widgets", "ns", "w"), Instant(5)
    assert gap("cluster", key, "why", now) == Record(
        source="cluster",
        position=LIST,
        op=Op.GAP,
        group="example.com",
        resource="widgets",
        namespace="ns",
        name="w",
        observed_at=now,
        time_quality=TimeQuality.EXACT,
        losses=(Loss.GAP,),
        message="why",
    )
    last = Record(
        source="cluster",
        position=WATCH,
        op=Op.MODIFIED,
        version="v1",
        name="w",
        namespace="ns",
        uid="u",
        resource_version="9",
        actor=Actor(user="alice"),
        verb="update",
        object={"spec": {}},
    )
    assert known.deletion(key, last, LIST, now) == replace(
        last,
        op=Op.DELETED,
        group="example.com",
        resource="widgets",
        position=LIST,
        resource_version="",
        observed_at=now,
        time_quality=TimeQuality.EXACT,
        losses=(Loss.NO_ACTOR, Loss.NO_RV, Loss.SYNTHETIC_DELETE),
        actor=None,
        verb="",
    )
