"""When claims have something to do for their controller, and what counts as impossible or unsure.

The rows are stories of one claim and its pod, with the notes that follow from each write.
"""

import dataclasses
from types import SimpleNamespace

import pytest
from msgspec import structs

from app.analysis.replay.lateness import Delay
from app.analysis.replay.traces import Trace
from app.domain.controllers import registry
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.values.timestamps import SECOND, Instant
from app.service.replays.deciding.claim_work import ClaimWork
from app.service.replays.deciding.violations import SILENT, sure_of, unsure_of, violations_of
from tests.unit.analysis.replay import test_earliness as earliness

POD = ObjectKey("", "pods", "ns", "p")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "ns", "c")
CONTROLLER = registry.actor_of("claims").user


class Notes:
    """The readiness of a run, which remembers what it was told."""

    def __init__(self):
        self.notes = []

    def note_work(self, name, key, now):
        self.notes.append((name, key, now, True))

    def note_no_work(self, name, key, now):
        self.notes.append((name, key, now, False))


def event(key, tree, *, at=1, kind=EventType.OBJECT_UPDATED, user="x"):
    metadata = {"name": key.name, "namespace": "ns", **tree.get("metadata", {})}
    return Event(
        revision=Revision(at),
        type=kind,
        key=key,
        uid=f"uid-{key.name}",
        body=b"",
        stamp=Stamp(time=Instant(at), actor=Actor(user=user), verb="update"),
        tree={**tree, "metadata": metadata},
    )


def pod(phase="Running"):
    entries = [{"name": "one", "resourceClaimName": "c"}, {"name": "two"}]
    return {"spec": {"resourceClaims": entries}, "status": {"phase": phase}}


def claim(*users, owner="", **metadata):
    references = [{"kind": "Pod", "name": owner, "uid": f"uid-{owner}"}] if owner else []
    reserved = [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in users]
    return {
        "metadata": {"ownerReferences": references, **metadata},
        "status": {"reservedFor": reserved},
    }


GONE = EventType.OBJECT_DELETED
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("writes", "notes"),
    [
        pytest.param([(POD, pod(), {})], [], id="a pod that runs"),
        pytest.param([(POD, pod("Succeeded"), {})], [True], id="a pod that has ended"),
        pytest.param([(POD, pod(), {"kind": GONE})], [True], id="a pod that is gone"),
        pytest.param([(CLAIM, claim(), {})], [], id="a claim without users"),
        pytest.param(
            [(CLAIM, claim(), {"user": CONTROLLER})], [False], id="released by its controller"
        ),
        pytest.param([(CLAIM, claim("p"), {})], [True], id="used by a pod that is not there"),
        pytest.param([(CLAIM, claim(owner="p"), {})], [True], id="owned by one"),
        pytest.param(
            [(POD, pod(), {}), (CLAIM, claim("p"), {})], [False], id="used by one that runs"
        ),
        pytest.param(
            [(POD, pod(), {}), (CLAIM, claim("p", "q"), {})], [True], id="used by one of two"
        ),
        pytest.param(
            [(POD, pod(), {}), (CLAIM, claim("p", owner="p"), {})], [False], id="owned and used"
        ),
        pytest.param(
            [(POD, pod(), {}), (CLAIM, claim("p", **ENDING), {})], [True], id="being deleted"
        ),
        pytest.param([(CLAIM, claim("p", **ENDING), {"kind": GONE})], [False], id="deleted"),
        pytest.param(
            [(POD, pod(), {}), (POD, pod("Failed"), {}), (CLAIM, claim("p"), {})],
            [True, True],
            id="used by one that has ended",
        ),
        pytest.param(
            [(CLAIM._replace(resource="other"), claim("p"), {})], [], id="of another kind"
        ),
    ],
)
def test_claim_has_work_when_a_pod_of_it_has_ended_or_it_ends(writes, notes):
    readiness = Notes()
    work = ClaimWork(readiness)
    for at, (key, tree, more) in enumerate(writes, 1):
        work.follow(event(key, tree, at=at, **more))
    assert [is_work for _, _, _, is_work in readiness.notes] == notes
    assert {(name, key) for name, key, _, _ in readiness.notes} <= {("claims", ("ns", "c"))}
    assert all(0 < now <= len(writes) for _, _, now, _ in readiness.notes)


