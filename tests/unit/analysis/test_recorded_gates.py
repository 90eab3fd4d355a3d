"""Which gates a recorded cluster had, as far as its objects and its settings say."""

import pytest

from app.analysis.recordings import recorded_gates
from app.analysis.recordings.releases import ShownReleases
from app.analysis.replay.proving.evidence import Switched, possible
from app.analysis.replay.variants import Switches
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.log.records import BASELINE_VERB, Loss
from app.domain.objects.profile import RULES_GATE
from app.domain.values.timestamps import Instant


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        ({"recorded": True}, True),
        ({"recorded": True, "gates": {}}, True),
        ({"recorded": True, "gates": {"DRAConsumableCapacity": True}}, True),
        ({"recorded": True, "gates": {RULES_GATE: False}}, False),
        ({"recorded": True, "gates": {RULES_GATE: True}}, False),
        ({"gates": {}}, False),
    ],
)
def test_only_a_recording_that_does_not_name_the_gate_leaves_it_open(settings, is_open):
    assert recorded_gates.leave_rules_open(settings) is is_open


@pytest.mark.parametrize(
    ("gates", "served"),
    [
        (None, {RULES_GATE: True}),
        ({"DRAConsumableCapacity": False}, {"DRAConsumableCapacity": False, RULES_GATE: True}),
        ({RULES_GATE: False}, {RULES_GATE: False}),
    ],
)
def test_a_cluster_that_served_rules_had_their_gate_on_unless_its_settings_name_it(gates, served):
    settings = {"profile": "1.35"} if gates is None else {"profile": "1.35", "gates": gates}
    assert recorded_gates.served_rules(settings) == {"profile": "1.35", "gates": served}
    assert settings.get("gates") == gates, "the stored settings stay as they are"


def request(**fields):
    return {"spec": {"devices": {"requests": [{"name": "r", "exactly": fields}]}}}


def given(**fields):
    return {"spec": {}, "status": {"allocation": {"devices": {"results": [fields]}}}}


def device(**fields):
    return {"spec": {"devices": [{"name": "d", **fields}]}}


BINDING = {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"}

STORED = [
    ("resourceslices", device(taints=[{"key": "k"}]), {"DRADeviceTaints"}),
    ("resourceslices", device(consumesCounters=[{}]), {"DRAPartitionableDevices"}),
    ("resourceslices", {"spec": {"sharedCounters": [{}]}}, {"DRAPartitionableDevices"}),
    ("resourceslices", device(allowMultipleAllocations=True), {"DRAConsumableCapacity"}),
    ("resourceslices", device(bindingConditions=["c"]), BINDING),
    ("resourceclaims", request(adminAccess=True), {"DRAAdminAccess"}),
    ("resourceclaims", request(tolerations=[{}]), {"DRADeviceTaints"}),
    ("resourceclaims", request(capacity={"requests": {}}), {"DRAConsumableCapacity"}),
    (
        "resourceclaims",
        {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "a"}]}]}}},
        {"DRAPrioritizedList"},
    ),
    ("resourceclaims", given(shareID="s"), {"DRAConsumableCapacity"}),
    ("resourceclaims", {"status": {"devices": [{}]}}, {"DRAResourceClaimDeviceStatus"}),
    ("resourceclaims", {"status": {"allocation": {"allocationTimestamp": "t"}}}, BINDING),
    (
        "resourceclaimtemplates",
        {"spec": {"spec": request(adminAccess=True)["spec"]}},
        {"DRAAdminAccess"},
    ),
    ("deviceclasses", {"spec": {"extendedResourceName": "a/b"}}, {"DRAExtendedResource"}),
    ("devicetaintrules", {"spec": {}}, {RULES_GATE}),
    ("resourceslices", device(), set()),
    ("resourceclaims", request(count=1), set()),
    ("widgets", device(taints=[{"key": "k"}]), set()),
]
"""What was stored, and the gates without which it would not have been."""

PLAIN = {"spec": {"devices": []}}
TAINTED = device(taints=[{"key": "k"}])
KEY = ObjectKey("resource.k8s.io", "resourceslices", "", "s")


def event(tree, type_=EventType.OBJECT_UPDATED, *, key=KEY, verb="update", losses=()):
    origin = Origin(source="audit", losses=tuple(each.value for each in losses))
    stamp = Stamp(time=Instant(0), actor=Actor(user="alice"), verb=verb, origin=origin)
    body = canonical_json(tree)
    return Event(revision=Revision(1), type=type_, key=key, uid="u", body=body, stamp=stamp)


def created(tree, **how):
    return event(tree, EventType.OBJECT_CREATED, **{"verb": "create", **how})


def gap(key=KEY):
    return event({}, EventType.GAP_OBSERVED, key=key, losses=[Loss.METADATA_ONLY])


def shown_by(*events):
    """The gates that these events of one object show."""
    shown, before = recorded_gates.ShownGates(), None
    for each in events:
        shown.note(each, before)
        if each.type is EventType.OBJECT_DELETED:
            before = None
        elif each.is_about_object:
            before = each.object
    return shown.found


@pytest.mark.parametrize(("resource", "tree", "gates"), STORED)
def test_field_that_was_stored_shows_its_gate(resource, tree, gates):
    assert shown_by(created(tree, key=ObjectKey("resource.k8s.io", resource, "", "s"))) == gates


TAINTS = {"DRADeviceTaints"}


