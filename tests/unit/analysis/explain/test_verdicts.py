"""What a recording says of a waiting pod, from whatever of it was recorded."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.chronicle import Chronicle
from app.analysis.explain import sources
from app.analysis.explain.questions import Question
from app.analysis.findings import claims, pods
from app.analysis.scan.lasting_states import WAITING
from app.analysis.scan.scanning import Scan
from app.analysis.views import LiveViews
from app.bootstrap.rules import rules_for
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.errors import NotFound
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.objects.profile import Profile
from app.domain.values.timestamps import Instant
from app.service import importing
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments

PROFILE = Profile()
REFUSED = "0/1 nodes are available: 1 cannot allocate all claims."
LOG = (
    'I0101 00:00:02.123456       1 schedule_one.go:99] "Attempting to schedule pod" '
    'pod="default/p"\n'
    'I0101 00:00:02.133456       1 schedule_one.go:1059] "Unable to schedule pod; no fit; waiting" '
    f'pod="default/p" err="{REFUSED}"\n'
)
TABLE = """NAME   READY   STATUS    RESTARTS   AGE   IP       NODE
p      0/1     Pending   0          5m    <none>   <none>
"""
EVENTS = f"""LAST SEEN   TYPE      REASON             OBJECT   MESSAGE
12s         Warning   FailedScheduling   pod/p    {REFUSED}
12s         Warning   FailedScheduling   pod/p2   0/7 nodes are available: 7 of another pod.
12s         Normal    Pulled             pod/p    Container image is there
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: n, uid: u, resourceVersion: '3'}}"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, uid: p, resourceVersion: "4"}
spec: {containers: [{name: c, image: i}], nodeSelector: {a: b}}
status:
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "MESSAGE"}]
"""


async def recorded(tmp_path, **files):
    """The log, the history and the events of the imported files."""
    log = MemoryLog(MemoryStore())
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    with open_history([tmp_path], ReadOptions(rules=rules_for(PROFILE))) as source:
        result = await importing.import_records(
            log, source, name="h", options=importing.ImportOptions()
        )
    return log, result.history, await log.read(result.history.id, after=Revision(0), limit=1_000)


async def why(tmp_path, *, about="pod/p", **files):
    log, history, events = await recorded(tmp_path, **files)

    async def views_at(revision):
        views = LiveViews(PROFILE)
        for event in events[:revision]:
            views.fold(event)
        return views

    views = await views_at(len(events))
    explainer = Explainer(
        log,
        history,
        views,
        CelCompiler(detailed_errors=True),
        PROFILE,
        past=PastMoments(views_at, views_at),
    )
    kind, _, name = about.partition("/")
    return await explainer.why(Question(kind=kind, namespace="default", name=name))


async def test_node_that_was_not_recorded_is_not_said_to_be_gone(tmp_path):
    row = "p      1/1     Running   0          5m    10.0.0.7   n7\n"
    said = await why(tmp_path, pods_txt=TABLE.splitlines(keepends=True)[0] + row)
    assert said.text == "runs on node n7, of which nothing was recorded"


async def test_fields_that_a_table_does_not_show_are_not_said_to_be_empty(tmp_path):
    rows = "NAME   STATE                AGE\nc      allocated,reserved   9s\n"
    files = {"claims_txt": rows, "pods_txt": TABLE}
    claim = await why(tmp_path, about="resourceclaim/c", **files)
    assert claim.text == "its devices were not recorded"
    assert not any("requests none" in each.text for each in claim.reason.children)
    _, _, events = await recorded(tmp_path, **files)
    chronicle = Chronicle()
    chronicle.fold(events)
    told = {entry.kind: entry.text for entry in chronicle.entries}
    assert told["ClaimCreated"] == "with devices that were not recorded"
    assert told["PodCreated"] == "its claims were not recorded"


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ({}, "the recording does not show which pod uses the claim"),
        ({"pods_txt": TABLE}, "the recording does not show which pod uses the claim"),
        ({"pod_yaml": POD}, "no pod uses the claim, so no devices are requested"),
    ],
)
async def test_users_of_a_claim_that_no_source_shows_are_unknown(tmp_path, shown, said):
    rows = "NAME   STATE     AGE\nc      pending   9s\n"
    claim = await why(tmp_path, about="resourceclaim/c", claims_txt=rows, **shown)
    assert claim.reason.children[0].text == said


CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: default, uid: c, resourceVersion: "4"}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}
status:
  reservedFor: [{resource: pods, name: p, uid: uid-of-p}]
  allocation: {devices: {results: [{request: r, driver: d.example.com, pool: n, device: d0}]}}
"""


