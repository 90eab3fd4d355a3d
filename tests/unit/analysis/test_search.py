"""The search for objects by a part of their names, against all names sorted by likeness."""

import random

import pytest

from app.analysis import search
from app.analysis.chronicle import Chronicle
from app.domain.values import timestamps
from projections.objects import ObjectsProjection
from tests.cluster import Cluster
from tests.unit.projections.log_of import LogOf


def crowd(names: list[str]) -> ObjectsProjection:
    view = ObjectsProjection()
    log = LogOf(view)
    for name in names:
        log.put("pod", name)
    return view


def likeness(place: str, wanted: str) -> tuple[bool, bool, int]:
    name = place.partition("/")[2]
    return name != wanted, not name.startswith(wanted), len(name)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_likest_names_are_first_however_many_contain_the_query(seed: int) -> None:
    drawn = random.Random(seed)
    names = [f"ns/a{drawn.randrange(9)}-web-{number:04}" for number in range(900)]
    names += ["ns/web-1", "ns/web-22", "z/web"]
    drawn.shuffle(names)
    answer = search.find(crowd(names), "WEB", lambda key: key.name != "web-22")
    assert [hit.name for hit in answer.items[:2]] == ["web", "web-1"]
    expected = sorted(
        (likeness(name, "web") for name in names if not name.endswith("web-22")),
    )[: search.HITS_MAX]
    assert [likeness(f"{hit.namespace}/{hit.name}", "web") for hit in answer.items] == expected
    assert answer.more


def test_all_names_are_told_where_they_fit() -> None:
    answer = search.find(crowd(["ns/web", "ns/job"]), "w", lambda key: True)
    assert [hit.name for hit in answer.items] == ["web"]
    assert not answer.more


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("ns/we", ["ns/web", "ns/web-2"]),
        ("pod/WE", ["ns/web", "z/web", "ns/web-2", "pod/old-web"]),
        ("pods/web-", ["ns/web-2"]),
        ("z/", ["z/web"]),
        ("claim/web", []),
        ("s/web", []),
    ],
)
def test_word_before_the_name_is_a_kind_or_a_namespace(query: str, names: list[str]) -> None:
    view = crowd(["ns/web", "ns/web-2", "z/web", "pod/old-web"])
    answer = search.find(view, query, lambda key: True)
    assert [f"{hit.namespace}/{hit.name}" for hit in answer.items] == names


def test_deleted_objects_are_found_with_who_deleted_them_and_when(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(namespaces=("default", "other"))
    for name in ("web", "web-2", "back", "stays-web"):
        cluster.pod(name)
    cluster.pod("web", namespace="other")
    cluster.settle()
    for name in ("web-2", "web", "back"):
        cluster.kill(name)
        cluster.settle().wait(1)
    cluster.pod("back")
    cluster.settle()
    chronicle, view = Chronicle(), ObjectsProjection()
    chronicle.fold(cluster.line.events)
    for event in cluster.line.events:
        view.fold(event)
    gone = {event.key.name: event for event in cluster.line.events if event.type == "ObjectDeleted"}

    def found(query: str) -> list[str]:
        return [hit.name for hit in search.deleted(chronicle, view, query, lambda key: True)]

    assert found("web") == found("pod/WEB") == found("default/web") == ["web", "web-2"]
    assert found("back") == found("other/web") == found("claim/web") == found("") == []
    (hit,) = search.deleted(chronicle, view, "web-2", lambda key: True)
    event = gone["web-2"]
    assert (hit.revision, hit.by) == (event.revision, event.stamp.actor.user)
    assert hit.time == timestamps.micro_text(event.stamp.time)
    assert search.deleted(chronicle, view, "web", lambda key: key.name != "web") == (hit,)
    monkeypatch.setattr(search, "DELETIONS_MAX", 2)
    assert found("web") == ["web"]


def test_events_come_after_the_objects_that_they_are_about() -> None:
    view = ObjectsProjection()
    log = LogOf(view)
    for kind, name in (("event", "ns/web"), ("event", "ns/a.1"), ("pod", "ns/my-web-of-old")):
        log.put(kind, name)
    answer = search.find(view, "web", lambda key: True)
    assert [hit.resource for hit in answer.items] == ["pods", "events"]
    assert [hit.name for hit in answer.objects] == ["my-web-of-old"]
    assert [hit.name for hit in answer.events] == ["web"]
