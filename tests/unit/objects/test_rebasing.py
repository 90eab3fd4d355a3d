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


def pod_with(**parts):
    return {"metadata": {"name": "p"}, **parts}


def meta(**fields):
    return {"metadata": {"name": "p", **fields}}


ROWS = {
    # before, after, present: result, conflicts
    "recorded alone": (pod_with(a=1), pod_with(a=2), pod_with(a=1), pod_with(a=2), ()),
    "client alone": (pod_with(a=1), pod_with(a=1), pod_with(a=2), pod_with(a=2), ()),
    "both the same": (pod_with(a=1), pod_with(a=2), pod_with(a=2), pod_with(a=2), ()),
    "both": (pod_with(a=1), pod_with(a=2), pod_with(a=3), pod_with(a=3), ("a",)),
    "recorded took away": (pod_with(a=1), pod_with(), pod_with(a=1), pod_with(), ()),
    "client took away": (pod_with(a=1), pod_with(a=1), pod_with(), pod_with(), ()),
    "client took away what changed": (pod_with(a=1), pod_with(a=2), pod_with(), pod_with(), ("a",)),
    "recorded took away what changed": (
        pod_with(a=1),
        pod_with(),
        pod_with(a=3),
        pod_with(a=3),
        ("a",),
    ),
    "labels": (
        meta(labels={"a": "1"}),
        meta(labels={"a": "1", "b": "2"}),
        meta(labels={"a": "1", "c": "3"}),
        meta(labels={"a": "1", "b": "2", "c": "3"}),
        (),
    ),
    "conditions by type": (
        pod_with(status={"conditions": [NOT_READY]}),
        pod_with(status={"conditions": [READY, STARTED]}),
        pod_with(status={"conditions": [NOT_READY, OURS]}),
        pod_with(status={"conditions": [READY, STARTED, OURS]}),
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
        pod_with(spec={"containers": [{"name": "c", "command": ["a"]}]}),
        pod_with(spec={"containers": [{"name": "c", "command": ["a", "b"]}]}),
        pod_with(spec={"containers": [{"name": "c", "command": ["x"]}]}),
        pod_with(spec={"containers": [{"name": "c", "command": ["x"]}]}),
        ("spec.containers[c].command",),
    ),
    "node": (
        pod_with(spec={}),
        pod_with(spec={"nodeName": "n1"}),
        pod_with(spec={"nodeName": "n2"}),
        pod_with(spec={"nodeName": "n2"}),
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
    "created here and there": (
        pod_with(),
        pod_with(a=1, b=1),
        pod_with(a=1, b=2),
        pod_with(a=1, b=2),
        ("b",),
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_three_states_become_one(row):
    before, after, present, result, conflicts = row
    rebased = rebase(POD, before, after, present)
    assert rebased.tree == result
    assert rebased.conflicts == conflicts


def test_list_with_a_repeated_key_is_one_value():
    twice = pod_with(status={"conditions": [READY, NOT_READY]})
    other = pod_with(status={"conditions": [READY, STARTED]})
    rebased = rebase(POD, pod_with(), twice, other)
    assert rebased.tree == other
    assert rebased.conflicts == ("status.conditions",)


def test_states_that_differ_in_their_version_alone_are_the_same():
    assert is_same(meta(resourceVersion="1"), meta(resourceVersion="2"))
    assert is_same(meta(resourceVersion="1"), meta())
    assert not is_same(meta(uid="1"), meta(uid="2"))
    assert not is_same(pod_with(a=1), pod_with(a=2))
    assert not is_same(pod_with(a=1), pod_with())
