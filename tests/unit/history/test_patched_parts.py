"""Parts of objects that changed beside a patch: a line about another write is missing."""

import pytest

from app.adapters.history.joining.patched_parts import changed_beside, is_managed_beside
from app.domain.log.records import Op, PatchedEffect
from app.domain.objects.write.commands import PatchType
from tests.unit.history.worlds import CLAIMS, PODS, audit, audit_records, tree

STRATEGIC, MERGE, APPLY = PatchType.STRATEGIC, PatchType.MERGE, PatchType.APPLY


def condition(type_, status="True", time="2026-01-01T00:00:01Z"):
    return {"type": type_, "status": status, "lastTransitionTime": time}


def status(*conditions, **fields):
    return {"status": {"conditions": [condition(each) for each in conditions], **fields}}


def noted(**annotations):
    return {"metadata": {"annotations": annotations}}


NODE = {"kind": "Node"}


@pytest.mark.parametrize(
    ("before", "after", "body", "media_type", "beside"),
    [
        # a condition that nobody names
        (status(), status("A", "B"), status("A"), STRATEGIC, [("condition", "B")]),
        (status("B"), status("A"), status("A"), APPLY, []),
        (status(), status("A", "B"), status("A"), APPLY, [("condition", "B")]),
        # a merge patch replaces the list, and so may one whose type is a guess
        (status("A", "B"), status("A"), status("A"), MERGE, []),
        (status("A", "B"), status("A"), status("A"), STRATEGIC, []),
        (status("A"), status("A"), {}, STRATEGIC, []),
        # the time of a condition is no change
        (
            {"status": {"conditions": [condition("A")]}},
            {"status": {"conditions": [condition("A", time="2026-01-01T00:00:02Z")]}},
            {},
            STRATEGIC,
            [],
        ),
        # fields of the status
        (status(), status(phase="Running"), status(phase="Running"), STRATEGIC, []),
        (status(), status(phase="Running"), noted(a="1"), STRATEGIC, [("status", "phase")]),
        (status(phase="Failed"), {}, {}, STRATEGIC, [("status", "phase")]),
        (status(phase="Failed"), {}, {}, APPLY, []),
        (status(), status(empty={}, no=None), {}, STRATEGIC, []),
        (status(a=[{"b": 1}]), status(a=[{"b": 1, "last": {}, "c": [], "d": None}]), {}, MERGE, []),
        (status(a=[{"b": 1}]), status(a=[{"b": 0}]), {}, MERGE, [("status", "a")]),
        # annotations, and mappings that are replaced as a whole
        (noted(a="1"), noted(a="1", b="2"), noted(b="2"), STRATEGIC, []),
        (noted(), noted(a="1", b="2"), noted(b="2"), STRATEGIC, [("annotation", "a")]),
        (noted(a="1"), noted(b="2"), {"metadata": {"annotations": None}}, MERGE, []),
        (noted(a="1"), noted(b="2"), {"metadata": None}, MERGE, []),
        (noted(a="1"), noted(), noted(**{"$patch": "replace"}), STRATEGIC, []),
        (status("A"), status("B"), {"status": {"$patch": "replace"}}, STRATEGIC, []),
        # labels and fields of the spec, of nodes alone
        (NODE, {**NODE, "spec": {"taints": [1]}}, noted(a="1"), STRATEGIC, [("spec", "taints")]),
        (NODE, {**NODE, "spec": {"taints": [1]}}, {"spec": {"taints": []}}, STRATEGIC, []),
        ({**NODE, "metadata": {"labels": {"a": "1"}}}, NODE, {}, STRATEGIC, [("label", "a")]),
        ({"metadata": {"labels": {"a": "1"}}}, {"spec": {"x": 1}}, {}, STRATEGIC, []),
        # operations on paths are not followed
        (status(), status("A"), [{"op": "remove", "path": "/spec/x"}], PatchType.JSON, []),
    ],
)
def test_what_changed_beside_a_patch_was_written_before(before, after, body, media_type, beside):
    patch = PatchedEffect(media_type=media_type.value, body=body)
    assert list(changed_beside(before, after, patch)) == beside