@pytest.mark.parametrize(
    ("events", "gates"),
    [
        ([created(PLAIN), event(TAINTED)], TAINTS),
        ([created(TAINTED, verb=BASELINE_VERB)], set()),
        ([created(TAINTED, verb=BASELINE_VERB), event(TAINTED)], set()),
        ([created(PLAIN, verb=BASELINE_VERB), event(TAINTED)], TAINTS),
        ([created(TAINTED, losses=[Loss.SYNTHETIC_CREATE])], set()),
        ([created(PLAIN, losses=[Loss.SYNTHETIC_CREATE]), event(TAINTED)], set()),
        ([event(TAINTED)], set()),
        ([created(PLAIN), gap(), event(TAINTED)], set()),
        ([created(PLAIN), gap(), event(PLAIN), event(TAINTED)], TAINTS),
        ([created(PLAIN), gap(KEY._replace(name="")), event(TAINTED)], set()),
        ([created(PLAIN), gap(ObjectKey("", "", "", "")), event(TAINTED)], set()),
        ([created(PLAIN), gap(KEY._replace(resource="resourceclaims")), event(TAINTED)], TAINTS),
        ([gap(), created(TAINTED)], TAINTS),
        ([created(TAINTED, losses=[Loss.TRUNCATED_BODY])], set()),
        ([created(PLAIN), event(TAINTED, EventType.OBJECT_DELETED)], set()),
    ],
)
def test_only_what_a_server_took_in_shows_a_gate(events, gates):
    """What an object had when its gate was switched off it keeps."""
    assert shown_by(*events) == gates


OTHERS = (
    Switched(reason="profile 1.35", switches=Switches(profile="1.35")),
    Switched(reason="profile 1.37", switches=Switches(profile="1.37")),
    Switched(
        reason="gate DRADeviceTaints=false", switches=Switches(gates={"DRADeviceTaints": False})
    ),
    Switched(
        reason="gate DRAListTypeAttributes=true",
        switches=Switches(gates={"DRAListTypeAttributes": True}),
    ),
    Switched(reason="quirk q3=off", switches=Switches(quirks={"q3": False})),
)


def test_nothing_is_ruled_out_by_a_recording_that_shows_no_gate():
    assert tuple(possible(OTHERS, set())) == OTHERS


@pytest.mark.parametrize(
    ("resource", "version", "how", "oldest"),
    [
        ("devicetaintrules", "v1beta2", {}, 36),
        ("devicetaintrules", "v1alpha3", {}, 33),
        ("devicetaintrules", "v1", {}, 37),
        ("resourceclaims", "v1beta2", {}, 33),
        ("resourceclaims", "v2", {}, 0),
        ("widgets", "v1", {}, 0),
        # written before the recording, maybe before an upgrade
        ("devicetaintrules", "v1", {"verb": BASELINE_VERB}, 0),
    ],
)
def test_version_in_which_an_object_was_made_shows_the_oldest_release(
    resource, version, how, oldest
):
    owner = {"apiVersion": f"resource.k8s.io/{version}", "manager": "kubectl"}
    tree = {"metadata": {"managedFields": [owner]}, "spec": {}}
    shown = recorded_gates.ShownGates()
    shown.note(created(tree, key=ObjectKey("resource.k8s.io", resource, "", "o"), **how), None)
    assert shown.oldest == oldest


@pytest.mark.parametrize(("oldest", "left"), [(35, OTHERS), (36, OTHERS[1:]), (38, OTHERS[2:])])
def test_no_release_is_tried_that_does_not_serve_what_was_made(oldest, left):
    assert tuple(possible(OTHERS, set(), oldest=oldest)) == left


@pytest.mark.parametrize(
    ("releases", "left"),
    [
        ({36}, OTHERS[2:]),
        # an upgrade, or a control plane whose components differ
        ({36, 37}, OTHERS[1:]),
        (set(), OTHERS),
    ],
)
def test_no_other_release_is_tried_than_the_controllers_name(releases, left):
    assert tuple(possible(OTHERS, set(), releases)) == left


SCHEDULER, MANAGER = "kube-scheduler/v1.36.2 (linux)", "kube-controller-manager/v1.35.9 (linux)"


@pytest.mark.parametrize(
    ("agents", "minors"),
    [
        ((SCHEDULER, SCHEDULER), {36}),
        ((SCHEDULER, MANAGER), {35, 36}),
        ((SCHEDULER, "redra"), set()),
        ((SCHEDULER, ""), set()),
        ((), set()),
    ],
)
def test_releases_are_known_if_all_writes_of_controllers_name_one(agents, minors):
    shown = ShownReleases()
    for agent in agents:
        actor = Actor(user="system:kube-scheduler", agent=agent)
        event = Event(
            revision=Revision(1),
            type=EventType.OBJECT_UPDATED,
            key=ObjectKey("", "pods", "default", "p"),
            uid="u",
            body=canonical_json({}),
            stamp=Stamp(time=Instant(1), actor=actor, verb="update"),
        )
        shown.note(event)
    assert shown.minors == minors


def test_gate_that_is_shown_is_on_in_each_control_plane_that_is_tried():
    on = {"DRADeviceTaints": True}
    expected = Switched(
        reason="profile 1.35, gate DRADeviceTaints=true",
        switches=Switches(profile="1.35", gates=on),
    )
    assert tuple(possible(OTHERS, TAINTS)) == (expected, OTHERS[1], *OTHERS[3:])