def test_work_at_the_beginning_has_its_instant_whichever_object_comes_first():
    readiness = Notes()
    ClaimWork(readiness).begin(
        [
            event(CLAIM, claim("p")),
            event(POD, pod()),
            event(CLAIM._replace(name="d"), claim("q")),
            event(POD._replace(name="r"), pod("Succeeded")),
        ],
        Instant(7),
    )
    assert readiness.notes == [
        ("claims", ("ns", "c"), 7, True),
        ("claims", ("ns", "c"), 7, False),
        ("claims", ("ns", "d"), 7, True),
    ]


def delay(key, *, is_sure):
    return Delay(
        key=key, uid="u", due=Instant(SECOND), came=Instant(4 * SECOND), proof="p", is_sure=is_sure
    )


def test_delay_that_may_be_an_outage_is_unsure_and_others_are_impossible():
    recording = SimpleNamespace(
        contradictory={POD: "contradictory"},
        overused={"uid-c": "overused", "nobody": "held"},
        trace=SimpleNamespace(keys={"uid-c": CLAIM}),
    )
    other = POD._replace(name="q")
    late = delay(other, is_sure=True)
    mistimed = [late, delay(CLAIM, is_sure=False)]
    assert violations_of(recording, None, mistimed) == {
        str(POD): "contradictory",
        str(other): late.text,
        str(CLAIM): "overused",
        "nobody": "held",
    }
    assert late.text.startswith("was tried 3.0 s later than was due")
    facts = SimpleNamespace(broken=lambda: {other: "broken"})
    assert violations_of(recording, facts, mistimed)[str(other)] == "broken"
    assert unsure_of(None, mistimed) == {SILENT: 1}
    assert unsure_of(None, [late]) == {}


NODE = ObjectKey("", "nodes", "", "n")


class LostLine:
    """A recording that lost one line about an object at an instant, a whole kind, or a verb."""

    def __init__(self, key=None, at=0, kinds="", verb=""):
        self.kinds = kinds
        self.omissions = SimpleNamespace(verb=verb)
        self._key, self._at = key, at

    def about(self, uids, keys, since, until, read):
        is_within = since <= self._at <= until
        return "a line is lost" if is_within and self._key in keys else ""


@pytest.mark.parametrize(
    ("lost", "cause", "is_sure"),
    [
        (LostLine(), None, True),
        (LostLine(kinds="pods"), None, False),
        (LostLine(kinds="pods"), EventType.OBJECT_UPDATED, False),
        # Nothing but the creation of its pod is a reason to make a claim.
        (LostLine(earliness.POD, earliness.instant(12)), None, True),
        (LostLine(earliness.POD, earliness.instant(12)), EventType.OBJECT_UPDATED, False),
        (LostLine(earliness.CLAIM, earliness.instant(12)), EventType.OBJECT_UPDATED, False),
        (LostLine(earliness.POD, earliness.instant(10)), EventType.OBJECT_UPDATED, False),
        (LostLine(earliness.POD, earliness.instant(15)), EventType.OBJECT_UPDATED, False),
        (LostLine(earliness.POD, earliness.instant(9)), EventType.OBJECT_UPDATED, True),
        (LostLine(earliness.POD, earliness.instant(16)), EventType.OBJECT_UPDATED, True),
        (LostLine(NODE, earliness.instant(12)), EventType.OBJECT_UPDATED, True),
        (LostLine(), EventType.OBJECT_UPDATED, True),
        # A change that no line shows may be the reason where no line is of a whole verb.
        (LostLine(verb="no update"), EventType.OBJECT_UPDATED, False),
        (LostLine(verb="no update"), None, True),
    ],
)
def test_act_before_its_reason_is_sure_unless_the_reason_may_be_in_a_lost_line(
    lost, cause, is_sure
):
    """The claim came at second 10, and its pod, the reason, at second 15."""
    recorded = Trace()
    pod = earliness.created(2, earliness.POD, 15)
    recorded.add(pod, None, None)
    owned = earliness.created(1, earliness.CLAIM, 10, ownerReferences=earliness.OWNER)
    recorded.add(owned, None, "resource-claim-controller")
    (early,) = earliness.early_at(10, 15.1, 15, 15)
    if cause is not None:
        early = dataclasses.replace(early, cause=structs.replace(pod, type=cause))
    found = list(sure_of(SimpleNamespace(lacks=lost, trace=recorded), [early]))
    assert found == ([early] if is_sure else [])
