"""A write of a subresource at level Request changes what the API takes of it, and nothing else."""

import pytest

from app.bootstrap.rules import rules_for
from app.domain.log.records import Op
from app.domain.objects.profile import Profile
from tests.unit.history.worlds import CLAIMS, PODS, audit, audit_records, tree

NODES = ("", "v1", "nodes", "Node")
THINGS = ("example.com", "v1", "things", "Thing")

SENT = {
    "metadata": {"labels": {"a": "sent"}, "finalizers": ["example.com/sent"]},
    "spec": {"paused": False},
    "status": {"phase": "Running"},
}


def patched(folder, kind, subresource, body, *later, verb="patch"):
    """The object that a patch or update without its answer leaves; `later` lines come after it."""
    first = tree(
        kind,
        "x",
        rv=3,
        metadata={"labels": {"a": "kept"}},
        spec={"paused": True},
        status={"old": 1},
    )
    write = audit(
        verb,
        type_=kind,
        name="x",
        subresource=subresource,
        request=body,
        second=2,
        level="Request",
        uri="/x?fieldManager=m",
    )
    created = audit("create", first, type_=kind, name="x", second=1)
    records = audit_records(
        folder, created, write, *later, rules=rules_for(Profile(version="1.36"))
    )
    return [one.object for one in records if one.op in (Op.ADDED, Op.MODIFIED)][-1]


@pytest.mark.parametrize(
    ("kind", "labels", "finalizers"),
    [
        (PODS, "sent", ["example.com/sent"]),
        (NODES, "sent", ["example.com/sent"]),
        (CLAIMS, "kept", None),
        (THINGS, "kept", None),
    ],
    ids=["pod", "node", "claim", "custom"],
)
def test_patch_of_the_status_changes_what_its_kind_takes(kind, labels, finalizers, tmp_path):
    after = patched(tmp_path, kind, "status", SENT)
    assert after["metadata"]["labels"] == {"a": labels}
    assert after["metadata"].get("finalizers") == finalizers
    assert after["spec"] == {"paused": True}
    assert after["status"]["phase"] == "Running"


@pytest.mark.parametrize("kind", [CLAIMS, THINGS], ids=["claim", "custom"])
def test_patch_of_the_status_may_remove_it(kind, tmp_path):
    after = patched(tmp_path, kind, "status", {"status": None})
    assert "status" not in after
    assert after["metadata"]["labels"] == {"a": "kept"}


def test_patch_of_the_object_changes_all_that_it_names(tmp_path):
    after = patched(tmp_path, CLAIMS, "", {"metadata": SENT["metadata"]})
    assert after["metadata"]["labels"] == {"a": "sent"}


def whole(kind):
    """An object as a client sends it, with changes in all parts."""
    return {**tree(kind, "x", rv=3), **SENT, "metadata": {"name": "x", **SENT["metadata"]}}


@pytest.mark.parametrize(
    ("kind", "labels"),
    [(PODS, "sent"), (CLAIMS, "kept"), (THINGS, "kept")],
    ids=["pod", "claim", "custom"],
)
def test_update_of_the_status_changes_what_its_kind_takes(kind, labels, tmp_path):
    after = patched(tmp_path, kind, "status", whole(kind), verb="update")
    assert after["metadata"]["labels"] == {"a": labels}
    assert after["spec"] == {"paused": True}
    assert after["status"] == {"phase": "Running"}


def test_update_of_the_object_leaves_its_status(tmp_path):
    after = patched(tmp_path, CLAIMS, "", whole(CLAIMS), verb="update")
    assert after["metadata"]["labels"] == {"a": "sent"}
    assert after["spec"] == {"paused": False}
    assert after["status"] == {"old": 1}


def test_what_comes_after_an_update_begins_with_what_it_left(tmp_path):
    """A later patch changes the object as it is, not as a request sent it."""
    patch = audit(
        "patch",
        type_=CLAIMS,
        name="x",
        request={"metadata": {"labels": {"b": "late"}}},
        second=3,
        level="Request",
        uri="/x?fieldManager=m",
    )
    after = patched(tmp_path, CLAIMS, "status", whole(CLAIMS), patch, verb="update")
    assert after["metadata"]["labels"] == {"a": "kept", "b": "late"}
    assert after["spec"] == {"paused": True}
    assert after["status"] == {"phase": "Running"}
