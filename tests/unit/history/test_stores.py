"""Requests to several stores in one log, and what only one store can have said of an object."""

import pytest

from app.domain.log.records import Loss, Op
from tests.unit.history.worlds import CLAIMS, PODS, audit, audit_records, tree

ACCOUNT = "system:serviceaccount:default:worker"
ONE, TWO = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CONTROLLER = "system:serviceaccount:kube-system:node-controller"


def made(name, rv, second, **more):
    line = audit("create", tree(CLAIMS, name, rv=rv), name=name, second=second)
    return {**line, "auditID": f"made-{name}", **more}


def by(user, uid, name, rv, second):
    return made(name, rv, second, user={"username": user, "uid": uid})


def are_doubted(records):
    gaps = [record for record in records if record.op is Op.GAP and not record.resource]
    shown = [record for record in records if record.object is not None]
    marked = [Loss.CONTRADICTED in record.losses for record in shown]
    assert all(marked) == bool(gaps)
    return all(marked)


def test_several_versions_for_two_claims_each_are_of_two_stores(tmp_path):
    lines = [made("a", 10, 1), made("b", 10, 2), made("c", 11, 3), made("d", 11, 4)]
    assert are_doubted(audit_records(tmp_path, *lines))


def test_one_version_for_two_claims_is_the_mistake_of_a_line(tmp_path):
    lines = [made("a", 10, 1), made("b", 10, 2), made("c", 11, 3), made("d", 12, 4)]
    assert not are_doubted(audit_records(tmp_path, *lines))


def test_kinds_may_have_stores_of_their_own(tmp_path):
    pods = [
        audit("create", tree(PODS, f"p{rv}", rv=rv), type_=PODS, name=f"p{rv}", second=rv)
        for rv in (10, 11)
    ]
    assert not are_doubted(audit_records(tmp_path, made("a", 10, 1), made("b", 11, 2), *pods))


@pytest.mark.parametrize(
    ("user", "second", "is_of_two"),
    [
        (ACCOUNT, 40, True),
        (ACCOUNT, 12, False),  # a server may accept the old token for ten seconds
        (CONTROLLER, 12, True),  # its only process has the new token
        ("alice", 40, False),  # users with certificates have no uid of the cluster's
    ],
)
def test_account_has_one_uid_at_one_time(user, second, is_of_two, tmp_path):
    lines = [
        by(user, ONE, "a", 10, 1),
        by(user, TWO, "b", 11, 5),
        by(user, ONE, "c", 12, second),
    ]
    assert are_doubted(audit_records(tmp_path, *lines)) is is_of_two


def test_uids_of_a_file_of_tokens_are_not_those_of_an_account(tmp_path):
    lines = [by(ACCOUNT, uid, name, rv, rv) for uid, name, rv in (("u3", "a", 10), ("u5", "b", 20))]
    assert not are_doubted(audit_records(tmp_path, *lines, by(ACCOUNT, "u3", "c", 50, 50)))


def test_account_that_is_made_again_has_another_uid(tmp_path):
    lines = [
        by(CONTROLLER, ONE, "a", 10, 1),
        by(CONTROLLER, TWO, "b", 11, 5),
        by(CONTROLLER, TWO, "c", 12, 40),
    ]
    assert not are_doubted(audit_records(tmp_path, *lines))


@pytest.mark.parametrize("order", [1, -1])
def test_lines_again_with_other_times_are_one_request(order, tmp_path):
    target = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    pod = audit("create", tree(PODS, "p", rv=10), type_=PODS, name="p", second=1)
    how = {"type_": PODS, "name": "p", "uid": "uid-p", "subresource": "binding"}
    first = audit("create", {}, request=target, second=2, **how)
    again = {**first, "stageTimestamp": "2026-01-01T00:00:50.500000Z"}
    lines = [pod, *(first, again)[::order], made("last", 90, 55)]
    bound = [record for record in audit_records(tmp_path, *lines) if record.verb == "create"]
    (binding,) = [record for record in bound if record.subresource == "binding"]
    assert Loss.TIMES_CONTRADICT in binding.losses
    assert binding.observed_at < bound[-1].observed_at - 50 * 10**6


def test_store_whose_versions_begin_anew_leaves_everything_open(tmp_path):
    lines = [made("a", 100, 1), made("b", 110, 9), made("c", 20, 30)]
    records = audit_records(tmp_path, *lines)
    gap = next(n for n, record in enumerate(records) if record.op is Op.GAP)
    assert not records[gap].resource
    assert [record.name for record in records[gap + 1 :]] == ["c"]


def changed(created, second, **metadata):
    metadata = {"creationTimestamp": created, **metadata}
    body = tree(CLAIMS, "a", rv=10 + second, metadata=metadata)
    return audit("create" if second == 1 else "update", body, name="a", second=second)


def test_creation_time_is_set_once(tmp_path):
    first = "2026-01-01T00:00:01Z"
    lines = [changed(first, 1), changed(first, 2), changed("2025-12-31T23:20:01Z", 3)]
    records = audit_records(tmp_path, *lines)
    assert [Loss.CONTRADICTED in record.losses for record in records] == [False, False, True]


@pytest.mark.parametrize(
    ("ends", "is_odd"),
    [
        ("2026-01-01T00:00:33Z", False),
        ("2026-01-01T03:00:33Z", True),  # deleted hours after the answer
        ("2025-12-31T21:00:33Z", True),  # deleted hours before it was made
    ],
)
def test_deletion_is_between_creation_and_answer(ends, is_odd, tmp_path):
    ending = {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 30, "finalizers": ["x/y"]}
    created = "2026-01-01T00:00:01Z"
    records = audit_records(tmp_path, changed(created, 1), changed(created, 3, **ending))
    assert (Loss.TIMES_CONTRADICT in records[-1].losses) is is_odd


@pytest.mark.parametrize(
    ("asked", "answered", "is_doubted"),
    [
        ("07.100000", "07.300000", False),  # it took another time, after the first was answered
        ("07.000000", "07.500000", True),  # both times moved by two seconds: the line came again
        ("05.000000", "07.500000", True),  # the answer alone has another time
        ("05.400000", "05.600000", True),  # it was sent before the first was answered
    ],
)
def test_two_equal_patches_may_share_an_audit_id(asked, answered, is_doubted, tmp_path):
    """Clients may send the header: the second one, which changed nothing, is no copied line."""
    first = audit("patch", tree(CLAIMS, "a", rv=10), name="a", second=5, auditID="shared")
    times = {"requestReceivedTimestamp": asked, "stageTimestamp": answered}
    second = {**first, **{name: f"2026-01-01T00:00:{at}Z" for name, at in times.items()}}
    records = audit_records(tmp_path, made("a", 9, 1), first, second)
    assert any(Loss.TIMES_CONTRADICT in each.losses for each in records) is is_doubted