def pod(rv, phase="Pending", **annotations):
    metadata = {"annotations": annotations} if annotations else {}
    return tree(PODS, "p", rv=rv, metadata=metadata, status={"phase": phase})


def patched(rv, second, after, body, *, type_=PODS, name="p", subresource="status", **options):
    return audit(
        "patch",
        {**after, "metadata": {**after["metadata"], "resourceVersion": str(rv)}},
        type_=type_,
        name=name,
        request=body,
        subresource=subresource,
        second=second,
        **options,
    )


def gaps(folder, *lines):
    return [record.name for record in audit_records(folder, *lines) if record.op is Op.GAP]


CREATED = audit("create", pod(3), type_=PODS, name="p", second=1)
ELSEWHERE = patched(
    4, 2, tree(PODS, "q", rv=4, status={"phase": "Running"}), status(phase="Running"), name="q"
)
BOUND = audit(
    "create",
    type_=PODS,
    name="p",
    uid="uid-p",
    subresource="binding",
    request={"target": {"name": "n1"}},
    second=3,
    code=201,
)
SHOWN = patched(9, 5, pod(9, "Running", a="1"), noted(a="1"))


def test_later_patch_shows_the_write_before_it(tmp_path):
    assert gaps(tmp_path, CREATED, ELSEWHERE, SHOWN) == ["p"]


def test_write_that_is_recorded_is_not_missed(tmp_path):
    running = patched(6, 3, pod(6, "Running"), status(phase="Running"))
    assert gaps(tmp_path, CREATED, ELSEWHERE, running, SHOWN) == []


def test_deletion_shows_the_write_before_it(tmp_path):
    ended = {"deletionTimestamp": "2026-01-01T00:00:06Z", "deletionGracePeriodSeconds": 1}
    after = tree(PODS, "p", rv=9, metadata=ended, status={"phase": "Running"})
    delete = audit("delete", after, type_=PODS, name="p", second=5)
    assert gaps(tmp_path, CREATED, ELSEWHERE, delete) == ["p"]
    last = tree(PODS, "p", rv=9, status={"phase": "Running"})
    items = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [last]}
    collection = audit("deletecollection", items, type_=PODS, second=5)
    assert gaps(tmp_path, CREATED, ELSEWHERE, collection) == ["p"]


def entry(manager, *conditions, time="2026-01-01T00:00:05Z"):
    keys = {f'k:{{"type":"{each}"}}': {} for each in conditions}
    fields = {"f:status": {"f:conditions": keys}}
    common = {"operation": "Update", "subresource": "status", "fieldsV1": fields}
    return {"manager": manager, "time": time, **common}


def managed(*entries):
    return {"metadata": {"managedFields": list(entries)}}


OLD, KUBELET, OTHER = entry("old"), entry("kubelet", "A"), entry("other", "A", "B")
ANCIENT = entry("ancient-changes", "A")


@pytest.mark.parametrize(
    ("before", "after", "named", "is_shown"),
    [
        ([OLD], [OLD, KUBELET], "AB", False),
        # what each had written may be overwritten
        ([OLD], [OLD, KUBELET, OTHER], "A", True),
        ([OLD], [OLD, KUBELET, OTHER], "AB", True),
        # it is not, so the other entry is of no write
        ([OLD], [OLD, KUBELET, OTHER], "B", False),
        # nothing is known of managers before
        ([], [KUBELET, OTHER], "AB", False),
        # the server joins old entries
        ([OLD], [KUBELET, ANCIENT], "A", False),
        ([KUBELET], [entry("kubelet", "A", time="2026-01-01T00:00:07Z"), OTHER], "A", True),
    ],
)
def test_more_new_managers_than_one_show_a_write_that_is_overwritten(
    before, after, named, is_shown
):
    parts = [("condition", each) for each in named]
    assert is_managed_beside(managed(*before), managed(*after), parts) is is_shown


