"""What a recording leaves out altogether, and pods that came without their uid.

A rule that rests on a write that is not there is then in doubt; what the lines show is not.

Seeds come by day.
"""

import random

import msgspec
import pytest

from app.analysis.scan.scanning import Scan
from app.analysis.verify.invariants import InvariantWatch, Switches
from app.domain.log import EventType, Origin, Revision, doubts
from app.domain.log.records import Loss
from app.domain.values import json_tree, timestamps
from app.domain.values.timestamps import Instant
from tests import draws
from tests.unit.analysis.invariants import model
from tests.unit.analysis.invariants.test_against_model import forked, watched
from tests.unit.analysis.invariants.test_rules import MARKED, OTHER_RULE, Story
from tests.unit.analysis.invariants.worlds import (
    UNNAMED,
    RandomWorld,
    device,
    key_of,
    pod,
    result,
    user,
)

SCHEDULER, NODE = "system:kube-scheduler", "system:node:n"
SEEDS = draws.seeds(12)
_replace = msgspec.structs.replace


def sent_by(events, verbs, users, draw):
    """The events as lines of an audit log: each with a verb of these, and one of these users."""
    lines = []
    for event in events:
        verb = event.stamp.verb
        if event.is_about_object and verb != "baseline":
            is_new = event.type is EventType.OBJECT_CREATED
            verb = "create" if is_new else draw.choice(verbs)
        origin = event.stamp.origin or Origin(source="made")
        actor = _replace(event.stamp.actor, user=draw.choice(users))
        lines.append(
            _replace(event, stamp=_replace(event.stamp, verb=verb, actor=actor, origin=origin))
        )
    return lines


def without_uids(events, share, draw):
    """The events, with pods whose uid is not told until they are written again, if ever."""
    lines, hidden = [], {}
    for event in events:
        key = event.key
        if key.resource == "pods" and event.is_about_object:
            if event.type is EventType.OBJECT_CREATED:
                hidden[key] = draw.random() < share
            elif draw.random() < 0.5:
                hidden[key] = False
            if hidden.get(key):
                tree = msgspec.json.decode(event.body)
                tree.get("metadata", {}).pop("uid", None)
                event = _replace(event, uid="", body=msgspec.json.encode(tree))
        lines.append(event)
    return lines


@draws.BY_DAY
@pytest.mark.parametrize("seed", SEEDS)
def test_logs_without_some_writers_are_judged_as_by_brute_force(seed):
    draw = random.Random(seed)
    verbs = draw.choice((("patch",), ("update",), ("patch", "update")))
    users = draw.choice(((SCHEDULER,), (SCHEDULER, NODE), ("anyone",)))
    events = sent_by(RandomWorld(seed, 100).events, verbs, users, draw)
    assert watched(events) == model.expected(events, Switches())


@draws.BY_DAY
@pytest.mark.parametrize("seed", SEEDS)
def test_forks_of_logs_without_some_writers_are_judged_as_by_brute_force(seed):
    draw = random.Random(seed)
    events = sent_by(RandomWorld(seed, 100).events, ("patch",), (SCHEDULER,), draw)
    switches = forked(events, seed)
    assert watched(events, switches) == model.expected(events, switches)


@draws.BY_DAY
@pytest.mark.parametrize("seed", SEEDS)
def test_pods_without_their_uid_are_judged_as_by_brute_force(seed):
    events = without_uids(RandomWorld(seed, 100).events, 0.7, random.Random(seed))
    assert of_reservations(watched(events)) == of_reservations(model.expected(events, Switches()))


def of_reservations(found):
    return [each for each in found if each[0] == "reservation-names-pod"]


def kinds(events):
    watch = InvariantWatch()
    watch.follow(events)
    return {(each.rule, each.kind.value) for each in watch.violations()}


def bound(story, *, node="n"):
    """A pod that is bound with its claim, allocated and reserved for it."""
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    write_pod(story, node=node)