async def test_row_of_a_pod_is_the_pod_that_a_claim_names(tmp_path):
    files = {"claim_yaml": CLAIM, "pods_txt": TABLE}
    claim = await why(tmp_path, about="resourceclaim/c", **files)
    reserved = next(each for each in claim.reason.children if each.text == "reserved for p")
    assert reserved.children[0].text.startswith("pod p, which has no node yet; reserved")
    assert not any("not published" in each.text for each in claim.reason.children)
    pod = await why(tmp_path, pods_txt=TABLE.replace("<none>   <none>", "10.0.0.7 n7    "))
    assert pod.reason.children[0].text == "claim c"
    assert not any("not published" in each.text for each in pod.reason.children[0].children)
    views = LiveViews(PROFILE)
    for event in (await recorded(tmp_path, **files))[2]:
        views.fold(event)
    assert [*claims.stuck(views)] == []


@pytest.mark.parametrize("shown", [{"pods_txt": TABLE}, {}, {"pod_yaml": POD}])
async def test_claim_is_said_to_be_unused_only_where_pods_tell_what_they_use(tmp_path, shown):
    text = CLAIM.partition("status:")[0]
    views = LiveViews(PROFILE)
    for event in (await recorded(tmp_path, claim_yaml=text, **shown))[2]:
        views.fold(event)
    assert len([*claims.unused(views)]) == ("pod_yaml" in shown)


async def test_pod_known_from_the_log_of_the_scheduler_alone(tmp_path):
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, scheduler_log=LOG)
    assert "only requests about it were recorded" in refusal.value.message
    assert f"the recorded scheduler said (its log): {REFUSED}" in refusal.value.message


WAITED = CLAIM.partition("status:")[0].replace(
    "uid: c", "uid: c, creationTimestamp: 2026-01-02T03:04:05Z"
)
LATER = NODE.replace(
    "uid: u, resourceVersion: '3'",
    "uid: u, resourceVersion: '9', creationTimestamp: 2026-01-02T04:04:05Z",
)


@pytest.mark.parametrize(
    ("shown", "is_found"),
    [
        ({"claim_yaml": WAITED}, True),
        ({"claim_yaml": WAITED, "pods_txt": TABLE}, False),
        ({"claims_txt": "NAME   STATE     AGE\nc      pending   9s\n"}, False),
    ],
)
async def test_claim_waits_for_a_pod_only_where_tables_hide_nothing(tmp_path, shown, is_found):
    scan = Scan()
    scan.follow((await recorded(tmp_path, **shown, node_yaml=LATER))[2])
    assert (WAITING in [one.incident for one in scan.sightings()]) is is_found


KUBELET = (
    'E0101 00:00:02.123456     2 kubelet.go:99] "Failed to prepare dynamic resources" '
    'err="gpu-0 is gone" pod="default/p"\n'
    'I0101 00:00:03.123456     2 kubelet.go:99] "SyncLoop DELETE" source="api" pods=["default/p"]\n'
)


async def test_failure_in_the_log_of_a_kubelet_is_quoted_and_on_the_timeline(tmp_path):
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, kubelet_log=KUBELET)
    said = "the kubelet said (its log): Failed to prepare dynamic resources: gpu-0 is gone"
    assert said in refusal.value.message
    placed = TABLE.replace("<none>   <none>", "<none>   n7    ").replace(
        "Pending", "ContainerCreating"
    )
    answer = await why(tmp_path, kubelet_log=KUBELET, pods_txt=placed)
    assert said in [each.text for each in answer.reason.children]
    chronicle = Chronicle()
    chronicle.fold((await recorded(tmp_path, kubelet_log=KUBELET))[2])
    entries = chronicle.about(ObjectKey("", "pods", "default", "p"), until=Revision(9))
    kinds = [entry.kind for entry in entries if entry.kind.startswith("Kubelet")]
    assert kinds == ["KubeletFailed", "KubeletReported"]


async def test_pod_known_from_events_alone_has_the_last_words_of_its_kubelet(tmp_path):
    rows = (
        "  Normal  Scheduled  5s  default-scheduler  Successfully assigned default/p to n",
        "  Warning  FailedPrepareDynamicResources  5s  kubelet  gpu-0 is gone",
    )
    table = "\n".join(("  Type  Reason  Age  From  Message", *rows))
    with pytest.raises(NotFound) as refusal:
        await why(tmp_path, events_txt=f"It hangs:\n\n{table}\n")
    said = "only Events about it were recorded; the kubelet said: FailedPrepareDynamicResources: "
    assert f"{said}gpu-0 is gone" in refusal.value.message


async def test_attempts_in_the_log_of_a_scheduler_are_on_the_timeline(tmp_path):
    bound = (
        'I0101 00:00:09.000000       1 schedule_one.go:314] "Successfully bound pod to node" '
        'pod="default/p" node="n" evaluatedNodes=1 feasibleNodes=1\n'
    )
    _, _, events = await recorded(tmp_path, scheduler_log=LOG + bound)
    chronicle = Chronicle()
    chronicle.fold(events)
    pod = ObjectKey("", "pods", "default", "p")
    told = chronicle.about(pod, until=Revision(len(events)))
    assert [(entry.kind, entry.text) for entry in told] == [
        ("AttemptFailed", f"Unable to schedule pod; no fit; waiting: {REFUSED}"),
        ("AttemptSucceeded", "Successfully bound pod to node: node n"),
    ]


