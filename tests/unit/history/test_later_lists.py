"""Lists of a cluster that was listed before: what of it they show to be gone."""

import json

import pytest

from app.domain.log.records import Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, PODS, read_records, tree

NODES = ("", "v1", "nodes", "Node")


def claim(name, rv, namespace="a"):
    return tree(CLAIMS, name, namespace, rv=rv)


def pod(name, rv, namespace="a"):
    return tree(PODS, name, namespace, rv=rv)


def node(name, rv):
    return tree(NODES, name, "", rv=rv)


def ends(folder, *files):
    """The deletions and gaps that follow from files, each of which is some lists."""
    paths = []
    for number, lists in enumerate(files):
        path = folder / f"{number}.json"
        listed = [{"apiVersion": "v1", "kind": "List", "items": items} for items in lists]
        path.write_text("\n".join(map(json.dumps, listed)))
        paths.append(path)
    return {
        (each.op.value, each.resource, each.namespace, each.name)
        for each in read_records(*paths)
        if each.op in (Op.DELETED, Op.GAP)
    }


FIRST = [pod("one", 3), claim("one", 4)]
GONE = ("DELETED", "pods", "a", "one")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # The claim is listed again, so the list has all pods of the namespace, too.
        ([FIRST], [[pod("two", 5), claim("one", 4)]], {GONE}),
        # A node is.
        ([[pod("one", 3), node("n", 4)]], [[pod("two", 5), node("n", 4)]], {GONE}),
        # A pod of another namespace is: that is a list of all namespaces.
        ([[pod("one", 3), pod("x", 4, "b")]], [[pod("two", 5), pod("x", 4, "b")]], {GONE}),
        # Such a list shows none of the namespace any more.
        (
            [[pod("one", 3), pod("x", 4, "b")]],
            [[pod("x", 4, "b"), pod("y", 5, "c")]],
            {GONE},
        ),
        ([[pod("one", 3), pod("x", 4, "b")]], [[pod("x", 4, "b"), claim("y", 5, "c")]], {GONE}),
        # It is one of the namespace b alone, or all others are empty.
        (
            [[pod("one", 3), pod("x", 4, "b")]],
            [[pod("x", 4, "b"), pod("y", 5, "b")]],
            {("GAP", "pods", "a", "")},
        ),
        ([[pod("one", 3)], [pod("x", 4, "b")]], [[pod("x", 4, "b"), pod("y", 5, "b")]], set()),
        # It is a list of claims alone, or there are no pods any more.
        ([FIRST], [[claim("one", 4)]], {("GAP", "pods", "a", "")}),
        ([[pod("one", 3)], [claim("one", 4)]], [[claim("one", 4)]], set()),
        ([FIRST], [[claim("two", 5)]], {("GAP", "resourceclaims", "a", "")}),
        # Another list of the same file is, which may have been selected otherwise.
        ([FIRST], [[pod("two", 5)], [claim("one", 4)]], {("GAP", "pods", "a", "")}),
        # None is.
        ([[pod("one", 3)]], [[pod("two", 5)]], {("GAP", "pods", "a", "")}),
        ([[pod("one", 3)]], [[pod("x", 5, "b")]], set()),
        ([[node("n", 3)]], [[node("m", 5)]], {("GAP", "nodes", "", "")}),
        # The second pod was there when the first list was made: it is of another part.
        ([FIRST], [[pod("two", 2), claim("one", 4)]], set()),
        ([[pod("one", 3)]], [[pod("two", 2)], [claim("one", 4)]], set()),
    ],
    ids=[
        "beside a claim",
        "beside a node",
        "in all namespaces",
        "no more of a namespace",
        "no more of a namespace beside another kind",
        "of another namespace",
        "of another namespace again",
        "of another kind",
        "of another kind again",
        "of others of another kind",
        "in two lists",
        "no other",
        "of two namespaces",
        "of no namespace",
        "of another part",
        "of another part in two lists",
    ],
)
def test_later_list_shows_what_is_gone(first, second, expected, tmp_path):
    assert ends(tmp_path, first, second) == expected


def test_objects_after_a_gap_are_compared_with_the_list_before_them(tmp_path):
    files = [[[pod("one", 3)]], [[pod("two", 5)]], [[pod("two", 5), pod("three", 8)]]]
    assert ends(tmp_path, *files) == {("GAP", "pods", "a", "")}


def test_objects_that_no_list_shows_any_more_may_be_gone_since_the_first_of_these(tmp_path):
    files = [[FIRST], [[claim("one", 4)]], [[claim("one", 4), claim("two", 5)]]]
    assert ends(tmp_path, *files) == {("GAP", "pods", "a", "")}


def test_objects_that_are_shown_again_were_not_gone(tmp_path):
    files = [[FIRST], [[claim("one", 4)]], [[pod("one", 6), claim("one", 4)]], [[claim("one", 7)]]]
    assert ends(tmp_path, *files) == {("GAP", "pods", "a", "")}


def test_replaced_namespace_objects_are_gone(tmp_path):
    first = [tree(NAMESPACES, "a", "", rv=2), claim("one", 3)]
    second = [tree(NAMESPACES, "b", "", rv=9), claim("one", 3)]
    assert ends(tmp_path, [first], [second]) == {("DELETED", "namespaces", "", "a")}
