"""Answers about objects of which only a row of `kubectl get` is known."""

import pytest

from app.analysis import scheduling_rules
from app.analysis.chronicle import Chronicle
from app.analysis.explain import untried
from app.analysis.findings import claims, cluster, pods
from app.analysis.views import LiveViews
from app.domain.devices.cel_selectors import CelCompiler
from tests.unit.analysis.explain.test_verdicts import CLAIM, POD, PROFILE, recorded, why

TITLES = "NAME   READY   STATUS   RESTARTS   AGE\n"
EVENTS = """$ kubectl get events -w
5m19s   Warning   FailedPrepareDynamicResources   pod/p   Failed to prepare: link not found
"""
CLAIMS = """NAME    STATE                        AGE
going   deleted,allocated,reserved   11h
c       allocated,reserved           11h
"""


async def findings(tmp_path, **files):
    """The sentences of the findings about pods, claims and invariants."""
    views, chronicle = LiveViews(PROFILE), Chronicle()
    _, history, events = await recorded(tmp_path, **files)
    rules = scheduling_rules.of(history, PROFILE, CelCompiler(detailed_errors=True))
    for event in events:
        views.fold(event)
    chronicle.fold(events)
    end, now = views.revision, events[-1].stamp.time
    causes = pods.PodCauses(unasked=lambda tree: untried.cause(views, tree, rules))
    return [
        each.text
        for each in (
            *cluster.invariants(chronicle, views, end, now),
            *pods.waiting(chronicle, views, end, causes.unasked),
            *pods.unstarted(views, causes, now),
            *pods.unrecorded(chronicle, views, end),
            *pods.overdue(views, causes, now, ""),
            *claims.stuck(views, has_pods=bool(chronicle.of_kind(pods.POD_CREATED, until=end))),
        )
    ]


@pytest.mark.parametrize(
    ("word", "outcome", "text"),
    [
        ("Pending", "Pending", "no node was recorded to try it on"),
        ("ContainerCreating", "Scheduled", "has a node and has not started"),
        ("Init:0/2", "Scheduled", "has a node and has not started"),
        ("CrashLoopBackOff", "Scheduled", "runs"),
        ("OOMKilled", "Scheduled", "has a node"),
        ("Evicted", "Failed", "has finished"),
        ("Terminating", "Terminating", "is being deleted"),
    ],
)
async def test_pod_whose_node_no_column_shows_does_not_wait_for_one(tmp_path, word, outcome, text):
    pod = await why(tmp_path, pods_txt=f"{TITLES}p   0/1   {word}   0   5m\n")
    end = "" if outcome == "Pending" else "; its node was not recorded"
    assert (pod.outcome, pod.text) == (outcome, text + end)
    assert not any("0001" in each.text for each in pod.reason.children)


async def test_container_that_a_status_is_about_is_told(tmp_path):
    row = f"{TITLES}p   0/1   ImagePullBackOff   0   5m\n"
    pod = await why(tmp_path, pods_txt=row)
    assert pod.reason.children[0].text == "a container waits: ImagePullBackOff"
    said = "1 pod has a node and did not start there: a container waits: ImagePullBackOff"
    assert await findings(tmp_path, pods_txt=row) == [said]


async def test_kubelet_of_a_pod_whose_node_no_column_shows_is_heard(tmp_path):
    said = await findings(
        tmp_path, pods_txt=f"{TITLES}p   0/1   ContainerCreating   0   5m\n", events_txt=EVENTS
    )
    assert said == [
        "1 pod has a node and did not start there: FailedPrepareDynamicResources: "
        "Failed to prepare: link not found"
    ]


async def test_gates_that_a_status_shows_hold_the_pod_back(tmp_path):
    said = await findings(tmp_path, pods_txt=f"{TITLES}p   0/1   SchedulingGated   0   5m\n")
    assert said == ["1 pod waits: scheduling gates hold it back, which the recording does not show"]


async def test_claims_of_a_table_lack_no_finalizer_and_are_seen_to_be_deleted(tmp_path):
    said = await findings(tmp_path, claims_txt=CLAIMS)
    assert said == [
        "1 claim: deletion is not over, and the recording does not show what it waits for"
    ]
    going = await why(tmp_path, about="resourceclaim/going", claims_txt=CLAIMS)
    assert going.outcome == "Terminating"
    assert not any("0001" in each.text for each in going.reason.children)


async def test_claim_without_its_finalizer_is_named_where_the_finalizers_are_shown(tmp_path):
    """A page of `kubectl describe` prints all fields."""
    page = """Name:         c
Namespace:    default
API Version:  resource.k8s.io/v1
Kind:         ResourceClaim
Metadata:
  Creation Timestamp:  2026-01-01T00:00:00Z
Spec:
  Devices:
    Requests:
      Name:  r
      Exactly:
        Device Class Name:  k
Status:
  Allocation:
    Devices:
      Results:
        Device:   d0
        Driver:   d.example.com
        Pool:     n
        Request:  r
Events:           <none>
"""
    said = await findings(tmp_path, claim_txt=page)
    assert [each for each in said if "without the finalizer" in each]


ALONE = "waited or did not start when last heard of, and nothing shows how it is now"
LINE = 'I0101 00:00:0{}.123456       1 schedule_one.go:1059] "{}" pod="default/p"'
FAILED = (
    LINE.format(2, "Unable to schedule pod; no fit; waiting")
    + ' err="0/1 nodes are available: 1 full."\n'
)
BOUND = LINE.format(3, "Successfully bound pod to node") + ' node="n"\n'
SAID = "5m   Warning   FailedScheduling   pod/p   0/1 nodes are available: 1 full.\n"
PLACED = "4m   Normal   Scheduled   pod/p   Successfully assigned default/p to n\n"
PREPARED = "3m   Warning   FailedPrepareDynamicResources   pod/p   link not found\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FAILED, f"1 pod {ALONE}: full"),
        (FAILED + BOUND, None),
        (SAID, f"1 pod {ALONE}: full"),
        (SAID + PLACED, None),
        (SAID + PLACED + PREPARED, f"1 pod {ALONE}: FailedPrepareDynamicResources: link not found"),
    ],
)
async def test_pods_of_which_only_logs_and_events_tell(tmp_path, text, said):
    assert await findings(tmp_path, said_txt=text) == ([] if said is None else [said])
    with_pod = await findings(
        tmp_path, said_txt=text, pods_txt=f"{TITLES}p   1/1   Running   0   5m\n"
    )
    assert with_pod == []


async def test_pods_and_nodes_of_which_nothing_was_recorded_are_not_gone(tmp_path):
    assert "1 claim: reserved for a pod that does not exist" not in await findings(
        tmp_path, claim_yaml=CLAIM
    )
    claim = await why(tmp_path, about="resourceclaim/c", claim_yaml=CLAIM)
    reserved = next(each for each in claim.reason.children if each.text == "reserved for p")
    assert reserved.children[0].text.startswith("pod p, which is not among the recorded pods;")
    row = f"{TITLES.rstrip()}   IP         NODE\np   1/1   Terminating   0   5m   10.0.0.7   n7\n"
    pod = await why(tmp_path, claim_yaml="", pods_txt=row)
    said = [each.text for each in pod.reason.children]
    assert "waits for the kubelet of node n7, which is not among the recorded nodes" in said


async def test_pod_that_is_not_among_the_recorded_ones_is_gone(tmp_path):
    files = {"claim_yaml": CLAIM, "pod_yaml": POD.replace("name: p,", "name: q,")}
    assert "1 claim: reserved for a pod that does not exist" in await findings(tmp_path, **files)
