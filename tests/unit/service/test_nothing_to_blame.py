"""Worlds that look like the cause of a waiting pod at first sight, and are none."""

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.explain.questions import Question
from app.analysis.findings import pods as pod_findings
from app.analysis.findings.pods import PodCauses
from app.bootstrap.rules import rules_for
from app.domain.controllers.registry import ControllerOptions
from app.domain.devices.cel_selectors import CelCompiler
from app.domain.log import Revision
from app.domain.objects.profile import Profile
from app.service import importing
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments
from tests.cluster import DRIVER, Cluster
from tests.unit.service.test_explaining import asking, texts, views_up_to

MODEL = f"device.attributes['{DRIVER}'].model == 'A'"
SELECTED = [{"cel": {"expression": MODEL}}]


def card(number, model="A"):
    return {"name": f"gpu-{number}", "attributes": {"model": {"string": model}}}


def replaced(cluster, name, devices, *, slices):
    """Publishes a slice again, in a newer generation of its pool."""
    tree = cluster.must("resourceslices", name)
    pool = {"name": "n1", "generation": 2, "resourceSliceCount": slices}
    cluster.update("resourceslices", {**tree, "spec": {
        **tree["spec"], "devices": devices, "pool": pool}})  # fmt: skip


@pytest.mark.parametrize(("moved", "is_told"), [(True, False), (False, True)])
async def test_slice_that_gave_its_devices_to_another_slice_is_no_cause(moved, is_told):
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=[card(0), card(1), card(2, "B")])
    cluster.claim("both", count=2, selectors=SELECTED)
    cluster.pod("first", claim="both")
    cluster.settle()
    if moved:
        cluster.slice(name="new", generation=2, devices=[card(0), card(1)], pool="n1")
        replaced(cluster, "new", [card(0), card(1)], slices=2)
    replaced(cluster, "n1-slice", [card(2, "B")], slices=1 + moved)
    cluster.claim("want", selectors=SELECTED)
    cluster.pod("next", claim="want")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "next")).reason)
    lost = [text for text in said if text.startswith("slice n1-slice had devices gpu-0, gpu-1")]
    assert [" was written without them" in text for text in lost] == [True] * is_told


async def test_pod_with_the_name_of_one_that_is_gone_does_not_keep_its_devices():
    off = frozenset(("claims", "kubelet"))
    cluster = Cluster(options=ControllerOptions(off=off))
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=1)
    cluster.claim("held")
    cluster.pod("old", claim="held")
    cluster.settle()
    cluster.delete("pods", "old", grace_seconds=0)
    cluster.pod("old", nodeName="n1")
    waits = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}},
             "image": "", "imageID": "", "ready": False, "restartCount": 0}  # fmt: skip
    cluster.patch("pods", "old", {"status": {"containerStatuses": [waits]}}, subresource="status")
    cluster.claim("want")
    cluster.pod("next", claim="want")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "next")).reason)
    assert not [text for text in said if "ImagePullBackOff" in text]
    assert [text for text in said if "reserved for a pod that does not exist" in text]


async def test_pod_that_may_still_end_is_not_said_to_be_late():
    cluster = Cluster()
    cluster.node()
    cluster.device_class()
    cluster.slice(devices=1)
    cluster.claim("held")
    cluster.pod("old", claim="held", terminationGracePeriodSeconds=3600)
    cluster.settle()
    cluster.delete("pods", "old")
    cluster.claim("want")
    cluster.pod("next", claim="want")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "next")).reason)
    (line,) = [text for text in said if text.startswith("claim default/held is reserved for pod")]
    who, _, since = line.partition("; ")
    assert who.endswith("default/old, which was deleted and is to end by 2026-01-02T04:00:00Z")
    assert since == "deletion was asked for by alice at 2026-01-02T03:00:00Z"


REFUSED = "Failed to prepare dynamic resources: DRA driver gpu.example.com is not registered"


def begun(cluster, init, main):
    """Writes the states of the containers of pod p, as its kubelet does."""
    status = {"image": "", "imageID": "", "ready": False, "restartCount": 0}
    names = {"initContainerStatuses": ("setup", init), "containerStatuses": ("main", main)}
    lists = {path: [{**status, "name": name, "state": state}]
             for path, (name, state) in names.items()}  # fmt: skip
    cluster.patch("pods", "p", {"status": {"phase": "Pending", **lists}}, subresource="status")


RUNS = {"running": {"startedAt": "2026-01-02T03:00:00Z"}}
ENDED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
WAITS = {"waiting": {"reason": "PodInitializing"}}
LACKS_IMAGE = {"waiting": {"reason": "ImagePullBackOff"}}


@pytest.mark.parametrize(
    ("init", "main", "told", "text"),
    [
        (RUNS, WAITS, "", "is bound to node n1, where its init containers run"),
        (ENDED, WAITS, "", "is bound to node n1 and has not started there"),
        (ENDED, LACKS_IMAGE, "ImagePullBackOff", "is bound to node n1 and has not started there"),
        # A sidecar runs on while the container beside it has no image.
        (RUNS, LACKS_IMAGE, "ImagePullBackOff", "is bound to node n1 and has not started there"),
        (WAITS, WAITS, "is not registered", "is bound to node n1 and has not started there"),
    ],
)
async def test_devices_that_were_prepared_in_the_end_hold_no_pod_up(init, main, told, text):
    cluster = Cluster()
    cluster.node()
    cluster.pod("p", initContainers=[{"name": "setup", "image": "busybox:1"}])
    cluster.settle()
    cluster.create(
        "v1", "Event", "p.1", type="Warning", reason="FailedPrepareDynamicResources",
        message=REFUSED, source={"component": "kubelet"},
        involvedObject={"kind": "Pod", "namespace": "default", "name": "p"},
    )  # fmt: skip
    begun(cluster, init, main)
    async with asking(cluster) as ask:
        answer = await ask("pod", "p")
    assert answer.text == text
    said = [one for one in texts(answer.reason) if "kubelet of node" in one or "waits: " in one]
    assert [told in one for one in said] == [True] * bool(told)
    views = views_up_to(cluster.line.events, len(cluster.line.events))
    now = cluster.line.events[-1].stamp.time
    found = [*pod_findings.unstarted(views, PodCauses(unasked=lambda _: ""), now)]
    assert [told in one.text for one in found] == [True] * bool(told)


