"""The changes that audited requests made. Rows: history-formats.md 4.3 and test vector 20.3."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op, Quality
from app.domain.objects import profile
from app.domain.values import timestamps
from tests.unit.history.worlds import (
    CLAIMS,
    NAMESPACES,
    PODS,
    audit,
    audit_records,
    brief,
    read_records,
    tree,
    write_lines,
)

DELETED_AT = {"deletionTimestamp": "2026-01-01T00:00:03Z", "deletionGracePeriodSeconds": 0}
FINALIZER = {"finalizers": ["resource.kubernetes.io/delete-protection"]}


def test_vector_nine_lines(tmp_path):
    pod_list = {
        "kind": "PodList",
        "apiVersion": "v1",
        "items": [
            {k: v for k, v in item.items() if k not in ("kind", "apiVersion")}
            for item in (
                tree(PODS, "a", rv=3, spec={}),
                tree(
                    PODS,
                    "b",
                    rv=4,
                    spec={"nodeName": "n1", "terminationGracePeriodSeconds": 30},
                    status={"phase": "Running"},
                ),
                tree(PODS, "c", rv=5, metadata=DELETED_AT, spec={}),
            )
        ],
    }
    terminating = {"deletionTimestamp": "2026-01-01T00:00:08Z"}
    records = audit_records(
        tmp_path,
        *(
            audit("create", tree(PODS, name, rv=rv, spec={}), type_=PODS, second=0)
            for name, rv in (("a", 3), ("b", 4), ("c", 5), ("p", 6))
        ),
        audit("create", tree(NAMESPACES, "ns", rv=7), type_=NAMESPACES, namespace="ns"),
        audit("create", tree(rv=10, metadata={"generateName": "c"}), second=1),
        audit("update", name="c1", subresource="status", code=409, second=2),
        audit("update", tree(rv=12, metadata=FINALIZER), subresource="status", second=3),
        audit("create", tree(name="other", rv=11), second=3),
        audit("delete", tree(rv=13, metadata={**FINALIZER, **DELETED_AT}), name="c1", second=4),
        audit("patch", tree(rv=13, metadata=DELETED_AT), name="c1", second=5),
        audit(
            "patch",
            tree(PODS, "p", rv=6, spec={}),
            type_=PODS,
            name="p",
            subresource="status",
            second=6,
        ),
        audit("deletecollection", pod_list, type_=PODS, second=7),
        audit(
            "update",
            tree(
                NAMESPACES, "ns", rv=14, metadata=terminating, spec={"finalizers": ["kubernetes"]}
            ),
            type_=NAMESPACES,
            namespace="ns",
            name="ns",
            subresource="status",
            second=8,
        ),
        audit(
            "update",
            tree(NAMESPACES, "ns", rv=14, metadata=terminating, spec={}),
            type_=NAMESPACES,
            namespace="ns",
            name="ns",
            subresource="finalize",
            second=9,
        ),
    )
    # The log began late: nobody makes the namespace of the pods in it.
    assert {name for _, name in brief(records[:2])} == {"", "default"}
    records = records[2:]
    assert brief(records)[5:] == [
        ("ADDED", "c1"),
        ("CONTEXT", "c1"),
        ("ADDED", "other"),
        ("MODIFIED", "c1"),
        ("MODIFIED", "c1"),
        ("DELETED", "c1"),
        ("CONTEXT", "p"),
        ("DELETED", "a"),
        ("MODIFIED", "b"),
        ("MODIFIED", "ns"),
        ("DELETED", "ns"),
    ]
    deleted = records[10]
    assert Loss.NO_RV in deleted.losses
    assert deleted.resource_version == ""
    b = next(record for record in records if record.name == "b" and record.op is Op.MODIFIED)
    assert b.object["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:37Z"
    assert b.object_quality is Quality.RECONSTRUCTED
    assert b.object["kind"] == "Pod"


def test_binding_replaces_the_condition_as_a_whole(tmp_path):
    """No server keeps or sets the generation that the condition of a bound pod is about."""
    failed = {"type": "PodScheduled", "status": "False", "observedGeneration": 1}
    pod = tree(PODS, "p", metadata={"generation": 1}, status={"conditions": [failed]})
    records = audit_records(
        tmp_path,
        audit("create", pod, type_=PODS),
        audit(
            "create",
            {"kind": "Status", "apiVersion": "v1", "status": "Success"},
            type_=PODS,
            name="p",
            subresource="binding",
            request={"target": {"kind": "Node", "name": "n1"}},
            second=2,
        ),
    )
    assert records[1].object["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:02Z"}
    ]


def test_binding_assigns_the_node_and_copies_its_zone(tmp_path):
    nodes = ("", "v1", "nodes", "Node")
    node = tree(nodes, "n1", rv=1)
    node["metadata"] = {
        "name": "n1",
        "uid": "n",
        "resourceVersion": "1",
        "labels": {"topology.kubernetes.io/zone": "z", "other": "x"},
    }
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
        {"type": "Ready", "status": "False"},
    ]
    pod = tree(
        PODS, "p", rv=2, spec={}, status={"nominatedNodeName": "n1", "conditions": conditions}
    )
    records = audit_records(
        tmp_path,
        audit("create", node, type_=nodes, namespace=""),
        audit("create", pod, type_=PODS, second=1),
        audit(
            "create",
            {"kind": "Status", "apiVersion": "v1", "status": "Success"},
            type_=PODS,
            name="p",
            subresource="binding",
            request={"metadata": {"labels": {"l": "1"}}, "target": {"kind": "Node", "name": "n1"}},
            second=2,
        ),
    )
    # Nothing tells of the statuses of pods, so the log is one without them.
    assert [record.op for record in records[1:]] == [Op.ADDED, Op.GAP, Op.MODIFIED]
    bound = records[3].object
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z", "l": "1"}
    assert "nominatedNodeName" not in bound["status"]
    assert bound["status"]["conditions"] == [
        {"type": "Ready", "status": "False"},
        {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:02Z",
        },
    ]
    assert records[1].object["spec"] == {}
    assert records[3].losses == (Loss.NO_RV, Loss.NO_UID)


def test_scale_changes_replicas_and_generation_of_the_parent(tmp_path):
    deployments = ("apps", "v1", "deployments", "Deployment")
    parent = tree(
        deployments, "d", rv=5, metadata={"generation": 1}, spec={"replicas": 1, "paused": True}
    )
    scale = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "d", "namespace": "default", "uid": "uid-d", "resourceVersion": "9"},
        "spec": {"replicas": 4},
    }
    records = audit_records(
        tmp_path,
        audit("create", parent, type_=deployments),
        audit("patch", scale, type_=deployments, name="d", subresource="scale", second=1),
    )
    assert brief(records) == [("ADDED", "d"), ("MODIFIED", "d")]
    assert records[1].object["spec"] == {"replicas": 4, "paused": True}
    assert records[1].object["metadata"]["generation"] == 2
    assert records[1].object["kind"] == "Deployment"
    assert records[1].resource_version == "9"


def test_eviction_marks_the_pod_as_terminating(tmp_path):
    pod = tree(PODS, "p", rv=2, spec={"nodeName": "n", "terminationGracePeriodSeconds": 10})
    records = audit_records(
        tmp_path,
        audit("create", pod, type_=PODS),
        audit(
            "create",
            {"kind": "Status", "apiVersion": "v1"},
            type_=PODS,
            name="p",
            subresource="eviction",
            request={"kind": "Eviction"},
            second=5,
        ),
    )
    assert records[1].op is Op.MODIFIED
    assert records[1].object["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:15Z"
    assert Loss.SYNTHETIC_DELETE in records[1].losses


def test_deletion_answered_by_a_status_takes_the_last_known_state(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(rv=3, spec={"devices": {}})),
        audit("delete", {"kind": "Status", "apiVersion": "v1"}, name="c1", second=1),
    )
    assert records[1].op is Op.DELETED
    assert records[1].object["spec"] == {"devices": {}}
    assert records[1].uid == "uid-c1"
    assert set(records[1].losses) == {Loss.NO_RV, Loss.NO_DELETE_STATE}


def test_removal_of_a_pod_leaves_out_the_step_before_it(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(PODS, "p", rv=3, spec={}), type_=PODS),
        audit(
            "delete",
            tree(PODS, "p", rv=8, metadata=DELETED_AT, spec={}),
            type_=PODS,
            name="p",
            request={"gracePeriodSeconds": 0},
            second=2,
        ),
    )
    assert records[1].op is Op.DELETED
    assert Loss.COLLAPSED in records[1].losses
    assert records[1].resource_version == "8"


def test_change_of_an_unknown_object_is_preceded_by_a_baseline(tmp_path):
    records = audit_records(tmp_path, audit("update", tree(rv=9), name="c1"))
    assert brief(records) == [("BASELINE", "c1"), ("MODIFIED", "c1")]
    assert Loss.SYNTHETIC_CREATE in records[0].losses


def test_dry_runs_refusals_and_panics_change_nothing(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(name="real", rv=1)),
        audit("create", tree(name="dry", rv=""), uri="/apis/x?dryRun=All", second=1),
        audit("delete", tree(name="real"), name="real", request={"dryRun": ["All"]}, second=2),
        audit("update", name="real", code=422, second=3),
        audit("update", name="real", stage="Panic", second=4),
        audit("update", tree(name="real", rv=7), name="real", stage="ResponseStarted", second=5),
        audit("get", tree(name="real", rv=7), name="real", second=5),
    )
    assert brief(records)[0] == ("ADDED", "real")
    assert {record.op for record in records[1:]} == {Op.CONTEXT}
    assert len(records) == 5


def test_write_without_a_body_is_a_gap_of_its_key(tmp_path):
    (record,) = audit_records(tmp_path, audit("update", name="c1", level="Metadata"))
    assert (record.op, record.name, record.actor.user) == (Op.GAP, "c1", "alice")
    assert Loss.METADATA_ONLY in record.losses


def test_truncated_body_is_a_gap_of_its_key(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(rv=1)),
        audit("update", name="c1", annotations={"audit.k8s.io/truncated": "true"}, second=1),
    )
    assert records[1].op is Op.GAP
    assert Loss.TRUNCATED_BODY in records[1].losses
    assert records[1].name == "c1"


def test_deletecollection_without_a_list_is_a_gap_of_the_type(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(rv=1)),
        audit("deletecollection", {"kind": "Status", "apiVersion": "v1"}, second=1),
    )
    assert (records[1].op, records[1].name, records[1].namespace) == (Op.GAP, "", "default")


def test_list_before_the_first_change_is_baseline(tmp_path):
    listed = {
        "kind": "ResourceClaimList",
        "apiVersion": "resource.k8s.io/v1",
        "items": [tree(name="old", rv=2)],
    }
    after = {**listed, "items": [tree(name="late", rv=3)]}
    records = audit_records(
        tmp_path,
        audit("list", listed, second=0),
        audit("create", tree(rv=5), second=1),
        audit("list", after, second=2),
    )
    assert brief(records) == [("BASELINE", "old"), ("ADDED", "c1")]


def test_impersonated_user_is_the_actor(tmp_path):
    (record,) = audit_records(
        tmp_path, audit("create", tree(rv=1), impersonatedUser={"username": "bob"})
    )
    assert record.actor.user == "bob"
    assert record.actor.impersonated_by == "alice"


def test_level_request_patches_the_last_state_by_its_marks(tmp_path):
    pod = tree(PODS, "p", rv=1, spec={"containers": [{"name": "a", "image": "1"}]})
    records = audit_records(
        tmp_path,
        audit("create", pod, type_=PODS),
        audit(
            "patch",
            type_=PODS,
            name="p",
            level="Request",
            request={"spec": {"containers": [{"name": "b", "image": "2"}]}},
            second=1,
        ),
        rules=rules.rules_for(profile.from_settings({})),
    )
    assert records[1].op is Op.MODIFIED
    assert [item["name"] for item in records[1].object["spec"]["containers"]] == ["b", "a"]
    assert Loss.UNKNOWN_PATCH in records[1].losses


def test_wrapped_cloud_export_is_unwrapped(tmp_path):
    import json

    wrapped = {"insertId": "1", "payload": {"event": json.dumps(audit("create", tree(rv=1)))}}
    records = audit_records(tmp_path, wrapped, format="audit", unwrap="payload.event")
    assert brief(records) == [("ADDED", "c1")]


def test_event_list_document_is_read(tmp_path):
    events = {
        "kind": "EventList",
        "apiVersion": "audit.k8s.io/v1",
        "items": [audit("create", tree(rv=1))],
    }
    assert brief(audit_records(tmp_path, events)) == [("ADDED", "c1")]


def test_old_text_lines_are_refused(tmp_path):
    path = tmp_path / "audit.log"
    path.write_text('AUDIT: id="1" stage="ResponseComplete"\n')
    from tests.unit.history.worlds import read_records

    with pytest.raises(InputError, match="old text form"):
        read_records(path)


def test_store_that_was_restored_starts_a_new_epoch(tmp_path):
    records = audit_records(
        tmp_path,
        audit("create", tree(name="before", rv=100), second=1),
        audit("create", tree(name="also", rv=101), second=20),
        audit("create", tree(name="after", rv=50), second=21),
    )
    assert [name for _, name in brief(records)][-1] == "after"


def test_bad_line_is_named_and_passed_over_only_when_asked(tmp_path):
    import json

    path = tmp_path / "audit.log"
    good = json.dumps(audit("create", tree(rv=1)))
    path.write_text(f'{good}\n{{"kind": "Event", "level": \n{good}\n')
    from app.adapters.history.opening import open_history
    from app.adapters.history.reading import ReadOptions

    with pytest.raises(InputError, match=r"audit.log:2: it is not an audit event"):
        open_history([path], ReadOptions())
    with open_history([path], ReadOptions(keep_going=True)) as recorded:
        assert recorded.refused == 1
        assert recorded.refusals[0].place == "audit.log:2"
        assert brief(recorded.records(), with_context=False) == [("ADDED", "c1")]


@pytest.mark.parametrize("type_", [CLAIMS])
def test_several_answers_with_one_version_are_one_change(tmp_path, type_):
    records = audit_records(
        tmp_path,
        audit("create", tree(type_, rv=1), second=0),
        audit("patch", tree(type_, rv=4), name="c1", second=1),
        audit("patch", tree(type_, rv=4), name="c1", second=9),
        audit("create", tree(type_, name="c2", rv=6), second=3),
    )
    assert brief(records) == [
        ("ADDED", "c1"),
        ("MODIFIED", "c1"),
        ("ADDED", "c2"),
        ("CONTEXT", "c1"),
    ]


RULES = ("resource.k8s.io", "v1beta2", "devicetaintrules", "DeviceTaintRule")


def rule(rv, effect, **parts):
    spec = {"taint": {"key": "k", "effect": effect}}
    return tree(RULES, "r", rv=rv, spec=spec, **parts)


def claim(rv, *results, **parts):
    status = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    return tree(rv=rv, spec={"devices": {}}, status=status, **parts)


def changed(verb, response, second, *, type_=CLAIMS, **options):
    return audit(
        verb, response, type_=type_, name=response["metadata"]["name"], second=second, **options
    )


GIVEN = (
    changed("create", claim(2, metadata=FINALIZER), 1),
    changed("update", claim(3, {"device": "a"}, metadata=FINALIZER), 1, subresource="status"),
)


@pytest.mark.parametrize(
    "lines",
    [
        (
            changed("create", rule(3, "None"), 1, type_=RULES),
            changed("patch", rule(5, "NoExecute"), 2, type_=RULES, subresource="status"),
        ),
        (*GIVEN, changed("update", claim(5), 2)),
        (*GIVEN, changed("delete", claim(5, metadata={**FINALIZER, **DELETED_AT}), 2)),
        (*GIVEN, changed("update", claim(5, metadata=DELETED_AT), 2)),
    ],
    ids=["a write to the status", "a write to the object", "a deletion", "a removal"],
)
def test_request_that_shows_what_it_cannot_have_done_tells_of_a_missed_change(tmp_path, lines):
    """What it shows is taken over; that somebody changed it before is a gap of the object."""
    *_, gap, seen = audit_records(tmp_path, *lines)
    assert (gap.op, gap.key) == (Op.GAP, seen.key)
    assert gap.actor is None
    assert Loss.GAP in gap.losses
    assert seen.op in (Op.MODIFIED, Op.DELETED)
    assert seen.object["metadata"]["resourceVersion"] == "5"


@pytest.mark.parametrize(
    "line",
    [
        changed("update", rule(5, "NoExecute"), 2, type_=RULES),
        changed("update", rule(5, "None", status={"conditions": []}), 2, type_=RULES),
        changed(
            "patch",
            rule(5, "None", status={"conditions": [{"type": "x"}]}),
            2,
            type_=RULES,
            subresource="status",
        ),
        changed("patch", rule(5, "NoExecute"), 2, type_=RULES, subresource="other"),
    ],
    ids=["its spec", "its status, which is empty", "its status", "another subresource"],
)
def test_request_that_shows_what_it_can_have_done_tells_of_nothing_else(tmp_path, line):
    records = audit_records(tmp_path, changed("create", rule(3, "None"), 1, type_=RULES), line)
    assert brief(records) == [("ADDED", "r"), ("MODIFIED", "r")]


def test_log_that_names_no_subresources_tells_of_no_missed_change(tmp_path):
    lines = [{**line, "objectRef": {**line["objectRef"], "subresource": ""}} for line in GIVEN]
    records = audit_records(tmp_path, *lines, changed("update", claim(5), 2))
    assert brief(records) == [("ADDED", "c1"), ("MODIFIED", "c1"), ("MODIFIED", "c1")]


def test_spec_that_no_write_may_change_is_no_sign_of_a_missed_one(tmp_path):
    """It is judged: nobody can have changed the spec of a claim, seen or unseen."""
    other = {**claim(5), "spec": {"devices": {"requests": [{"name": "r"}]}}}
    records = audit_records(
        tmp_path,
        changed("create", claim(3), 1),
        changed("update", other, 2, subresource="status"),
    )
    assert brief(records) == [("ADDED", "c1"), ("MODIFIED", "c1")]


BARE = ("kind", "apiVersion", "stage")
"""Fields that stores of audit events leave out, since they are the same in all events."""


@pytest.mark.parametrize("missing", [("apiVersion",), ("stage",), ("kind", "apiVersion"), BARE])
@pytest.mark.parametrize("form", ["line", "document"])
def test_event_without_the_fields_that_all_events_share_is_an_event(tmp_path, missing, form):
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    event["metadata"] = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    kept = {name: value for name, value in event.items() if name not in missing}
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(kept, indent=None if form == "line" else 2))
    (record,) = read_records(path)
    assert (record.op, record.name, record.actor.user) == (Op.ADDED, "a", "alice")
    assert record.object["metadata"]["resourceVersion"] == "3"


def test_event_without_a_stage_and_without_an_answer_says_that_nothing_is_known(tmp_path):
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    for name in ("stage", "responseStatus", "responseObject"):
        del event[name]
    (record,) = audit_records(tmp_path, event)
    assert (record.op, record.object) == (Op.CONTEXT, None)


@pytest.mark.parametrize("version", ["apps/v1", "v1", ""])
def test_group_that_the_reference_lacks_is_that_of_the_path(tmp_path, version):
    event = audit(
        "update",
        type_=("", "v1", "daemonsets", "DaemonSet"),
        name="agent",
        uri="/apis/apps/v1/namespaces/default/daemonsets/agent?fieldManager=helm",
        level="Metadata",
    )
    del event["objectRef"]["apiGroup"]
    event["objectRef"]["apiVersion"] = version
    core = audit("update", type_=PODS, name="a", uri="/api/v1/namespaces/default/pods/a", second=1)
    records = audit_records(tmp_path, event, {**core, "level": "Metadata"})
    assert [(each.op, each.group, each.resource) for each in records] == [
        (Op.GAP, "apps", "daemonsets"),
        (Op.GAP, "", "pods"),
    ]


def test_body_of_an_event_without_a_level_was_not_recorded(tmp_path):
    """Nothing shows that somebody cut it."""
    event = audit("update", type_=PODS, name="a")
    del event["level"]
    (record,) = audit_records(tmp_path, event)
    assert record.losses == (Loss.GAP, Loss.METADATA_ONLY)
    assert record.message == "update: the body was not recorded"


def test_code_of_a_response_may_be_text(tmp_path):
    """As alerts of a log store have it, below a field of their own."""
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    event["responseStatus"] = {"code": "201"}
    (wrapped,) = audit_records(tmp_path, {"rule": {"id": "1"}, "data": event})
    assert (wrapped.op, wrapped.name) == (Op.ADDED, "a")
    (bare,) = audit_records(tmp_path, event)
    assert (bare.op, bare.name) == (Op.ADDED, "a")


@pytest.mark.parametrize("code", ["9" * 5_000, "2010", ""])
def test_text_that_is_no_code_of_a_response_is_refused_with_its_line(tmp_path, code):
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    event["responseStatus"] = {"code": code}
    with pytest.raises(InputError, match="it is not an audit event") as caught:
        audit_records(tmp_path, event)
    assert caught.value.place == "audit.log:1"


@pytest.mark.parametrize("zone", [" UTC", "Z", "+00", "+00:00", ""])
def test_times_of_stores_are_read_and_a_guess_is_said(tmp_path, zone):
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    event["stageTimestamp"] = f"2026-01-01 00:00:05.250000000{zone}"
    path = write_lines(tmp_path / "audit.log", [event])
    with open_history([path], ReadOptions()) as recorded:
        (record,) = recorded.records()
        said = "times without a zone are taken as UTC" in recorded.notes
    assert timestamps.micro_text(record.observed_at) == "2026-01-01T00:00:05.250000Z"
    assert said is (zone == "")


def test_time_of_another_zone_without_its_letter_is_refused(tmp_path):
    event = audit("create", tree(PODS, "a", rv=3, spec={}), type_=PODS)
    event["stageTimestamp"] = "2026-01-01 00:00:05 CET"
    with pytest.raises(InputError, match=r"stageTimestamp is .*, which is not a time"):
        audit_records(tmp_path, event)


PLAIN = "2026-01-02T03:04:05.1Z stderr F I0102 03:04:05.000002       1 get.go:260] a line of klog\n"


@pytest.mark.parametrize("size", [40, 200, 10_000])
@pytest.mark.parametrize("beside", ["", PLAIN])
def test_lines_that_a_container_runtime_split_are_whole(tmp_path, size, beside):
    """An API server that writes its audit log to its output; another stream comes between."""
    stored = tree(name="c1", rv=5, spec={"note": "x" * 300})
    events = [audit("create", stored, second=1, code=201), audit("delete", stored, second=2)]
    text = beside
    for event in events:
        line = json.dumps(event)
        pieces = [line[at : at + size] for at in range(0, len(line), size)]
        for piece in pieces[:-1]:
            text += f"2026-01-02T03:04:05.1Z stdout P {piece}\n{beside}"
        text += f"2026-01-02T03:04:05.2Z stdout F {pieces[-1]}\n"
    path = tmp_path / "0.log"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        records = list(history.records())
        assert history.refusals == ()
    assert [record.op for record in records] == [Op.ADDED, Op.DELETED]
    assert records[0].object["spec"] == {"note": "x" * 300}
