"""Which acts of a recording came before their reason; the rows were written before the judge."""

import msgspec
import pytest

from app.analysis.replay.acts import Act
from app.analysis.replay.authors import CLAIMS
from app.analysis.replay.lateness import KeyLook, PacedRun
from app.analysis.replay.traces import Trace
from app.analysis.replay.unsure.earliness import early_acts
from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.timestamps import SECOND, Instant

CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
POD = ObjectKey("", "pods", "default", "p")
OWNER = [{"kind": "Pod", "name": "p", "uid": "p", "controller": True}]


def instant(seconds):
    return Instant(int(seconds * SECOND))


def created(revision, key, came, losses=(), **content):
    origin = Origin(source="x", time_quality="exact", asked=instant(came), losses=losses)
    metadata = {"name": key.name, "namespace": key.namespace, "uid": key.name}
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_CREATED,
        key=key,
        uid=key.name,
        body=canonical_json({"metadata": {**metadata, **content}}),
        stamp=Stamp(time=instant(came), actor=Actor(user=CLAIMS), verb="create", origin=origin),
    )


def early_at(
    came,
    made,
    reason,
    first,
    *,
    act_losses=(),
    reason_losses=(),
    content=None,
    is_guessed=False,
    seen=None,
    written=None,
    dated=None,
    answered=0,
):
    """The early acts: a claim that came at one time, and is made for its pod at another.

    `reason` is when the pod was recorded, `first` when the controller first looked at it here. In a
    history of redra, `seen` is what the controller had seen; `written` is when the pod was written,
    `dated` the time of the claim, and `answered` when the request for it was.
    """
    pod = created(2, POD, reason, reason_losses)
    if written is not None:
        pod.stamp = msgspec.structs.replace(pod.stamp, time=instant(written))
    claim = created(1, CLAIM, came, act_losses, ownerReferences=OWNER)
    if dated is not None:
        origin = msgspec.structs.replace(claim.stamp.origin, answered=instant(answered))
        stamp = msgspec.structs.replace(claim.stamp, time=instant(dated), origin=origin)
        claim.stamp = stamp
    ours = created(3, CLAIM, made, ownerReferences=OWNER, **(content or {}))
    recorded, again = Trace(), Trace()
    for trace, event in ((recorded, claim), (again, ours)):
        trace.add(pod, None, None)
        trace.add(event, None, "resource-claim-controller")
    look = KeyLook(key=("default", "p"), first=instant(first), ready=instant(made))
    last = None if seen is None else instant(seen)
    known_at = {"known": instant(came), "seen": last}
    act = Act(event=claim, before=None, user=CLAIMS, is_guessed=is_guessed, **known_at)
    known = {instant(reason): pod, instant(came): claim}
    run = PacedRun(looks={instant(made): [look]})
    return list(early_acts(run, recorded, again, [act], known))


def early(*instants, **more):
    """The names of early acts."""
    return {each.key.name for each in early_at(*instants, **more)}


GUESS = ("no_rv",)
ROWS = [
    ("when it is due", (10, 10, 9, 9), {}, set()),
    ("milliseconds before its pod", (10, 10.006, 10.006, 10.006), {}, {"c"}),
    ("seconds before its pod, and made a little later", (10, 15.1, 15, 15), {}, {"c"}),
    ("made later than recorded for a reason before", (10, 12, 9, 9), {}, set()),
    ("for a reason that no line shows", (10, 12, 9, 12), {}, set()),
    ("by an author that is a guess", (10, 12, 12, 12), {"is_guessed": True}, set()),
    ("otherwise than here", (10, 12, 12, 12), {"content": {"labels": {"a": "b"}}}, set()),
    ("as it was due by itself", (10, 12, 12, 12), {"seen": 9, "written": 10}, set()),
    ("its writer had seen no pod", (10, 12, 12, 12), {"seen": 9}, {"c"}),
    ("of the time of its pod, from a log", (10, 12, 12, 12), {"written": 10}, {"c"}),
    ("of one time with its pod", (9.99, 10, 10, 10), {"dated": 10, "answered": 10}, set()),
    ("of that time, but answered later", (9.99, 10, 10, 10), {"dated": 10, "answered": 11}, {"c"}),
    ("its place is a guess", (10, 10.9, 10.9, 10.9), {"act_losses": GUESS}, set()),
    ("its place is a guess, a second before", (10, 11, 11, 11), {"act_losses": GUESS}, {"c"}),
    ("the reason's place is a guess", (10, 10.9, 10.9, 10.9), {"reason_losses": GUESS}, set()),
    ("the reason's place is a guess, later", (10, 11, 11, 11), {"reason_losses": GUESS}, {"c"}),
]  # fmt: skip


@pytest.mark.parametrize(("instants", "more", "names"), [row[1:] for row in ROWS],
                         ids=[row[0] for row in ROWS])  # fmt: skip
def test_act_before_its_reason_is_named(instants, more, names):
    assert early(*instants, **more) == names


def test_early_act_names_its_reason_and_both_times():
    (act,) = early_at(10, 15.1, 15, 15)
    assert (act.key, act.uid, act.step.revision) == (CLAIM, "c", 1)
    assert (act.came, act.caused) == (instant(10), instant(15))
    assert (act.cause.key, act.cause.revision) == (POD, 2)
    assert act.text == (
        f"came at 1970-01-01T00:00:10.000000Z, before its reason: {POD} at revision 2"
    )
