"""JSON patch, merge patch, strategic merge patch."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.domain.values import patches
from app.domain.values.patches import PatchError


@dataclass
class Place:
    """A schema for the strategic merge: what the tests need of one."""

    fields: Mapping[str, "Place"] = field(default_factory=dict)
    merge_key: str = ""
    strategies: frozenset[str] = frozenset()
    item: "Place | None" = None

    @property
    def items(self) -> "Place":
        assert self.item is not None
        return self.item


_MERGE = frozenset({"merge"})
_PORTS = Place(strategies=_MERGE, merge_key="port", item=Place())
_CONTAINER = Place(
    fields={
        "env": Place(strategies=_MERGE, merge_key="name", item=Place()),
        "args": Place(),
        "ports": _PORTS,
    }
)
SCHEMA = Place(
    fields={
        "containers": Place(strategies=_MERGE, merge_key="name", item=_CONTAINER),
        "finalizers": Place(strategies=_MERGE),
        "taints": Place(),
        "labels": Place(),
        "strategy": Place(strategies=frozenset({"retainKeys"})),
        "whole": Place(strategies=frozenset({"replace"})),
    }
)


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("tree", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": 1}, [{"op": "remove", "path": "/a"}], {}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}],
         {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"~": 1}}, [{"op": "replace", "path": "/a~1b/~0", "value": 2}], {"a/b": {"~": 2}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
        ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({}, [{"op": "add", "path": "/a", "value": {}}, {"op": "add", "path": "/a/b", "value": 1}],
         {"a": {"b": 1}}),
    ],
)  # fmt: skip
def test_json_patch(tree: Any, operations: Any, expected: Any) -> None:
    before = copy.deepcopy(tree)
    assert patches.apply_operations(tree, operations) == expected
    assert tree == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/x"},
        {"op": "replace", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/l/3", "value": 1},
        {"op": "add", "path": "/l/01", "value": 1},
        {"op": "add", "path": "/l/a", "value": 1},
        {"op": "remove", "path": "/l/-"},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/x", "value": 1},
        {"op": "move", "from": "/x", "path": "/y"},
        {"op": "add", "path": "/y"},
        {"op": "add", "path": "y", "value": 1},
        {"op": "add", "value": 1},
        {"op": "frobnicate", "path": "/a"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": 5},
        [],
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused(operation: Any) -> None:
    with pytest.raises(PatchError):
        patches.apply_operations({"a": 1, "l": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("tree", "patch", "expected"),
    [
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1]}, {"a": [2, 3]}, {"a": [2, 3]}),
        ({"a": 1}, {"a": {"b": {"c": None, "d": 1}}}, {"a": {"b": {"d": 1}}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
    ],
)
def test_merge_patch(tree: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(tree)
    assert patches.apply_merge(tree, patch) == expected
    assert tree == before


@pytest.mark.parametrize(
    ("tree", "patch", "expected"),
    [
        # maps merge, null removes
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": None, "c": "3"}},
         {"labels": {"b": "2", "c": "3"}}),
        # atomic lists are replaced
        ({"taints": [1, 2]}, {"taints": [3]}, {"taints": [3]}),
        # keyed lists merge by key and append
        ({"containers": [{"name": "a", "image": "x"}]},
         {"containers": [{"name": "a", "image": "y"}, {"name": "b"}]},
         {"containers": [{"name": "a", "image": "y"}, {"name": "b"}]}),
        # new items come first, as a server puts them
        ({"containers": named("a")}, {"containers": named("b", "c")},
         {"containers": named("b", "c", "a")}),
        # nested keyed lists
        ({"containers": [{"name": "a", "env": [{"name": "E", "value": "1"}], "args": ["q"]}]},
         {"containers": [{"name": "a", "env": [{"name": "F", "value": "2"}], "args": ["r"]}]},
         {"containers": [{"name": "a", "args": ["r"],
                          "env": [{"name": "F", "value": "2"}, {"name": "E", "value": "1"}]}]}),
        # items are removed by a directive
        ({"containers": named("a", "b")}, {"containers": [{"name": "a", "$patch": "delete"}]},
         {"containers": named("b")}),
        # the whole list is replaced by a directive
        ({"containers": named("a", "b")}, {"containers": [{"name": "c"}, {"$patch": "replace"}]},
         {"containers": named("c")}),
        # an object is replaced or emptied by a directive
        ({"labels": {"a": "1"}}, {"labels": {"b": "2", "$patch": "replace"}},
         {"labels": {"b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}),
        ({"whole": {"a": 1}}, {"whole": {"b": 2}}, {"whole": {"b": 2}}),
        # sets are united
        ({"finalizers": ["x"]}, {"finalizers": ["y", "x", "y"]}, {"finalizers": ["y", "x"]}),
        # and shrunk by a directive
        ({"finalizers": ["x", "y"]}, {"$deleteFromPrimitiveList/finalizers": ["x"]},
         {"finalizers": ["y"]}),
        # only the retained keys survive
        ({"strategy": {"type": "Rolling", "rolling": {"n": 1}}},
         {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
         {"strategy": {"type": "Recreate"}}),
        # the order is given, also by names that the patch does not change
        ({"containers": named("a", "b", "c")},
         {"containers": [{"name": "c", "image": "i"}],
          "$setElementOrder/containers": named("c", "b", "a")},
         {"containers": [{"name": "c", "image": "i"}, {"name": "b"}, {"name": "a"}]}),
        # items that the order does not name keep their place before what followed them
        ({"containers": named("server", "a", "b")},
         {"$setElementOrder/containers": named("b", "a")},
         {"containers": named("server", "b", "a")}),
        ({"finalizers": ["x", "y"]},
         {"$setElementOrder/finalizers": ["y", "z", "x"], "finalizers": ["z"]},
         {"finalizers": ["y", "z", "x"]}),
        # what was not there comes without directives and nulls
        ({}, {"labels": {"a": None, "b": "1"}}, {"labels": {"b": "1"}}),
        ({}, {"containers": [{"name": "a", "image": None, "args": ["q"]}]},
         {"containers": [{"name": "a", "args": ["q"]}]}),
        # fields that the schema does not know merge as JSON
        ({"x": {"a": 1}}, {"x": {"b": [1]}}, {"x": {"a": 1, "b": [1]}}),
        ({"x": 1}, {"x": None}, {}),
    ],
)  # fmt: skip
def test_strategic_merge_patch(tree: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(tree)
    assert patches.apply_strategic(tree, patch, SCHEMA) == expected
    assert tree == before


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"image": "x"}]},
        {"containers": ["a"]},
        {"labels": {"$patch": "explode"}},
        {"containers": [{"name": "a", "$patch": "explode"}]},
        {"strategy": {"$retainKeys": ["type"], "rolling": {}}},
        {"$setElementOrder/containers": "a", "containers": []},
        {"$deleteFromPrimitiveList/finalizers": "a"},
    ],
)
def test_a_strategic_patch_with_a_bad_directive_is_refused(patch: Any) -> None:
    with pytest.raises(PatchError):
        patches.apply_strategic(
            {"containers": named("a"), "strategy": {}, "labels": {}}, patch, SCHEMA
        )


def test_objects_with_directives_where_nothing_was_are_left_out() -> None:
    patch = {"labels": {"$patch": "explode", "a": "b"}, "other": {"c": {"$patch": "delete"}}}
    assert patches.apply_strategic({}, patch, SCHEMA) == {"labels": {}, "other": {"c": {}}}


def test_copies_that_double_the_object_are_refused() -> None:
    tree = {"a": {"x": "y" * 1000}}
    double = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(40)]
    with pytest.raises(PatchError, match="copies more than"):
        patches.apply_operations(tree, double)


def test_copies_that_deepen_the_object_are_refused() -> None:
    deepen = []
    path = "/a"
    for _ in range(13):
        deepen.append({"op": "copy", "from": "/a", "path": f"{path}/b"})
        path += path.replace("/a", "/b")
    with pytest.raises(PatchError, match="deep"):
        patches.apply_operations({"a": {}}, deepen)
