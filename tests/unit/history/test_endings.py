"""Ends that an audit log does not have: what later lines prove, and what they do not prove."""

import pytest

from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import CLAIMS, NAMESPACES, PODS, audit, audit_records, tree

FINALIZERS = ["resource.kubernetes.io/delete-protection"]
LATER = "2026-01-01T00:00:30Z"


def ending(grace=5, **metadata):
    return {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": grace, **metadata}


def pod(rv, phase="Running", **metadata):
    return tree(PODS, "p1", rv=rv, metadata=metadata, status={"phase": phase})


def of_pod(verb, response, second, **options):
    return audit(verb, response, type_=PODS, name="p1", second=second, **options)


def claim(rv, **metadata):
    return tree(CLAIMS, "c1", rv=rv, metadata=metadata, spec={}, status={})


def of_claim(verb, response, second, **options):
    return audit(verb, response, name="c1", second=second, **options)


def not_found(verb, second, name="p1", message='pods "p1" not found', **options):
    status = {"metadata": {}, "status": "Failure", "reason": "NotFound", "message": message}
    answer = {"kind": "Status", "apiVersion": "v1", **status, "code": 404}
    lines = audit(verb, answer, type_=PODS, name=name, second=second, code=404, **options)
    return {**lines, "responseStatus": {**status, "code": 404}}


def namespace(rv, remaining="", **metadata):
    condition = {"type": "NamespaceContentRemaining", "status": remaining}
    status = {"conditions": [condition]} if remaining else {}
    return tree(NAMESPACES, "default", rv=rv, metadata=metadata, status=status)


def of_namespace(verb, response, second, **options):
    return audit(verb, response, type_=NAMESPACES, name="default", second=second, **options)


CREATED = of_pod("create", pod(10, "Pending"), 1)
RUNNING = of_pod("patch", pod(11), 2, subresource="status")
FINISHED = of_pod("patch", pod(12, "Failed"), 3, subresource="status")
ENDING = of_pod("patch", pod(20, "Failed", **ending()), 9, subresource="status")
PROTECTED = of_claim("create", claim(10, finalizers=FINALIZERS), 1)
RELEASED = of_claim("update", claim(11, finalizers=FINALIZERS), 2, subresource="status")
DELETED = of_pod("delete", pod(21, "Failed", **ending(0)), 10)
MADE = of_namespace("create", namespace(9), 1)
EMPTY = of_namespace("delete", namespace(50, "False"), 20)
LAST = of_claim("create", tree(CLAIMS, "last", rv=90), 30)


def told(folder, *lines):
    """Operation and name of each record about an object that the log changes."""
    return [
        (each.op, each.name) for each in audit_records(folder, *lines) if each.op is not Op.CONTEXT
    ]


GAP = (Op.GAP, "p1")


@pytest.mark.parametrize(
    ("lines", "is_missed"),
    [
        ((CREATED, RUNNING, ENDING), True),
        ((CREATED, RUNNING, of_pod("delete", pod(15, **ending()), 8), ENDING), False),
        (
            (
                CREATED,
                RUNNING,
                of_pod("patch", pod(20, **ending(0)), 9, subresource="status"),
            ),
            False,
        ),
        (
            (
                CREATED,
                RUNNING,
                of_pod("patch", pod(20, **ending(0, finalizers=["x"])), 9, subresource="status"),
            ),
            True,
        ),
        ((CREATED, of_pod("update", pod(20, **ending()), 9)), False),
        ((CREATED, RUNNING, DELETED), True),
        ((CREATED, RUNNING, FINISHED, DELETED), False),
        ((CREATED, RUNNING, of_pod("delete", pod(21, **ending(0)), 10)), False),
    ],
    ids=[
        "a deletion nobody asked for",
        "a deletion",
        "a removal at once",
        "a removal that waits for a finalizer",
        "a log without subresources",
        "a pod that finished unseen",
        "a pod that finished",
        "a running pod that is removed",
    ],
)
def test_write_before_an_end_that_no_line_shows_is_a_gap_of_the_object(lines, is_missed, tmp_path):
    records = told(tmp_path, *lines, LAST)
    assert (GAP in records) is is_missed
    if is_missed:
        assert records[-3] == GAP


@pytest.mark.parametrize(
    ("lines", "is_missed"),
    [
        ((PROTECTED, RELEASED, of_claim("delete", claim(20), 9)), True),
        ((PROTECTED, RELEASED, of_claim("delete", claim(20, finalizers=FINALIZERS), 9)), False),
        ((PROTECTED, RELEASED, of_claim("update", claim(20), 9)), False),
    ],
    ids=["fewer finalizers", "the same finalizers", "an update"],
)
def test_deletion_that_shows_fewer_finalizers_is_a_gap_of_the_object(lines, is_missed, tmp_path):
    assert ((Op.GAP, "c1") in told(tmp_path, *lines)) is is_missed


@pytest.mark.parametrize(
    ("line", "is_proof"),
    [
        (not_found("patch", 9, subresource="status"), True),
        (not_found("delete", 9), True),
        (not_found("create", 9, subresource="binding"), True),
        (not_found("patch", 3), False),
        (not_found("patch", 9, message='pods "p2" not found'), False),
        (not_found("patch", 9, message='namespaces "default" not found'), False),
        (not_found("patch", 9, name="p2"), False),
    ],
    ids=["patch", "delete", "binding", "at once", "another name", "another kind", "of another"],
)
def test_object_that_is_not_found_has_ended(line, is_proof, tmp_path):
    records = told(tmp_path, CREATED, RUNNING, line, LAST)
    assert (records[-3:-1] == [GAP, (Op.DELETED, "p1")]) is is_proof
    assert (GAP in records) is is_proof


@pytest.mark.parametrize(
    "later",
    [
        of_pod("delete", pod(21, **ending(0)), 11),
        of_pod("patch", pod(21), 11, subresource="status"),
    ],
    ids=["its deletion is answered later", "it is written later"],
)
def test_object_that_is_recorded_later_has_not_ended(later, tmp_path):
    """The answer that it was not found is then of another time or place."""
    assert GAP not in told(tmp_path, CREATED, RUNNING, not_found("delete", 9), later, LAST)


def test_objects_left_in_a_namespace_that_says_it_is_empty_have_ended(tmp_path):
    ends = [(op, name) for name in ("c1", "p1") for op in (Op.GAP, Op.DELETED)]
    records = told(tmp_path, MADE, PROTECTED, CREATED, RUNNING, EMPTY)
    assert records[-5:] == [*ends, (Op.DELETED, "default")]
    released = of_claim("delete", claim(48, finalizers=FINALIZERS), 19)
    records = told(tmp_path, MADE, PROTECTED, CREATED, RUNNING, released, EMPTY)
    assert (Op.GAP, "c1") not in records


@pytest.mark.parametrize("remaining", ["", "True"])
def test_namespace_that_does_not_say_that_it_is_empty_proves_nothing(remaining, tmp_path):
    """A user may release it by force."""
    forced = of_namespace("delete", namespace(50, remaining), 20)
    assert GAP not in told(tmp_path, MADE, CREATED, RUNNING, forced)


def test_end_that_only_an_answer_tells_of_has_no_author(tmp_path):
    lines = (CREATED, RUNNING, not_found("delete", 9))
    gap, end = (each for each in audit_records(tmp_path, *lines) if each.losses)
    assert (gap.losses, gap.actor, gap.object) == ((Loss.GAP,), None, None)
    assert {Loss.SYNTHETIC_DELETE, Loss.NO_ACTOR} <= set(end.losses)
    assert end.object["status"]["phase"] == "Running"


FIRST, SECOND = "uid-c1", "uid-2"
ENDS = [(Op.BASELINE, SECOND), (Op.DELETED, SECOND)]
MADE_FIRST = (Op.ADDED, FIRST)


@pytest.mark.parametrize(
    ("version", "course"),
    [
        pytest.param(20, [MADE_FIRST, (Op.DELETED, FIRST), *ENDS], id="of the next one"),
        pytest.param(3, [*ENDS, MADE_FIRST], id="of the one before"),
        pytest.param("", [MADE_FIRST, (Op.CONTEXT, SECOND)], id="nothing tells of which"),
    ],
)
def test_deletion_of_another_object_of_the_name_ends_what_was_before_it(tmp_path, version, course):
    """The creation of the second one, and the end of the first before it, have no line."""
    second = tree(CLAIMS, "c1", uid=SECOND, rv=version, spec={}, status={})
    made = of_claim("create", claim(5), 1, code=201)
    records = audit_records(tmp_path, [made, of_claim("delete", second, 9)])
    assert [(record.op, record.uid) for record in records] == course


@pytest.mark.parametrize("again", [[], [of_claim("delete", claim(7), 10)]])
def test_deletion_that_is_answered_with_the_version_before_is_one(tmp_path, again):
    """As servers did that gave a deletion no version of its own."""
    lines = [
        of_claim("create", claim(5), 1, code=201),
        of_claim("update", claim(7), 2),
        of_claim("delete", claim(7), 9),
        *again,
    ]
    records = list(audit_records(tmp_path, lines))
    assert [record.op for record in records if record.op is not Op.CONTEXT] == [
        Op.ADDED,
        Op.MODIFIED,
        Op.DELETED,
    ]
    (end,) = [record for record in records if record.op is Op.DELETED]
    assert Loss.NO_RV in end.losses
    assert end.object["metadata"]["name"] == "c1"


SECOND_POD = [
    audit("create", tree(PODS, "p2", rv=30), type_=PODS, name="p2", second=11),
    audit(
        "patch",
        tree(PODS, "p2", rv=31, metadata=ending(), status={"phase": "Running"}),
        type_=PODS,
        name="p2",
        second=12,
        subresource="status",
    ),
]


@pytest.mark.parametrize(
    ("lines", "is_left_out"),
    [
        ((CREATED, RUNNING, ENDING, *SECOND_POD), True),
        ((CREATED, RUNNING, ENDING), False),
        ((CREATED, RUNNING, ENDING, *SECOND_POD, DELETED), False),
        ((CREATED, RUNNING, ENDING, *SECOND_POD, not_found("delete", 20)), False),
    ],
)
def test_log_without_any_deletion_leaves_them_out(tmp_path, lines, is_left_out):
    """Two objects show that they were deleted, and no line tells of a deletion."""
    last = audit_records(tmp_path, *lines)[-1]
    is_gap = (last.op, last.resource) == (Op.GAP, "") and Loss.NO_DELETES in last.losses
    assert is_gap is is_left_out