def test_nomination_that_its_binding_takes_back_shows_in_the_managers(tmp_path):
    nominated = {"manager": "kube-scheduler", "operation": "Update", "subresource": "status"}
    fields = {"f:status": {"f:nominatedNodeName": {}, "f:conditions": {}}}
    made = {"manager": "kubectl", "operation": "Update", "time": "2026-01-01T00:00:01Z"}
    first = tree(PODS, "p", rv=3, metadata={"managedFields": [made]}, status={"phase": "Pending"})
    managers = [made, {**nominated, "time": "2026-01-01T00:00:03Z", "fieldsV1": fields}]
    managers.append(entry("kubelet", "Ready"))
    body = status("Ready")
    after = tree(PODS, "p", metadata={"managedFields": managers}, spec={"nodeName": "n1"})
    named = {"status": {"nominatedNodeName": "n1"}}
    lines = [
        audit("create", first, type_=PODS, name="p", second=1),
        patched(4, 2, tree(PODS, "q", **named), named, name="q"),
        BOUND,
        patched(9, 5, {**after, "status": {"phase": "Pending", **body["status"]}}, body),
    ]
    assert gaps(tmp_path, *lines) == ["p"]
    assert gaps(tmp_path, lines[0], *lines[2:]) == []


def test_part_that_no_recorded_patch_names_may_be_left_out(tmp_path):
    assert gaps(tmp_path, CREATED, SHOWN) == []


def test_binding_is_derived_whole(tmp_path):
    true = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"}
    after = tree(
        PODS, "p", spec={"nodeName": "n1"}, status={"phase": "Running", "conditions": [true]}
    )
    named = patched(2, 0, tree(PODS, "q"), {"status": {"conditions": [true]}}, name="q")
    running = patched(9, 5, after, status(phase="Running"))
    assert gaps(tmp_path, CREATED, named, BOUND, running) == []


def test_kinds_that_policies_leave_out_are_not_judged(tmp_path):
    deployments = ("apps", "v1", "deployments", "Deployment")
    lines = [
        audit("create", tree(deployments, "d", rv=3), type_=deployments, name="d", second=1),
        patched(4, 2, tree(deployments, "e", status={"x": 1}), status(x=1), type_=deployments),
        patched(9, 5, tree(deployments, "d", status={"x": 1}), noted(a="1"), type_=deployments),
    ]
    assert gaps(tmp_path, *lines) == []


def test_claims_are_judged_in_the_version_of_the_request(tmp_path):
    early = ("resource.k8s.io", "v1beta1", "resourceclaims", "ResourceClaim")
    devices = [{"driver": "d", "pool": "p", "device": "x", "conditions": []}]
    first = tree(early, "c", rv=3, spec={}, status={})
    after = tree(CLAIMS, "c", spec={}, status={"devices": devices})
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **noted(a="1")}
    lines = [
        audit("create", first, type_=early, name="c", second=1),
        patched(
            4,
            2,
            tree(CLAIMS, "o", spec={}, status={"devices": devices}),
            {"status": {"devices": devices}},
            type_=CLAIMS,
            name="o",
        ),
        patched(9, 5, after, body, type_=CLAIMS, name="c", uri="/apis/x?fieldManager=m"),
    ]
    assert gaps(tmp_path, *lines) == ["c"]


def claim(name, rv, **parts):
    return tree(CLAIMS, name, rv=rv, spec={}, status=parts)


@pytest.mark.parametrize(
    ("upon", "missed"), [(4, ["c"]), (3, []), (0, [])], ids=["next", "later", "unnamed"]
)
def test_patch_of_a_claim_shows_the_update_before_it(upon, missed, tmp_path):
    """An update of another claim changed the same part, as the version that it names shows."""
    report = [{"driver": "d", "pool": "p", "device": "x"}]
    given = {"devices": {"results": report}}
    sent = claim("o", upon, allocation=given)
    answer = claim("o", 5, allocation=given)
    options = {"type_": CLAIMS, "subresource": "status"}
    lines = [
        audit("create", claim("c", 3), type_=CLAIMS, name="c", second=1),
        audit("create", claim("o", 4), type_=CLAIMS, name="o", second=2),
        audit("update", answer, request=sent, name="o", second=3, **options),
        patched(
            9,
            5,
            claim("c", 9, allocation=given, devices=report),
            status(devices=report),
            type_=CLAIMS,
            name="c",
        ),
    ]
    assert gaps(tmp_path, *lines) == missed
