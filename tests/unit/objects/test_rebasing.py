"""What only the recording changed comes from it, what clients changed stays theirs."""

import pytest

from app.adapters import schemas
from app.domain.objects import registry
from app.domain.objects.schema import structural
from app.domain.objects.write.replaying.rebasing import is_same, rebase

SCHEMAS = schemas.load("1.37")
POD = structural.storage_node(SCHEMAS, registry.find("", "pods"))

READY, STARTED = {"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False"}
OURS = {"type": "mine.example.com", "status": "True"}


def of(**parts):
    return {"metadata": {"name": "p"}, **parts}


def meta(**fields):
    return {"metadata": {"name": "p", **fields}}


ROWS = {
    # before, after, present: result, conflicts
    "recorded alone": (of(a=1), of(a=2), of(a=1), of(a=2), ()),
    "client alone": (of(a=1), of(a=1), of(a=2), of(a=2), ()),
    "both the same": (of(a=1), of(a=2), of(a=2), of(a=2), ()),
    "both": (of(a=1), of(a=2), of(a=3), of(a=3), ("a",)),
    "recorded took away": (of(a=1), of(), of(a=1), of(), ()),
    "client took away": (of(a=1), of(a=1), of(), of(), ()),
    "client took away what changed": (of(a=1), of(a=2), of(), of(), ("a",)),
    "recorded took away what changed": (of(a=1), of(), of(a=3), of(a=3), ("a",)),
    "labels": (
        meta(labels={"a": "1"}),
        meta(labels={"a": "1", "b": "2"}),
        meta(labels={"a": "1", "c": "3"}),
        meta(labels={"a": "1", "b": "2", "c": "3"}),
        (),
    ),
    "conditions by type": (
        of(status={"conditions": [NOT_READY]}),
        of(status={"conditions": [READY, STARTED]}),
        of(status={"conditions": [NOT_READY, OURS]}),
        of(status={"conditions": [READY, STARTED, OURS]}),
        (),
    ),
    "finalizers as a set": (
        meta(finalizers=["a", "b"]),
        meta(finalizers=["b"]),
        meta(finalizers=["a", "b", "mine"]),
        meta(finalizers=["b", "mine"]),
        (),
    ),
    "list that is one value": (
        of(spec={"containers": [{"name": "c", "command": ["a"]}]}),
        of(spec={"containers": [{"name": "c", "command": ["a", "b"]}]}),
        of(spec={"containers": [{"name": "c", "command": ["x"]}]}),
        of(spec={"containers": [{"name": "c", "command": ["x"]}]}),
        ("spec.containers[c].command",),
    ),
    "node": (
        of(spec={}),
        of(spec={"nodeName": "n1"}),
        of(spec={"nodeName": "n2"}),
        of(spec={"nodeName": "n2"}),
        ("spec.nodeName",),
    ),
    "generation counts both": (
        meta(generation=1),
        meta(generation=2),
        meta(generation=3),
        meta(generation=4),
        (),
    ),
    "managers of both": (
        meta(managedFields=[{"manager": "a"}]),
        meta(managedFields=[{"manager": "a"}, {"manager": "b"}]),
        meta(managedFields=[{"manager": "a"}, {"manager": "c"}]),
        meta(managedFields=[{"manager": "a"}, {"manager": "b"}, {"manager": "c"}]),
        (),
    ),
    "created here and there": (of(), of(a=1, b=1), of(a=1, b=2), of(a=1, b=2), ("b",)),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_three_states_become_one(row):
    before, after, present, result, conflicts = row
    rebased = rebase(POD, before, after, present)
    assert rebased.tree == result
    assert rebased.conflicts == conflicts


def test_list_with_a_repeated_key_is_one_value():
    twice = of(status={"conditions": [READY, NOT_READY]})
    other = of(status={"conditions": [READY, STARTED]})
    rebased = rebase(POD, of(), twice, other)
    assert rebased.tree == other
    assert rebased.conflicts == ("status.conditions",)


def test_states_that_differ_in_their_version_alone_are_the_same():
    assert is_same(meta(resourceVersion="1"), meta(resourceVersion="2"))
    assert is_same(meta(resourceVersion="1"), meta())
    assert not is_same(meta(uid="1"), meta(uid="2"))
    assert not is_same(of(a=1), of(a=2))
    assert not is_same(of(a=1), of())
