"""Refusals of a recorded scheduler that its nodes, tried again, contradict."""

import copy
from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec import structs

from app.analysis import scheduling_rules
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.pods import ExplainBounds
from app.analysis.explain.questions import Question
from app.analysis.explain.reasons import Reason
from app.analysis.explain.verdicts import SchedulerMessage
from app.analysis.views import LiveViews, compiler_of
from app.domain.controllers.scheduling.reports import messages
from app.domain.log import Event, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from app.domain.values.fields import dra
from app.service.explaining import Explainer, refusals
from app.service.explaining.evidence import ExplainedMoment, PastMoments
from tests import draws
from tests.cluster import DRIVER, Cluster
from tests.unit.service.test_explaining import cluster_of
from tests.unit.service.test_replaying import history_of, imported_log

POD = ObjectKey("", "pods", "default", "b")
REFUSED = "0/1 nodes are available: 1 cannot allocate all claims. more"


def before_allocation(cluster: Cluster) -> int:
    """The revision before the first claim got its devices."""
    return next(
        event.revision - 1
        for event in cluster.line.events
        if event.key.resource == "resourceclaims" and dra.allocation(event.object) is not None
    )


def crowded(devices: int) -> Cluster:
    cluster = cluster_of(nodes=1, devices=devices)
    for name in ("a", "b"):
        cluster.pod(name, template="gpu")
    return cluster.settle()


def views_of(events: Sequence[Event], profile: Profile, revision: int) -> LiveViews:
    views = LiveViews(profile)
    for event in events[:revision]:
        views.fold(event)
    return views


async def told(
    cluster: Cluster,
    revision: int,
    profile: Profile = Profile(),
    events: Sequence[Event] | None = None,
    message: str = REFUSED,
    **bounds: int,
) -> str:
    """What is said of a refusal of pod b that a recording has at this revision."""
    return (await reason(cluster, revision, profile, events, message, **bounds)).text


async def reason(
    cluster: Cluster,
    revision: int,
    profile: Profile = Profile(),
    events: Sequence[Event] | None = None,
    message: str = REFUSED,
    **bounds: int,
) -> Reason:
    """The reason of a refusal; the recording has all events of the cluster, or these."""
    recorded = cluster.line.events if events is None else events
    log, info = await history_of(recorded)
    info = structs.replace(info, settings=profile.settings())

    async def views_at(revision: Revision) -> LiveViews:
        return views_of(recorded, profile, revision)

    evidence = ExplainedMoment(
        log=log,
        info=info,
        views=await views_at(Revision(revision)),
        past=PastMoments(views_at, views_at),
        rules=scheduling_rules.of(info, profile, compiler_of(profile)),
        bounds=ExplainBounds(**bounds),
    )
    event = recorded[revision - 1]
    return await refusals.reason(evidence, POD, SchedulerMessage(message, "there", event))


async def test_devices_in_flight_are_a_possible_cause() -> None:
    cluster = crowded(devices=1)
    text = await told(cluster, before_allocation(cluster))
    assert text.startswith(
        "a possible cause, with which the nodes give the same answer: devices that were"
    )
    assert "written for claim default/a-" in text


async def test_cause_of_a_refusal_that_nothing_explains_is_not_known() -> None:
    cluster = crowded(devices=3)
    text = await told(cluster, before_allocation(cluster))
    assert text == (
        "why it was refused is not known: tried again as of the refusal, after the later "
        "allocation, the nodes give another answer"
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (0, "; it knew 1 node, and the recording has 0: a change of nodes may be missing"),
        (1, ""),
        (2, "; it knew 1 node, and the recording has 2: a change of nodes may be missing"),
    ],
)
async def test_another_number_of_nodes_than_the_scheduler_knew_is_named(
    known: int, said: str
) -> None:
    cluster = cluster_of(nodes=known, devices=3)
    for name in ("a", "b"):
        cluster.pod(name, template="gpu")
    cluster.settle()
    text = await told(cluster, cluster.line.events[-1].revision)
    assert text.partition("give another answer")[2] == said