@pytest.mark.parametrize("told", [{"events_txt": EVENTS}, {"scheduler_log": LOG}])
@pytest.mark.parametrize("reads_events", [True, False])
async def test_findings_have_the_cause_from_events_and_logs(tmp_path, told, reads_events):
    _, _, events = await recorded(tmp_path, pods_txt=TABLE, **told)
    chronicle, views = Chronicle(), LiveViews(PROFILE)
    chronicle.fold(events)
    for event in events:
        views.fold(event)
    (finding,) = pods.waiting(
        chronicle, views, views.revision, lambda _: "", reads_events=reads_events
    )
    is_seen = reads_events or "scheduler_log" in told
    assert finding.text.endswith("cannot allocate all claims" if is_seen else pods.UNTOLD)


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"pods_txt": TABLE, "events_txt": EVENTS}, "Event FailedScheduling"),
        ({"pods_txt": TABLE, "scheduler_log": LOG}, "its log"),
        ({"pod_yaml": POD.replace("MESSAGE", REFUSED)}, "condition PodScheduled"),
    ],
)
async def test_each_source_of_a_refusal_is_enough(tmp_path, files, place):
    answer = await why(tmp_path, **files)
    recorded = answer.details["recorded"]
    assert (recorded["message"], recorded["place"]) == (REFUSED, place)
    assert recorded["agrees"] is None
    assert answer.text == "refused by the recorded scheduler; no node was recorded to try again"


@pytest.mark.parametrize(
    ("message", "agrees", "said", "cause"),
    [
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. more",
            True,
            "tried again, the nodes give the same answer",
            [],
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            False,
            "tried again now, the nodes give another answer: "
            "1 node(s) didn't match Pod's node affinity/selector",
            [
                "why it was refused is not known: tried again as of the refusal, the nodes give "
                "another answer; it knew 2 nodes, and the recording has 1: a change of nodes may "
                "be missing"
            ],
        ),
    ],
)
async def test_recorded_refusal_is_compared_with_what_the_nodes_say(
    tmp_path, message, agrees, said, cause
):
    answer = await why(tmp_path, pod_yaml=POD.replace("MESSAGE", message), node_yaml=NODE)
    assert answer.details["recorded"]["agrees"] is agrees
    told = next(one for one in answer.reason.children if "recorded scheduler" in one.text)
    assert [child.text for child in told.children] == [said, *cause]
    assert answer.text == "it does not fit on node n"


async def test_nothing_is_said_of_a_verdict_that_nobody_recorded(tmp_path):
    answer = await why(tmp_path, pods_txt=TABLE)
    assert "recorded" not in answer.details
    assert answer.text == "no node was recorded to try it on"


async def test_what_was_there_when_the_recording_begins_was_not_made_by_the_import(tmp_path):
    answer = await why(tmp_path, pods_txt=TABLE)
    assert answer.reason.children[-1].text == "created, before it was first recorded"


async def test_deletion_that_a_watch_shows_is_not_said_to_be_by_the_import(tmp_path):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "p", "resourceVersion": "4"},
    }
    gone = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "5"}}
    watch = [{"type": "ADDED", "object": pod}, {"type": "DELETED", "object": gone}]
    answer = await why(tmp_path, watch_json="\n".join(map(json.dumps, watch)))
    assert answer.text == "is gone"
    assert answer.reason.children[0].text.endswith("by an unrecorded user")


def test_who_wrote_is_said_to_be_unknown_where_nobody_recorded_it():
    actor = Actor(user="redra:import")
    stamp = Stamp(time=Instant(0), actor=actor, verb="delete")
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=ObjectKey("", "pods", "default", "p"),
        uid="p",
        body=b"{}",
        stamp=stamp,
    )
    assert sources.by(event) == "by an unrecorded user at 1970-01-01T00:00:00Z"


@pytest.mark.parametrize("told", [{"events_txt": EVENTS}, {"scheduler_log": LOG}])
async def test_printed_pod_is_not_tried_without_the_claims_that_it_was_refused_for(tmp_path, told):
    answer = await why(tmp_path, pods_txt=TABLE, node_yaml=NODE, **told)
    assert answer.text.startswith("refused by the recorded scheduler for its claims; which these")
    assert answer.details["nodes"] == []
    assert answer.details["recorded"]["agrees"] is None
    texts = [answer.text, *(reason.text for reason in answer.reason.children)]
    assert not any("it fits" in text or "DeviceTaintRule" in text for text in texts)