def write_pod(story, *, name="q", node="n", phase="Pending"):
    tree, write = story.change(key_of("pods", name))
    tree["spec"]["nodeName"] = node
    tree["status"]["phase"] = phase
    write()


def as_log(story, *, users=(SCHEDULER,), verbs=("patch", "update")):
    """The story as an audit log; its pods are written by these users in turn."""
    lines, turn = [], 0
    draw = random.Random(1)
    for event in sent_by(story.events, verbs, (SCHEDULER,), draw):
        if event.key.resource == "pods":
            actor = _replace(event.stamp.actor, user=users[turn % len(users)])
            event = _replace(event, stamp=_replace(event.stamp, actor=actor))
            turn += 1
        lines.append(event)
    return lines


@pytest.mark.parametrize(
    ("users", "is_shown", "kind"),
    [
        ((SCHEDULER,), False, "unsure"),
        ((SCHEDULER, NODE), False, "broken"),
        (("someone",), False, "broken"),
        ((SCHEDULER,), True, "broken"),
    ],
)
def test_claim_is_given_back_where_no_kubelet_tells_that_its_pod_ended(users, is_shown, kind):
    """A later line of the pod that shows it bound proves that it had not ended."""
    story = Story()
    bound(story)
    story.free("x")
    if is_shown:
        write_pod(story, phase="Running")
    assert kinds(as_log(story, users=users)) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(("is_shown", "kind"), [(False, "unsure"), (True, "broken")])
def test_claim_is_given_back_where_deletions_are_left_out(is_shown, kind):
    """A single lost line said the same: a log that had not lost others was accused."""
    story = Story()
    bound(story)
    story.free("x")
    if is_shown:
        write_pod(story, phase="Running")
    watch = InvariantWatch(lacking=frozenset((doubts.ENDS,)))
    watch.follow(as_log(story, users=(SCHEDULER, NODE)))
    found = {(each.rule, each.kind.value) for each in watch.violations()}
    assert found == {("bound-pod-has-claims", kind)}


def other_pods_run(story, count, *, label=""):
    """Pods that go over to Running, the last with a label, which nobody writes beside a status."""
    for number in range(count):
        story.pod(f"other-{number}")
        tree, write = story.change(key_of("pods", f"other-{number}"))
        tree["status"]["phase"] = "Running"
        if label and number == count - 1:
            tree["metadata"]["labels"] = {label: ""}
        write()


@pytest.mark.parametrize(
    ("count", "label", "kind"), [(2, "", "broken"), (1, "", "unsure"), (3, "who", "unsure")]
)
def test_statuses_that_others_than_kubelets_write_show_that_nothing_is_left_out(count, label, kind):
    """A simulator of nodes writes them. A phase beside another change was written unseen."""
    story = Story()
    bound(story)
    other_pods_run(story, count, label=label)
    story.free("x")
    assert kinds(as_log(story)) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(
    ("change", "phase", "kind"),
    [
        ({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}, "Running", "unsure"),
        ({"conditions": [{"type": "DisruptionTarget", "status": "True"}]}, "Failed", "broken"),
        ({"conditions": [{"type": "Initialized", "status": "True"}]}, "Running", "broken"),
        ({"nominatedNodeName": "n"}, "Running", "unsure"),
        ({"resourceClaimStatuses": [{"name": "entry"}]}, "Running", "unsure"),
    ],
)
def test_phase_beside_what_a_controller_writes_is_no_status_of_a_simulator(change, phase, kind):
    """The eviction of two pods showed that they had run, and counted as two reports of it."""
    story = Story()
    bound(story)
    for name in ("one", "two"):
        story.pod(name, "entry")
        tree, write = story.change(key_of("pods", name))
        tree["status"] = {**tree.get("status", {}), **change, "phase": phase}
        write()
    story.free("x")
    assert kinds(as_log(story)) == {("bound-pod-has-claims", kind)}


def test_binding_without_an_allocation_needs_no_kubelet_to_be_wrong():
    story = Story()
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    write_pod(story)
    assert kinds(as_log(story)) == {("bound-pod-has-claims", "broken")}


