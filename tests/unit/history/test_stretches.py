"""Stretches that are missing in an audit log, by what later lines tell of them."""

import pytest

from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, PODS, audit, audit_records, tree


def made(second, **metadata):
    return {"creationTimestamp": f"2026-01-01T00:00:{second:02d}Z", **metadata}


def claim(name, rv, second=1):
    return tree(CLAIMS, name, rv=rv, metadata=made(second), spec={})


def pod(name, rv, second=1, *, node="", ends=""):
    ending = {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 10} if ends else {}
    spec = {"nodeName": node} if node else {}
    return tree(PODS, name, rv=rv, metadata=made(second, **ending), spec=spec)


BEGUN = [
    audit("create", claim("c1", 10), second=1),
    audit("create", pod("p1", 11), type_=PODS, second=2),
]
LAST = audit("create", claim("last", 90), second=30)

UPON_UNSEEN = audit("update", claim("c1", 40), request=claim("c1", 35), name="c1", second=20)
FIRST_SEEN = audit("update", claim("c2", 41, 12), request=claim("c2", 33), name="c2", second=21)
POD_FIRST_SEEN = audit("patch", pod("p2", 42, 12), type_=PODS, name="p2", second=22)
BOUND_UNSEEN = audit("patch", pod("p1", 43, node="n"), type_=PODS, name="p1", second=23)
ENDING_UNSEEN = audit(
    "patch", pod("p1", 43, ends="2026-01-01T00:00:30Z"), type_=PODS, name="p1", second=23
)


def stretches(folder, *lines):
    """Before which records a gap of everything stands."""
    records = audit_records(folder, *BEGUN, *lines, LAST)
    places = [number for number, each in enumerate(records) if is_of_everything(each)]
    return [records[number + 1].name for number in places]


def is_of_everything(record):
    return record.op is Op.GAP and not record.resource


@pytest.mark.parametrize(
    "lines",
    [
        (UPON_UNSEEN, FIRST_SEEN),
        (UPON_UNSEEN, POD_FIRST_SEEN),
        (FIRST_SEEN, POD_FIRST_SEEN),
        (UPON_UNSEEN, BOUND_UNSEEN),
        (UPON_UNSEEN, ENDING_UNSEEN),
    ],
)
def test_writes_of_two_objects_between_the_same_versions_are_a_missing_stretch(lines, tmp_path):
    assert len(stretches(tmp_path, *lines)) == 1


@pytest.mark.parametrize(
    "line", [UPON_UNSEEN, FIRST_SEEN, POD_FIRST_SEEN, BOUND_UNSEEN, ENDING_UNSEEN]
)
def test_one_write_that_is_missing_is_no_stretch(line, tmp_path):
    assert stretches(tmp_path, line) == []


def test_writes_that_are_missing_at_different_places_are_no_stretch(tmp_path):
    between = audit("create", claim("between", 37), second=19)
    assert stretches(tmp_path, between, UPON_UNSEEN, BOUND_UNSEEN) == ["between"]
    later = audit("update", claim("c2", 60), request=claim("c2", 55), name="c2", second=25)
    known = audit("create", claim("c2", 20), second=3)
    assert stretches(tmp_path, known, audit("create", claim("x", 38), second=18), later) == []


def test_binding_and_deletion_that_are_recorded_are_not_missed(tmp_path):
    binding = audit(
        "create",
        {"kind": "Status", "status": "Success"},
        type_=PODS,
        name="p1",
        subresource="binding",
        request={"kind": "Binding", "target": {"name": "n"}},
        second=18,
    )
    assert stretches(tmp_path, binding, UPON_UNSEEN, BOUND_UNSEEN) == []
    ending = pod("p1", 39, ends="2026-01-01T00:00:30Z")
    deletion = audit("delete", ending, type_=PODS, name="p1", second=18)
    assert stretches(tmp_path, deletion, UPON_UNSEEN, ENDING_UNSEEN) == []


def test_objects_from_before_the_log_are_no_sign_of_a_missing_stretch(tmp_path):
    old = audit("update", claim("old", 41, 0), request=claim("old", 5), name="old", second=21)
    older = audit("patch", pod("older", 42, 0), type_=PODS, name="older", second=22)
    assert stretches(tmp_path, old, older) == []


def test_gap_stands_where_the_stretch_is(tmp_path):
    assert stretches(tmp_path, UPON_UNSEEN, FIRST_SEEN) == ["c1"]
    assert stretches(tmp_path, UPON_UNSEEN, POD_FIRST_SEEN) == ["c1"]


def namespace(name, rv):
    return tree(NAMESPACES, name, rv=rv, metadata=made(1))


def test_log_that_has_not_all_namespaces_made_in_it_began_late(tmp_path):
    other = audit("create", namespace("other", 9), type_=NAMESPACES, second=1)
    records = audit_records(tmp_path, other, *BEGUN)
    assert {(each.op, each.name, each.losses) for each in records[:2]} == {
        (Op.BASELINE, "default", (Loss.NO_UID, Loss.SYNTHETIC_CREATE)),
        (Op.GAP, "", (Loss.NO_BASELINE,)),
    }


@pytest.mark.parametrize("names", [(), ("default",), ("default", "other")])
def test_log_without_namespaces_or_with_all_does_not_tell_when_it_began(names, tmp_path):
    begun = [
        audit("create", namespace(name, number + 3), type_=NAMESPACES, second=1, auditID=name)
        for number, name in enumerate(names)
    ]
    assert not [each for each in audit_records(tmp_path, *begun, *BEGUN) if each.losses]