@pytest.mark.parametrize(
    ("free", "said"),
    [
        ((), ", or without node empty, the nodes give the recorded answer"),
        (("spare",), "; without node spare, the nodes give the recorded answer"),
        (("spare", "other"), "; without nodes spare and other, the nodes give the recorded answer"),
    ],
)
async def test_node_that_the_scheduler_did_not_know_is_named_where_others_agree(
    free: tuple[str, ...], said: str
) -> None:
    """A cut recording may lack the deletion of a node, whose devices would have done."""
    cluster = cluster_of(nodes=1, devices=1)
    cluster.pod("a", template="gpu")
    cluster.settle()
    for name in free or ("empty",):
        cluster.node(name)
        if free:
            cluster.slice(name, 1)
    cluster.pod("b", template="gpu")
    cluster.settle()
    claimed = next(
        event.revision
        for event in cluster.line.events
        if event.key == POD and event.object.get("status", {}).get("resourceClaimStatuses")
    )
    text = await told(cluster, claimed)
    assert text.endswith(said), text


@pytest.mark.parametrize(
    ("texts", "knew", "said"),
    [
        (["full"] * 100 + [""] * 2, ["full"] * 100, "; without nodes 100 and 101, the"),
        (["odd", *["full"] * 57, *["odd"] * 3], ["full"] * 57 + ["odd"] * 2, ""),
        ([""] * 3 + ["full"], ["full"] * 2, ""),
    ],
    ids=["nodes that would take it", "too many choices", "more than it did not know"],
)
def test_of_very_many_nodes_those_are_named_that_must_be_left_out(
    texts: Sequence[str], knew: Sequence[str], said: str
) -> None:
    """Where only some choices can be tried, none is named: others may agree as well."""
    nodes = [NodeReason(node=str(number), text=text) for number, text in enumerate(texts)]
    message = messages.unfit(len(knew), messages.counted(Counter(knew)), ())
    event = cluster_of(nodes=1, devices=1).line.events[0]
    verdict = SchedulerMessage(message=message, place="", event=event)
    text = refusals._unknown(verdict, nodes, len(texts) - len(knew), 1_000)
    assert text == (said and f"{said} nodes give the recorded answer")


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ({"refusal_nodes_max": 0}, "1 nodes are too many to be tried again"),
        ({"refusal_events_max": 1}, "tried again as of the refusal, the nodes give another"),
        ({"refusal_allocations_max": 0}, "tried again as of the refusal, the nodes give another"),
    ],
)
async def test_bounds_of_a_search_for_the_cause_end_it(bound: dict[str, int], said: str) -> None:
    cluster = crowded(devices=1)
    # The first event after the refusal is not the allocation.
    refused = before_allocation(cluster) - 1
    assert (await told(cluster, refused)).startswith("a possible cause")
    text = await told(cluster, refused, **bound)
    assert text.startswith("why it was refused is not known: ")
    assert said in text


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ("NoSchedule", "the recorded scheduler saw DeviceTaintRules, unlike its release (C24)"),
        (
            "None",
            "why it was refused is not known: tried again as of the refusal, with and without",
        ),
    ],
)
async def test_rules_that_the_release_does_not_see_are_tried(effect: str, said: str) -> None:
    profile = Profile(version="1.36.2", gates={"DRADeviceTaintRules": True})
    cluster = Cluster(profile=profile)
    cluster.node("n0")
    cluster.slice("n0", 3)
    cluster.device_class()
    cluster.template()
    cluster.create(
        "resource.k8s.io/v1beta2", "DeviceTaintRule", "all",
        spec={"deviceSelector": {"driver": DRIVER},
              "taint": {"key": "example.com/bad", "effect": effect}},
    )  # fmt: skip
    cluster.settle()
    cluster.pod("b", template="gpu")
    cluster.settle()
    head = cluster.line.events[: before_allocation(cluster)]
    assert said in await told(cluster, len(head), profile, events=head)