def request(**more):
    return {"devices": {"requests": [{
        "name": "gpu", "exactly": {"deviceClassName": "gpu", **more}}]}}  # fmt: skip


async def template_told(tmp_path, template, claim, *, last="template"):
    """What is said of a template in a file that has it with these times and specs."""

    def tree(kind, name, version, spec, made):
        metadata = {"name": name, "namespace": "default"}
        if made:
            metadata |= {"creationTimestamp": made, "uid": f"uid-{kind}", "resourceVersion": "7"}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}

    body = {"containers": [{"name": "main", "image": "a:1"}], "resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "gpu"}]}  # fmt: skip
    pod = tree("Pod", "p", "v1", body, claim[0])
    pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]}
    documents = [
        pod,
        tree("ResourceClaim", "p-gpu", "resource.k8s.io/v1", claim[1], claim[0]),
        tree("ResourceClaimTemplate", "gpu", "resource.k8s.io/v1", {"spec": template[1]},
             template[0]),
    ]  # fmt: skip
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(documents if last == "template" else documents[::-1]))
    log = MemoryLog(MemoryStore())
    with open_history([path], ReadOptions(rules=rules_for(Profile()))) as source:
        result = await importing.import_records(
            log, source, name="h", options=importing.ImportOptions()
        )
    events = await log.read(result.history.id, after=Revision(0), limit=100)

    async def not_needed(revision):
        pytest.fail(f"no need for {revision}")

    explainer = Explainer(
        log,
        result.history,
        views_up_to(events, len(events)),
        CelCompiler(detailed_errors=True),
        Profile(),
        past=PastMoments(views=not_needed, devices=not_needed),
    )
    answer = await explainer.why(Question(kind="pod", namespace="default", name="p"))
    return [text for text in texts(answer.reason) if text.startswith("template ")]


EARLY, LATE = "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"
FULL = {"allocationMode": "ExactCount", "count": 1}


@pytest.mark.parametrize("last", ["template", "pod"])
@pytest.mark.parametrize(
    ("template", "claim", "is_told"),
    [
        # As a user wrote it, which the API server completed.
        (("", request(count=2)), (LATE, request(**FULL)), False),
        ((EARLY, request()), (LATE, request(**FULL)), False),
        # A webhook has added an attribute to what claims ask for.
        ((EARLY, request(**FULL)), (LATE, request(**FULL, adminAccess=True)), False),
        ((EARLY, request(count=2)), (EARLY, request(count=4)), False),
        ((LATE, request(count=2)), (EARLY, request(count=4)), True),
    ],
)
async def test_order_of_documents_makes_no_template_younger(
    tmp_path, template, claim, is_told, last
):
    said = await template_told(tmp_path, template, claim, last=last)
    assert len(said) == is_told


@pytest.mark.parametrize("is_changed", [True, False])
async def test_template_that_only_got_a_label_did_not_change_what_claims_ask_for(is_changed):
    """A webhook changed the claim when it was made."""
    cluster = Cluster(options=ControllerOptions(off=frozenset(("claims",))))
    cluster.node()
    cluster.device_class()
    cluster.template()
    cluster.pod("p", template="gpu")
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaim", "p-gpu", spec=request(count=2),
    )  # fmt: skip
    names = [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    cluster.patch("pods", "p", {"status": {"resourceClaimStatuses": names}}, subresource="status")
    if is_changed:
        cluster.delete("resourceclaimtemplates", "gpu")
        cluster.template(count=3)
    cluster.patch("resourceclaimtemplates", "gpu", {"metadata": {"labels": {"a": "b"}}})
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "p")).reason)
    told = [text for text in said if text.startswith("template default/gpu was")]
    assert [text.startswith("template default/gpu was made anew by alice") for text in told] == [
        True
    ] * is_changed


@pytest.mark.parametrize(("deleted", "went"), [("pods", True), ("resourceclaims", False)])
async def test_claim_that_somebody_deleted_did_not_go_with_its_owner(deleted, went):
    cluster = Cluster()
    cluster.device_class()
    cluster.pod("owner", schedulingGates=[{"name": "example.com/hold"}])
    cluster.claim("held")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner",
             "uid": cluster.must("pods", "owner")["metadata"]["uid"]}  # fmt: skip
    cluster.patch("resourceclaims", "held", {"metadata": {"ownerReferences": [owner]}})
    cluster.settle()
    cluster.delete(deleted, "owner" if deleted == "pods" else "held", grace_seconds=0)
    cluster.wait(2)
    cluster.pod("next", claim="held")
    async with asking(cluster.settle()) as ask:
        said = texts((await ask("pod", "next")).reason)
    told = [text for text in said if text.startswith("it belonged to pod default/owner")]
    assert told == ["it belonged to pod default/owner" + ", and went with it" * went]
