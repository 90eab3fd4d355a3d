"""Answers of a server or of a store of logs that are a page of a longer one.

What does not follow is a loss, and an object that a page does not show is not gone.
"""

import json

import pytest

from app.adapters.history.formats.list_pages import NEXT_PAGE
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Op
from tests.unit.history.formats import courses
from tests.unit.history.worlds import PODS, tree

LATER = [tree(PODS, name, rv=20) for name in ("a", "b")]


def listed(items, *, version, token="", more=None):
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    metadata |= {} if more is None else {"remainingItemCount": more}
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items})


def read(*paths):
    with open_history([*paths], ReadOptions()) as history:
        records = list(history.records())
        gone = {record.name for record in records if record.op is Op.DELETED}
        losses = [f"{place}: {problem}" for place, problem in history.refused_places]
        return {record.name for record in records}, gone, losses


def written(tmp_path, name, *texts):
    path = tmp_path / name
    path.write_text("\n".join(texts))
    return path


@pytest.mark.parametrize("before", ["", "the pods:"])
def test_list_without_its_next_page_is_a_loss(tmp_path, before):
    page = listed(LATER, version=20, token="more")
    names, _, losses = read(written(tmp_path, "pods.json", *filter(None, [before]), page))
    assert (names, losses) == (
        {"a", "b"},
        [f"pods.json:{1 + bool(before)}: {NEXT_PAGE}"],
    )


def test_pages_that_follow_each_other_are_whole(tmp_path):
    pages = [listed(LATER[:1], version=20, token="more"), listed(LATER[1:], version=20)]
    assert read(written(tmp_path, "pods.json", *pages)) == ({"a", "b"}, set(), [])


@pytest.mark.parametrize(("token", "wanted"), [("", {"c"}), ("more", set())])
def test_object_that_a_page_does_not_show_is_not_gone(tmp_path, token, wanted):
    first = [tree(PODS, name, rv=10) for name in ("a", "b", "c")]
    old = written(tmp_path, "old.json", listed(first, version=10))
    new = written(tmp_path, "new.json", listed(LATER, version=20, token=token))
    names, gone, _ = read(old, new)
    assert (names, gone) == ({"a", "b", "c"}, wanted)


FIRST = [tree(PODS, name, rv=10) for name in ("a", "b", "c", "d")]
"""The pods of a list that was made before."""


def in_pages(tmp_path, *pages):
    """The list of `FIRST` in a file, and a file for each page of a later one: items and count."""
    paths = [written(tmp_path, "0.json", listed(FIRST, version=10))]
    for number, (items, more) in enumerate(pages, start=1):
        token = "more" if more != 0 else ""
        page = listed(items, version=20, token=token, more=more or None)
        paths.append(written(tmp_path, f"{number}.json", page))
    return paths


def page(*names, more):
    """The items of a page, and the number of those that follow; None where nobody counted them."""
    return [tree(PODS, name, rv=20) for name in names], more


A, B, C = page("a", more=2), page("b", more=1), page("c", more=0)


@pytest.mark.parametrize("backwards", [False, True])
def test_pages_in_separate_files_are_one_list(tmp_path, backwards):
    first, *pages = in_pages(tmp_path, A, B, C)
    names, gone, losses = read(first, *(reversed(pages) if backwards else pages))
    assert (names, gone, losses) == ({"a", "b", "c", "d"}, {"d"}, [])


@pytest.mark.parametrize(
    ("pages", "lost"),
    [
        ((A, C), ["1.json"]),
        ((A, B), ["2.json"]),
        ((page("a", "b", more=None), C), ["1.json"]),
        ((page("a", more=2), page("b", "c", more=None)), ["1.json", "2.json"]),
    ],
)
def test_object_that_other_pages_may_show_is_not_gone(tmp_path, pages, lost):
    names, gone, losses = read(*in_pages(tmp_path, *pages))
    assert (names, gone) == ({"a", "b", "c", "d"}, set())
    assert losses == [f"{name}:1: {NEXT_PAGE}" for name in lost]


def test_object_that_a_page_before_the_first_may_show_is_not_gone(tmp_path):
    names, gone, losses = read(*in_pages(tmp_path, B, C))
    assert (names, gone, losses) == ({"a", "b", "c", "d"}, {"d"}, [])


def test_list_of_another_version_is_no_next_page(tmp_path):
    first = written(tmp_path, "1.json", listed(LATER, version=20, token="more", more=1))
    other = written(tmp_path, "2.json", listed([tree(PODS, "c", rv=30)], version=30))
    assert read(first, other)[2] == [f"1.json:1: {NEXT_PAGE}"]


def with_fields(tmp_path, make, **fields):
    path = make(tmp_path)
    answer = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {name: answer[name] for name in answer.keys() - fields}))
    return path


@pytest.mark.parametrize("total", [7000, {"value": 7000, "relation": "eq"}])
def test_search_with_more_hits_than_the_file_has_is_a_loss(tmp_path, total):
    whole = courses.elasticsearch(tmp_path)
    answer = json.loads(whole.read_text())
    count = len(answer["hits"]["hits"])
    assert read(whole)[2] == []
    hits = answer["hits"] | {"total": total}
    part = with_fields(tmp_path, courses.elasticsearch, hits=hits)
    assert read(part)[2] == [f"{part.name}: an answer of a search with {count} of 7000 hits"]


@pytest.mark.parametrize(("token", "wanted"), [("f/1", 1), ("", 0), (None, 0)])
def test_page_of_a_log_that_names_the_next_one_is_a_loss(tmp_path, token, wanted):
    path = with_fields(tmp_path, courses.cloudwatch, nextToken=token)
    losses = read(path)[2]
    assert (
        losses
        == [f"{path.name}: an answer that goes on in another page, which does not follow"][:wanted]
    )