@draws.in_turn("ways")
async def test_recording_whose_scheduler_was_repaired_has_its_refusal_explained() -> None:
    log, info = await imported_log("e-taints", {"DRADeviceTaintRules": True})
    info = structs.replace(info, settings={**info.settings, "profile": "1.36.2"})
    profile = profiles.from_settings(info.settings)
    events = await log.read(info.id, after=Revision(0), limit=10_000)

    async def views_at(revision: Revision) -> LiveViews:
        return views_of(events, profile, revision)

    explainer = Explainer(
        log,
        info,
        await views_at(Revision(492)),
        compiler_of(profile),
        profile,
        past=PastMoments(views_at, views_at),
    )
    answer = await explainer.why(Question(kind="pod", namespace="taints", name="n-3"))
    assert answer.text.startswith("refused by the recorded scheduler; tried again, 2 of 2 nodes")
    (verdict,) = [one for one in answer.reason.children if "recorded scheduler" in one.text]
    text = verdict.children[-1].text
    assert "saw DeviceTaintRules, unlike its release (C24), and devices that were" in text
    assert "for claims taints/n-1-dev-8k67w, taints/n-2-dev-npxwl later" in text


VOLUMES = {
    "1 cannot allocate all claims, 2 node(s) had volume node affinity conflict": (
        "node(s) had volume node affinity conflict (2 nodes)"
    ),
    "1 node(s) didn't match PersistentVolume's node affinity": (
        "node(s) didn't match PersistentVolume's node affinity (1 node)"
    ),
    "pod has unbound immediate PersistentVolumeClaims": (
        "pod has unbound immediate PersistentVolumeClaims"
    ),
    'persistentvolumeclaim "data" not found': 'persistentvolumeclaim "data" not found',
    "1 Insufficient x.test/volume": "",
    "1 node(s) had untolerated taint {x.test/volume: full}": "",
    "request volume: device class volume does not exist": "",
}


@pytest.mark.parametrize("reasons", VOLUMES)
async def test_volumes_are_named_as_what_is_not_tried_again(reasons: str) -> None:
    cluster = crowded(devices=3)
    message = f"0/3 nodes are available: {reasons}. preemption: 0/3 nodes are available."
    text = await told(cluster, before_allocation(cluster), message=message)
    said = VOLUMES[reasons]
    assert ("redra does not look when it tries again (A18)" in text) == bool(said)
    unknown = (
        "the nodes give another answer; it knew 3 nodes, and the recording has 1: a change of "
    )
    assert text.endswith(f": {said}" if said else f"{unknown}nodes may be missing")


@pytest.mark.parametrize(
    ("place", "devices", "said"),
    [
        ("other", 3, ["but for its volumes the pod would fit on node n0: PersistentVolumeClaim "
                      "default/data has volume pv-1, which is for nodes with x.test/rack In "
                      "other"]),
        # The node would not take it, either.
        ("other", 0, []),
        # The volume is for the node.
        ("here", 3, []),
    ],
)  # fmt: skip
async def test_node_that_only_a_volume_excludes_is_named(
    place: str, devices: int, said: list[str]
) -> None:
    cluster = cluster_of(nodes=1, devices=devices)
    node = copy.deepcopy(cluster.must("nodes", "n0"))
    node["metadata"].setdefault("labels", {})["x.test/rack"] = "here"
    cluster.update("nodes", node)
    wanted = {"key": "x.test/rack", "operator": "In", "values": [place]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    size = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    source = {"capacity": size, "local": {"path": "/data"}, "nodeAffinity": {"required": required}}
    cluster.create("v1", "PersistentVolume", "pv-1", spec={**common, **source})
    bound = {"volumeName": "pv-1", "resources": {"requests": size}}
    cluster.create("v1", "PersistentVolumeClaim", "data", spec={**common, **bound})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    cluster.pod("b", template="gpu", volumes=[volume])
    cluster.settle()
    message = "0/1 nodes are available: 1 node(s) had volume node affinity conflict. more"
    made = await reason(cluster, before_placement(cluster), message=message)
    assert [one.text for one in made.children if one.text.startswith("but for")] == said


def before_placement(cluster: Cluster) -> int:
    """The revision at which pod b has its claim, and no devices yet."""
    made = [one.revision for one in cluster.line.events if one.key.resource == "resourceclaims"]
    return made[0] + 1