@pytest.mark.parametrize(
    ("verbs", "is_shown", "is_removed", "kind"),
    [
        (("patch",), False, False, "unsure"),
        (("patch",), True, False, "broken"),
        (("patch",), False, True, "unsure"),
        (("patch",), True, True, "broken"),
        (("update",), False, False, "broken"),
    ],
)
def test_claim_of_a_bound_pod_is_not_allocated_where_no_update_is_recorded(
    verbs, is_shown, is_removed, kind
):
    """Claims are allocated by updates; a later line of the claim shows that it is not.

    That line counts, too, if the claim is removed, and then the pod that named it.
    """
    story = Story()
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    write_pod(story)
    if is_shown:
        _, write = story.change(key_of("resourceclaims", "x"))
        write()
    if is_removed:
        story.remove(key_of("resourceclaims", "x"))
        story.remove(key_of("pods", "q"))
    story.other()
    lines = as_log(story, users=(SCHEDULER, NODE), verbs=verbs)
    assert kinds(lines) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(("verbs", "is_shown"), [(("patch",), False), (("update",), True)])
def test_scan_names_no_pod_with_a_node_name_whose_allocation_may_be_left_out(verbs, is_shown):
    story = Story()
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    write_pod(story)
    story.other()
    scan = Scan()
    scan.follow(as_log(story, users=(SCHEDULER, NODE), verbs=verbs))
    assert ("pod-with-a-node-name" in {each.incident for each in scan.sightings()}) is is_shown


def test_device_in_two_claims_needs_no_kubelet_and_no_update_to_be_wrong():
    story = Story()
    bound(story)
    story.claim("y", {"name": "r", "exactly": {"count": 1}})
    story.allocate("y", result("p", "a"))
    assert kinds(as_log(story, verbs=("patch",))) == {("device-in-one-claim", "broken")}


