"""Stored kinds with values that nobody means: their rules read what a schema lets through."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Rejected
from app.domain.objects.profile import Profile
from app.domain.values import json_tree
from tests import draws
from tests.unit.objects.builders import cluster
from tests.unit.objects.stored_rules import RIGHT, right


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree, the root left out."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for step in tree if isinstance(tree, dict) else range(len(tree)):
            yield from places(tree[step], (*path, step))


IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
ODD = (None, 0, -1, 1.5, 2**70, True, "", "x", "-", [], [None], ["x"], [{}], {}, {"a": None})


@draws.BY_DAY
@pytest.mark.parametrize("kind", [*RIGHT, "Service", "ConfigMap", "Secret"])
def test_odd_value_at_any_place_is_taken_or_refused_in_words(kind):
    made = cluster()
    made.rules = rules_for(Profile())
    more = {
        "Service": {"spec": {"ports": [{"port": 80, "nodePort": 30_000}], "type": "NodePort"}},
        "ConfigMap": {"data": {"a": "b"}, "binaryData": {"c": "eA=="}, "immutable": True},
        "Secret": {"data": {"a": "eA=="}, "stringData": {"c": "d"}, "type": "Opaque"},
    }
    body = more.get(kind)
    metadata = {"name": "x", "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": kind, "metadata": metadata, **(body or {})}
    whole = tree if body else right(kind)
    again = {**whole, "metadata": made.create(json_tree.copy(whole))["metadata"]}
    for path in places({name: whole[name] for name in whole if name not in IDENTITY}):
        for value in ODD:
            for base, write in ((whole, made.create), (again, made.update)):
                odd = json_tree.copy(base)
                place = odd
                for step in path[:-1]:
                    place = place[step]
                place[path[-1]] = value
                with contextlib.suppress(Rejected):
                    write(odd, dry_run=True)
