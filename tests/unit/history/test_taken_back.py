"""A write that leaves a claim as the last line shows it takes back one that no line shows."""

import pytest

from app.domain.log.records import Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, audit, audit_records, tree

SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
RESERVED = {"reservedFor": [{"resource": "pods", "name": "x", "uid": "u"}]}
MANAGER = {"manager": "m", "operation": "Update", "apiVersion": "resource.k8s.io/v1"}


def shown(rv, status, managers=({},)):
    state = tree(CLAIMS, "x", rv=rv, spec=SPEC, status=status)
    state["metadata"]["managedFields"] = [{**MANAGER, **each} for each in managers]
    return state


def gaps(folder, before, after, *, verb="update"):
    space = tree(NAMESPACES, "default", rv=1)
    lines = [
        audit("create", space, type_=NAMESPACES, name="default", second=1),
        audit("create", before, type_=CLAIMS, name="x", second=3),
        audit(verb, after, type_=CLAIMS, name="x", subresource="status", second=6),
    ]
    records = audit_records(folder, *lines)
    return [each.name for each in records if each.op is Op.GAP]


def test_status_that_is_emptied_although_it_was_empty_shows_a_lost_write(tmp_path):
    assert gaps(tmp_path, shown(3, {}), shown(6, {})) == ["x"]


def test_renewed_times_of_managers_are_no_change(tmp_path):
    first, second = [{"time": "2026-01-01T00:00:01Z"}], [{"time": "2026-01-01T00:00:06Z"}]
    assert gaps(tmp_path, shown(3, {}, first), shown(6, {}, second)) == ["x"]


@pytest.mark.parametrize(
    ("after", "verb"),
    [
        (shown(6, RESERVED), "update"),
        # a manager came to own what was there: stored
        (shown(6, {}, [{}, {"subresource": "status"}]), "update"),
        # a policy leaves the managers out, which alone may have changed
        (shown(6, {}, ()), "update"),
        # an apply may store managers alone, which a policy leaves out
        (shown(6, {}), "patch"),
        # nothing was stored
        (shown(3, {}), "update"),
    ],
    ids=["changed", "managed", "unmanaged", "patched", "same version"],
)
def test_write_that_changes_something_or_nothing_at_all_shows_none(after, verb, tmp_path):
    assert gaps(tmp_path, shown(3, {}), after, verb=verb) == []