def unmade(event):
    """The event as a line shows it whose claim was made for a pod in a line that is left out."""
    if event.key.resource != "resourceclaims" or event.type is not EventType.OBJECT_CREATED:
        return event
    tree = msgspec.json.decode(event.body)
    tree["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "x"}
    made = timestamps.seconds_text(Instant(event.stamp.time))
    tree["metadata"]["creationTimestamp"] = made
    origin = Origin(source="made", losses=(Loss.SYNTHETIC_CREATE.value,))
    stamp = _replace(event.stamp, origin=origin)
    return _replace(event, body=msgspec.json.encode(tree), stamp=stamp)


@pytest.mark.parametrize(
    ("is_made", "is_shown", "kind"),
    [(False, False, "unsure"), (True, False, "broken"), (False, True, "broken")],
)
def test_device_may_be_given_back_where_the_claim_controller_is_left_out(is_made, is_shown, kind):
    """A later line of the first claim that shows its devices proves that it has them."""
    story = Story()
    story.publish("p", device("a"))
    for name in ("x", "y"):
        story.other(after=60)
        story.claim(name, {"name": "r", "exactly": {"count": 1}})
        story.allocate(name, result("p", "a"))
    if is_shown:
        _, write = story.change(key_of("resourceclaims", "x"))
        write()
    lines = as_log(story, users=(SCHEDULER, NODE))
    assert kinds(lines if is_made else [*map(unmade, lines)]) == {("device-in-one-claim", kind)}


@pytest.mark.parametrize(
    ("phases", "kind"),
    [
        ((), "unsure"),
        (("Succeeded",), "unsure"),
        (("Running",), "broken"),
        (("Running", "Succeeded"), "broken"),
    ],
)
def test_device_of_a_pod_that_a_later_line_shows_alive_is_not_given_back(phases, kind):
    """A claim is given back when its pods have ended, and kubelets say when that is."""
    story = Story()
    story.other(after=60)
    bound(story)
    story.other(after=60)
    story.claim("y", {"name": "r", "exactly": {"count": 1}})
    story.allocate("y", result("p", "a"))
    for phase in phases:
        write_pod(story, phase=phase)
    lines = [unmade(line) for line in as_log(story, users=(SCHEDULER, NODE))]
    shared = {each for each in kinds(lines) if each[0] == "device-in-one-claim"}
    assert shared == {("device-in-one-claim", kind)}


def of_unnamed_pod(told, *, ends=False):
    """A claim is reserved for a pod whose uid is not told at first: later (`told`) or never."""
    story = Story()
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    uid = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", uid if told != "another" else "another"))
    if told:
        write_pod(story, node="")
    if ends:
        story.remove(key_of("pods", "q"))
    story.other(after=61)
    hidden = {3}
    lines = []
    for event in story.events:
        if event.revision in hidden or (not told and event.key.resource == "pods"):
            tree = msgspec.json.decode(event.body)
            del tree["metadata"]["uid"]
            event = _replace(event, uid="", body=msgspec.json.encode(tree))
        lines.append(event)
    return lines


@pytest.mark.parametrize(
    ("told", "ends", "expected"),
    [
        ("its own", False, set()),
        ("its own", True, {("reservation-names-pod", "late")}),
        ("another", False, {("reservation-names-pod", "broken")}),
        ("another", True, {("reservation-names-pod", "broken")}),
        ("", False, {("reservation-names-pod", "unsure")}),
        ("", True, {("reservation-names-pod", "late")}),
    ],
)
def test_pod_may_be_the_one_of_a_reservation_until_its_uid_is_told(told, ends, expected):
    events = of_unnamed_pod(told, ends=ends)
    found = kinds(events)
    assert found - {("reservation-names-pod", "unsure")} == expected - {
        ("reservation-names-pod", "unsure")
    }
    assert expected <= found
    assert watched(events) == model.expected(events, Switches())


def test_claim_reserved_right_after_a_pod_of_unknown_uid_went_accuses_nobody():
    story = Story()
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    uid = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.remove(key_of("pods", "q"))
    story.reserve("x", user("q", uid))
    story.free("x")
    events = without_uids(story.events, 2, random.Random(2))
    events = [each if each.key.resource != "pods" else _replace(each, uid="") for each in events]
    assert kinds(events) == set()
    assert kinds(story.events) == set()


def of_pod_made_anew(owner, *, is_named, state=None):
    """A claim is reserved for a pod whose end is not recorded, only that it is made anew."""
    story = Story()
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    first = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", "another" if owner == "another" else first))
    made = pod("x")
    for part, fields in (state or {}).items():
        made[part] = {**made.get(part, {}), **fields}
    story.put(key_of("pods", "q"), made, uid="anew", after=1)
    if owner == "the second":
        story.reserve("x", user("q", "anew"))
    story.other(after=61)
    lines = []
    for event in story.events:
        if event.uid == first and not is_named:
            tree = msgspec.json.decode(event.body)
            del tree["metadata"]["uid"]
            event = _replace(event, uid="", body=msgspec.json.encode(tree))
        lines.append(event)
    return lines


@pytest.mark.parametrize(
    ("owner", "is_named", "expected"),
    [
        ("the first", True, {"late"}),
        ("the first", False, {"late", "unsure"}),
        ("the second", True, set()),
        ("the second", False, {"unsure"}),
        ("another", True, {"broken"}),
        ("another", False, {"late", "unsure"}),
    ],
)
def test_pod_that_is_made_anew_ends_the_one_before(owner, is_named, expected):
    """A pod of unknown uid may have been the one of the reservation, until it is another one."""
    events = of_pod_made_anew(owner, is_named=is_named)
    assert kinds(events) == {("reservation-names-pod", kind) for kind in expected}
    assert watched(events) == model.expected(events, Switches())


BOUND = {"nodeName": "n"}


@pytest.mark.parametrize(
    ("state", "is_wrong"),
    [
        ({"spec": BOUND}, True),
        ({"spec": BOUND, "status": {"phase": "Running"}}, True),
        ({"spec": BOUND, "status": {"phase": "Succeeded"}}, False),
        ({"spec": BOUND, "status": {"phase": "Failed"}}, False),
        ({}, False),
    ],
)
def test_pod_that_is_made_anew_is_judged_by_the_state_in_which_it_comes(state, is_wrong):
    """A bound pod has its claims reserved, unless it has ended. Who made it has bound it."""
    events = of_pod_made_anew("the first", is_named=True, state=state)
    assert (("bound-pod-has-claims", "outside") in kinds(events)) is is_wrong
    assert watched(events) == model.expected(events, Switches())


MAKER = "system:serviceaccount:kube-system:device-taint-eviction-controller"


def odd_eviction(story, *, by=MAKER):
    """A pod is marked for a taint that nothing shows so far."""
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    write_pod(story)
    tree, _ = story.change(key_of("pods", "q"))
    tree["status"]["conditions"] = [MARKED]
    story.put(key_of("pods", "q"), tree, after=30, by=by)


def reported_rule(story, name="t", *, after, made="", by=MAKER, is_listed=True):
    """A rule that elsewhere taints shows for the first time, and its status is written."""
    tree = json_tree.copy(OTHER_RULE)
    if made:
        tree["metadata"] = {"creationTimestamp": made}
    key = key_of("devicetaintrules", name)
    story.put(key, tree, after=after, losses=() if made or not is_listed else ("synthetic_create",))
    story.put(key, {**tree, "status": {"conditions": []}}, after=0.01, by=by)


def only_rules_of_later(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    story.other(after=51)
    return "broken"


def only_rules_of_later_by_their_own_time(story):
    odd_eviction(story)
    reported_rule(story, after=20, made="2026-01-02T00:00:00Z")
    story.other(after=51)
    return "broken"


def a_rule_of_before_shows_within_ten_seconds(story):
    odd_eviction(story)
    reported_rule(story, "s", after=10, made="2025-12-31T00:00:00Z")
    reported_rule(story, after=20, is_listed=False)
    story.other(after=51)
    return "unsure"


def a_rule_of_no_known_time_shows_within_ten_seconds(story):
    odd_eviction(story)
    reported_rule(story, after=10)
    story.other(after=61)
    return "unsure"


def a_rule_of_before_shows_after_another(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    reported_rule(story, "s", after=10, made="2025-12-31T00:00:00Z")
    story.other(after=51)
    return "unsure"


def a_rule_of_before_shows_at_the_last_moment(story):
    odd_eviction(story)
    reported_rule(story, "s", after=70, made="2025-12-31T00:00:00Z")
    story.other(after=1)
    return "unsure"


def a_rule_is_made_within_a_second_by_another_clock(story):
    odd_eviction(story)
    reported_rule(story, after=1, is_listed=False)
    story.other(after=70)
    return "unsure"


def a_rule_is_listed_within_ten_seconds(story):
    odd_eviction(story)
    story.put(key_of("devicetaintrules", "s"), OTHER_RULE, after=10, verb="baseline")
    reported_rule(story, after=20, is_listed=False)
    story.other(after=51)
    return "unsure"


def a_rule_of_before_shows_much_later(story):
    """Its status would have been written before if it had evicted."""
    odd_eviction(story)
    reported_rule(story, "s", after=71, made="2025-12-31T00:00:00Z")
    return "broken"


def the_log_ends_before_a_status_is_due(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    story.other(after=49.99)
    return "unsure"


def statuses_of_rules_are_not_recorded(story):
    odd_eviction(story)
    reported_rule(story, after=20, by="kubernetes-admin", is_listed=False)
    story.other(after=51)
    return "unsure"


def nobody_is_named(story):
    odd_eviction(story, by=UNNAMED)
    reported_rule(story, after=20, by=UNNAMED, is_listed=False)
    story.other(after=51)
    return "unsure"


def a_stretch_is_missing_in_which_the_status_may_be(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    story.gap(key_of("devicetaintrules", ""))
    story.other(after=51)
    return "unsure"


def a_stretch_is_missing_right_after_the_eviction(story):
    odd_eviction(story)
    story.gap(key_of("devicetaintrules", ""))
    reported_rule(story, after=20, is_listed=False)
    story.other(after=51)
    return "unsure"


def a_stretch_is_missing_when_the_status_is_due_at_last(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    story.other(after=49.99)
    story.gap(key_of("devicetaintrules", ""))
    story.other(after=1)
    return "unsure"


def a_stretch_is_missing_after_the_status_was_due(story):
    odd_eviction(story)
    reported_rule(story, after=20, is_listed=False)
    story.other(after=51)
    story.gap(key_of("devicetaintrules", ""))
    return "broken"


def two_rules_were_written_unseen(story):
    """Their lines are lost, and so may be those of a third one."""
    odd_eviction(story)
    for name in ("t", "u"):
        reported_rule(story, name, after=80, is_listed=False)
        story.gap(key_of("devicetaintrules", name), "gap")
    return "unsure"


EVICTIONS = (
    only_rules_of_later,
    only_rules_of_later_by_their_own_time,
    a_rule_of_before_shows_within_ten_seconds,
    a_rule_of_no_known_time_shows_within_ten_seconds,
    a_rule_is_listed_within_ten_seconds,
    a_rule_of_before_shows_after_another,
    a_rule_of_before_shows_at_the_last_moment,
    a_rule_is_made_within_a_second_by_another_clock,
    a_rule_of_before_shows_much_later,
    the_log_ends_before_a_status_is_due,
    statuses_of_rules_are_not_recorded,
    nobody_is_named,
    a_stretch_is_missing_in_which_the_status_may_be,
    a_stretch_is_missing_right_after_the_eviction,
    a_stretch_is_missing_when_the_status_is_due_at_last,
    a_stretch_is_missing_after_the_status_was_due,
    two_rules_were_written_unseen,
)


@pytest.mark.parametrize("tell", EVICTIONS, ids=lambda tell: tell.__name__)
def test_eviction_before_the_first_line_about_a_rule(tell):
    """The status of a rule that evicted would be written ten seconds later."""
    story = Story()
    kind = tell(story)
    assert ("eviction-has-taint", kind) in kinds(story.events)
    assert watched(story.events) == model.expected(story.events, Switches())


@pytest.mark.parametrize("lacking", [doubts.ENDS, doubts.TIMES])
def test_eviction_is_in_doubt_where_ends_or_times_of_rules_are_not_known(lacking):
    story = Story()
    only_rules_of_later(story)
    watch = InvariantWatch(lacking=frozenset((lacking,)))
    watch.follow(story.events)
    assert {each.kind.value for each in watch.violations()} == {"unsure"}


def test_nothing_is_told_of_an_eviction_before_it_is_known_whether_a_rule_evicted():
    story = Story()
    only_rules_of_later(story)
    watch, news = InvariantWatch(), []
    for event in story.events:
        watch.note(event)
        news.append([each.kind.value for each in watch.news()])
    assert news == [[]] * (len(news) - 1) + [["broken"]]


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(6))
def test_evictions_before_late_rules_are_judged_as_by_brute_force(seed):
    draw = random.Random(seed)
    events = RandomWorld(seed, 100).events
    since, lines = draw.randrange(len(events)), []
    for event in events:
        if event.key.resource != "devicetaintrules" or event.revision >= since:
            actor = _replace(event.stamp.actor, user=draw.choice((MAKER, MAKER, "someone")))
            stamp = _replace(event.stamp, actor=actor)
            lines.append(_replace(event, stamp=stamp, revision=Revision(len(lines) + 1)))
    switches = Switches(rules=seed % 3 != 0, rules_open=seed % 2 == 0)
    assert of_evictions(watched(lines, switches)) == of_evictions(model.expected(lines, switches))


def of_evictions(found):
    return [each for each in found if each[0] == "eviction-has-taint"]


@pytest.mark.parametrize("has_rules", [True, False])
@pytest.mark.parametrize("fork_has_rules", [True, False])
def test_eviction_of_a_log_is_judged_by_the_rules_that_its_release_may_have(
    has_rules, fork_has_rules
):
    """Not by those of a fork that begins after it."""
    story = Story()
    bound(story)
    tree, write = story.change(key_of("pods", "q"))
    tree["status"]["conditions"] = [MARKED]
    write()
    events = as_log(story, users=(NODE,))
    later = ((Revision(len(events) + 1), Switches(rules=fork_has_rules)),)
    story.publish("late", device("a"), after=1)
    events = as_log(story, users=(NODE,))
    watch = InvariantWatch(Switches(rules=has_rules, later=later))
    watch.follow(events)
    (violation,) = (each for each in watch.violations() if each.rule == "eviction-has-taint")
    assert violation.kind.value == ("unsure" if has_rules else "broken")
    assert watch.lacks_rules is has_rules


def shares(amounts):
    """Results of one device, in shares, that consume these amounts of its memory."""
    more = ({"shareID": name, "consumedCapacity": {"memory": str(n)}} for name, n in amounts)
    return [result("p", "a", **each) for each in more]


@pytest.mark.parametrize(
    ("rule", "results", "kind"),
    [
        ("consumed-within-capacity", shares((("1", 6), ("2", 3), ("3", 5))), "broken"),
        ("consumed-within-capacity", shares((("1", 6), ("2", 3), ("3", 4))), "unsure"),
        ("counters-not-overdrawn", [result("p", name) for name in ("six", "three", "five")],
         "broken"),
        ("counters-not-overdrawn", [result("p", name) for name in ("six", "three", "four")],
         "unsure"),
        ("device-in-one-claim", [result("p", "b")] * 3, "broken"),
        ("device-in-one-claim", [result("p", "c"), result("p", "b"), result("p", "b")], "unsure"),
    ],
)  # fmt: skip
def test_claims_that_may_be_given_back_excuse_no_more_than_they_have(rule, results, kind):
    """The first claim has a pod that goes on running, the second one may have been given back."""
    story = Story()
    story.other(after=60)
    drawing = {"six": 6, "three": 3, "five": 5, "four": 4}
    story.publish(
        "p",
        device("a", shared=True, capacity={"memory": "10"}),
        device("b"),
        device("c"),
        *(device(name, consumes={"memory": str(n)}) for name, n in drawing.items()),
        counters={"memory": "10"},
    )
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.pod("q", "x")
    story.allocate("x", results[0])
    story.reserve("x", user("q", story.uid("q")))
    write_pod(story)
    for name, given in zip("yz", results[1:], strict=True):
        story.other(after=60)
        story.claim(name, {"name": "r", "exactly": {"count": 1}})
        story.allocate(name, given)
    write_pod(story, phase="Running")
    lines = [unmade(line) for line in as_log(story, users=(SCHEDULER, NODE))]
    assert {each for each in kinds(lines) if each[0] == rule} == {(rule, kind)}


@pytest.mark.parametrize(("goes_on", "kind"), [(True, "broken"), (False, "unsure")])
def test_claim_that_may_be_given_back_excuses_nothing_that_others_take_later(goes_on, kind):
    """Of three claims with one device, two are used to the end, or the second one has ended."""
    story = Story()
    story.other(after=60)
    story.publish("p", device("b"))
    for name in "xyz":
        story.other(after=60)
        story.claim(name, {"name": "r", "exactly": {"count": 1}})
        if name != "x":
            story.pod(f"q{name}", name)
        story.allocate(name, result("p", "b"))
        if name != "x":
            story.reserve(name, user(f"q{name}", story.uid(f"q{name}")))
            write_pod(story, name=f"q{name}")
        if name == "y" and not goes_on:
            write_pod(story, name="qy", phase="Succeeded")
    write_pod(story, name="qz", phase="Running")
    if goes_on:
        write_pod(story, name="qy", phase="Running")
    lines = [unmade(line) for line in as_log(story, users=(SCHEDULER, NODE))]
    own = {each for each in kinds(lines) if each[0] == "device-in-one-claim"}
    assert own == {("device-in-one-claim", kind)}
