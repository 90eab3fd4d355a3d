"""The search for objects by a part of their names, against all names sorted by likeness."""

import random

import pytest

from app.analysis import search
from projections.objects import ObjectsProjection
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
