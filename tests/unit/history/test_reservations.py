"""The place of bindings beside the reservations of their pod. Parity: history-formats.md 4.4."""

import pytest

from app.domain.log.records import Loss
from tests.unit.history.worlds import CLAIMS, PODS, audit, audit_records, tree

MILLI = 0.001


def at(second):
    """The times of a request that is answered after a millisecond."""
    stamps = (f"2026-01-01T00:00:{each:09.6f}Z" for each in (second, second + MILLI))
    return dict(zip(("requestReceivedTimestamp", "stageTimestamp"), stamps, strict=True))


def reserve(name, rv, second, user="scheduler", uid="uid-p"):
    reserved = [{"resource": "pods", "name": "p", "uid": uid}]
    status = {"allocation": {"devices": {}}, "reservedFor": reserved}
    claim = tree(CLAIMS, name, rv=rv, status=status)
    return audit("update", claim, name=name, subresource="status", user=user, **at(second))


def bind(second):
    return audit(
        "create",
        {"kind": "Status", "apiVersion": "v1"},
        type_=PODS,
        name="p",
        subresource="binding",
        uid="uid-p",
        request={"target": {"name": "n"}},
        user="scheduler",
        **at(second),
    )


def run_pod(rv, second):
    running = tree(PODS, "p", rv=rv, spec={"nodeName": "n"}, status={"phase": "Running"})
    return audit(
        "patch", running, type_=PODS, name="p", subresource="status", user="node", **at(second)
    )


MADE = (
    audit("create", tree(PODS, "p", rv=5, spec={}), type_=PODS, **at(1)),
    *(audit("create", tree(CLAIMS, name, rv=rv), **at(2)) for name, rv in (("a", 6), ("b", 7))),
)
A, B = reserve("a", 10, 10.02), reserve("b", 11, 10.03)
BOUND, MOVED = (Loss.NO_RV,), (Loss.CLOCKS_DIFFER, Loss.NO_RV)


@pytest.mark.parametrize(
    ("lines", "order", "losses"),
    [
        ((bind(10), A), "ap", MOVED),
        ((bind(10), A, B), "abp", MOVED),
        ((bind(10.025), A, B), "abp", MOVED),
        ((bind(9.5), A), "ap", MOVED),
        ((bind(9.0), A), "pa", BOUND),
        ((bind(9.0), reserve("a", 10, 9.02), reserve("b", 11, 10.03)), "pab", BOUND),
        ((bind(10.04), A, B), "abp", BOUND),
        ((bind(10), reserve("a", 10, 10.02, user="claims")), "pa", BOUND),
        ((bind(10), reserve("a", 10, 10.02, uid="uid-q")), "pa", BOUND),
        ((bind(10), run_pod(9, 10.01), A), "ppa", BOUND),
        ((bind(10), A, run_pod(12, 10.5)), "app", MOVED),
    ],
)
def test_binding_comes_after_the_reservations_that_its_date_does_not_exclude(
    tmp_path, lines, order, losses
):
    """Not if it is a second early, if another wrote them, or if the pod's next version is older."""
    records = audit_records(tmp_path, *MADE, *lines)
    assert "".join(record.name for record in records if record.subresource) == order
    (bound,) = [record for record in records if record.subresource == "binding"]
    assert tuple(sorted(set(bound.losses) & {Loss.CLOCKS_DIFFER, Loss.NO_RV})) == losses
    instants = [record.settled_at for record in records]
    assert instants == sorted(instants)
    if losses == MOVED:
        reserved = max(each.observed_at for each in records if each.subresource == "status")
        assert bound.asked_at == reserved or order.endswith("pp")
