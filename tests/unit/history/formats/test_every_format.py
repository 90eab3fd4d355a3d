"""Every format gives the objects of one cluster back, or says what it lacks.

The files are made from `truth` by code that shares nothing with the readers.
"""

import gzip
from dataclasses import dataclass, field

import pytest

from app.adapters.history import catalogue
from app.adapters.history.detection import Format
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op
from app.domain.objects.profile import Profile
from app.domain.values import timestamps
from tests.unit.history.formats import courses, dumps, truth

RULES = rules_for(Profile())
"""What an import reads with; readers alone need none."""
ALL = frozenset(truth.key(tree) for tree in truth.OBJECTS)


def kinds(*names):
    return frozenset(truth.key(tree) for tree in truth.objects(*names))


@dataclass(frozen=True)
class Case:
    """A file of a format and what must come of it.

    `left_out` and `lost` are texts that must stand in the places and reasons of the report.
    `whole` says that the objects are what they were; `losses` are those of every object.
    """

    make: object
    keys: frozenset = ALL
    left_out: tuple = ()
    lost: tuple = ()
    whole: bool = True
    losses: frozenset = field(default_factory=frozenset)


CASES = {
    "Audit log": Case(courses.audit_log),
    "Batches of an audit webhook": Case(courses.audit_batches),
    "CloudWatch": Case(courses.cloudwatch),
    "CloudWatch subscription": Case(courses.cloudwatch_subscription),
    "Azure resource logs": Case(courses.azure_resource_logs),
    "Azure tables": Case(courses.azure_table),
    "Azure tables as CSV": Case(courses.azure_portal_table),
    "Azure diagnostics as CSV": Case(courses.azure_diagnostics_table),
    "CloudWatch Insights as CSV": Case(courses.cloudwatch_insights_table),
    "Google audit log": Case(courses.google),
    "Google audit log as CSV": Case(courses.google_table),
    "Google audit log in BigQuery": Case(courses.google_rows),
    "Elasticsearch": Case(courses.elasticsearch),
    "Elasticsearch, flat": Case(courses.elasticsearch_flat),
    "Splunk and other envelopes": Case(courses.splunk),
    "Lines of syslog": Case(courses.syslog, left_out=("messages: text between",)),
    "Watch stream": Case(courses.watch_stream),
    "Objects as JSON": Case(dumps.dump_json),
    "Objects as YAML": Case(dumps.dump_yaml),
    "Several YAML documents": Case(dumps.dump_documents),
    "Objects in UTF-16": Case(dumps.dump_utf16),
    "Typed lists": Case(dumps.typed_lists, left_out=("lists.json: answers of kind APIGroupList",)),
    "Text with documents in it": Case(dumps.mixture, left_out=("notes.txt: text between",)),
    "Structured log": Case(dumps.structured_log, left_out=("manager.log: text between",)),
    "Lines of a container runtime": Case(courses.docker_log),
    "Text out of a chat": Case(dumps.chat, left_out=("chat.txt: text between",)),
    "Objects as Python prints them": Case(
        dumps.printed_by_python, left_out=("client.log: text between",)
    ),
    "Admission reviews": Case(dumps.admission_reviews),
    "JSON with comments": Case(dumps.commented, left_out=("issue.md: text between",)),
    "Events that a server sends": Case(dumps.sent_events),
    "Text in Windows-1252": Case(dumps.windows_text, left_out=("pods.yaml: text between",)),
    "Table with objects": Case(dumps.table_with_objects),
    "Markdown": Case(dumps.markdown, left_out=("issue.md: text between",)),
    "Letter": Case(dumps.letter, left_out=("bug.eml/text: text between",)),
    "Text in base64": Case(dumps.encoded),
    "Export in XML": Case(dumps.export_in_xml, left_out=("all.xml: text between",)),
    "Documents with texts in them": Case(dumps.documents_with_texts),
    "Text of a tracker or wiki": Case(dumps.tracker, left_out=("issue.txt: text between",)),
    "Folder": Case(
        dumps.folder_with_foreign_files,
        left_out=("values.yaml", "README.md", "screen.png"),
        lost=("broken.json",),
    ),
    "Support bundle (troubleshoot.sh)": Case(
        dumps.troubleshoot, left_out=("groups.json", "auth-cani-list/shop.json", "version.yaml")
    ),
    "sonobuoy": Case(
        dumps.sonobuoy, left_out=("servergroups.json", "meta/config.json", "main.txt")
    ),
    "must-gather": Case(
        dumps.must_gather, left_out=("timestamp", "current.log", "event-filter.html")
    ),
    "OpenShift insights": Case(
        dumps.insights, left_out=("gathers.json", "events/shop.json", "config/metrics")
    ),
    "cluster-info dump, folder": Case(dumps.cluster_info_folder, left_out=("logs.txt",)),
    "cluster-info dump, stream": Case(
        dumps.cluster_info_stream, left_out=("cluster-info.txt: logs of containers",)
    ),
    "Velero backup": Case(dumps.velero, left_out=("metadata/version",)),
    "Archives within archives": Case(dumps.archives_within_archives, left_out=("notes.txt",)),
    "Archive with unsafe entries": Case(
        dumps.unsafe_archive,
        left_out=("linked.json: it is a link",),
        lost=("../outside.json", "/etc/outside.json"),
    ),
    "Tables of kubectl get": Case(
        dumps.tables,
        keys=kinds("Pod", "Node", "ResourceSlice", "DeviceClass", "ResourceClaim"),
        whole=False,
        losses=frozenset({Loss.PRINTED, Loss.NO_UID}),
    ),
    "kubectl describe": Case(
        dumps.descriptions,
        keys=kinds("Pod", "ResourceClaim"),
        whole=False,
        losses=frozenset({Loss.PRINTED}),
    ),
    "kwok recording": Case(courses.kwok, whole=False),
    "k8shark capture": Case(
        courses.kshrk_archive,
        keys=ALL - kinds("ResourceClaim"),
        left_out=("answers about the server or for display",),
        whole=False,
    ),
    "Scheduler simulator, record": Case(courses.simulator_record),
    "Scheduler simulator, export": Case(
        dumps.simulator_export, keys=ALL - kinds("DaemonSet", "CronJob")
    ),
    "Scheduler snapshot": Case(dumps.scheduler_snapshot, keys=kinds("Pod")),
    "Autoscaler snapshot": Case(dumps.autoscaler_snapshot, keys=kinds("Pod", "Node")),
    "Kubernetes History Inspector": Case(courses.khi),
    "SimKube trace": Case(courses.simkube, whole=False, losses=frozenset({Loss.SPEC_ONLY})),
    "etcd snapshot": Case(courses.etcd_snapshot),
    "etcd data folder": Case(courses.etcd_folder, left_out=(".wal",)),
    "Answer of etcdctl": Case(courses.etcdctl_json),
    "Answer of etcdctl, fields": Case(courses.etcdctl_fields),
    "Answer of etcdctl, simple": Case(
        courses.etcdctl_simple, losses=frozenset({Loss.NO_RV, Loss.NO_ACTOR})
    ),
    "Watch of etcdctl": Case(courses.etcdctl_watch, losses=frozenset({Loss.NO_RV, Loss.NO_ACTOR})),
    "kine table": Case(courses.kine),
}

TESTED_ELSEWHERE = {
    "Audit log without bodies": "test_writes_without_bodies_are_gaps_of_known_objects",
    "kube-scheduler log": "test_attempts_of_a_scheduler_are_observed_requests",
    "kubelet log": "tests/unit/history/test_kubelet_lines.py",
    "Events in logs of components": "tests/unit/history/test_logged_events.py",
    "Records of collectors, texts of queries": "tests/unit/history/test_service_forms.py",
    "Events of collectors for Loki": "tests/unit/history/test_collected_events.py",
    "Events in a workspace of Azure": "tests/unit/history/test_more_field_forms.py",
    "Events of Metricbeat": "tests/unit/history/test_beat_events.py",
    "Alerts of Falco": "tests/unit/history/test_admissions_and_alerts.py",
    "Log of a client in Go": "tests/unit/history/test_client_logs.py",
    "Checkpoint of a kubelet": "tests/unit/history/test_states_of_tools.py",
    "Resources of Argo CD": "tests/unit/history/test_states_of_tools.py",
    "State of Terraform": "tests/unit/history/test_states_of_tools.py",
    "Answers of Rancher": "tests/unit/history/test_served_fields.py",
    "Closed files": "tests/unit/history/test_enclosed.py",
    "Objects in protobuf": "tests/unit/history/test_copied_forms.py",
    "Recorded terminal": "tests/unit/history/test_copied_forms.py",
    "Native bundle": "tests/unit/history/test_bundle.py",
}


def read(path, **options):
    """The records, and the report's places with their reasons."""
    with open_history([path], ReadOptions(**options)) as recorded:
        records = list(recorded.records())
        return (
            records,
            [f"{place}: {reason}" for place, reason in recorded.left_out],
            [f"{place}: {problem}" for place, problem in recorded.refused_places],
        )


def final(records):
    """The objects at the end, by kind, namespace and name."""
    there = {}
    for record in records:
        if record.op is Op.DELETED:
            there = {k: r for k, r in there.items() if r.key != record.key}
        elif record.object is not None and record.op is not Op.CONTEXT:
            there[truth.key(record.object)] = record
    return there


def comparable(tree):
    """The object as far as every format keeps it: no resource version, no empty parts."""
    metadata = {name: part for name, part in tree["metadata"].items() if name != "resourceVersion"}
    return {name: part for name, part in (tree | {"metadata": metadata}).items() if part != {}}


@pytest.mark.parametrize("rules", [None, RULES], ids=["as it is", "of a release"])
@pytest.mark.parametrize("name", CASES)
def test_file_gives_what_its_format_holds(tmp_path, name, rules):
    case = CASES[name]
    records, left_out, lost = read(case.make(tmp_path), rules=rules)
    there = final(records)
    assert set(there) == case.keys
    for tree in truth.OBJECTS:
        record = there.get(truth.key(tree))
        if record is not None:
            assert case.losses <= set(record.losses)
            if case.whole:
                assert comparable(record.object) == comparable(tree)
    for part in case.left_out:
        assert any(part in each for each in left_out), left_out
    for part in case.lost:
        assert any(part in each for each in lost), lost
    assert len(lost) == len(case.lost), lost


def test_each_row_has_a_test_and_each_detector_a_row():
    rows = {entry.name for entry in catalogue.ENTRIES}
    assert rows == {*CASES, *TESTED_ELSEWHERE} - {"Elasticsearch, flat"}
    named = {found for entry in catalogue.ENTRIES for found in entry.formats}
    assert named == set(Format) - {Format.EMPTY, Format.UNKNOWN}


def test_writes_without_bodies_are_gaps_of_known_objects(tmp_path):
    records, _, _ = read(courses.audit_metadata(tmp_path))
    assert {(record.op, record.name) for record in records} == {
        (Op.GAP, tree["metadata"]["name"]) for tree in truth.OBJECTS
    }
    assert all(Loss.METADATA_ONLY in record.losses for record in records)


def test_attempts_of_a_scheduler_are_observed_requests(tmp_path):
    at = timestamps.parse("2026-01-05T00:00:00Z")
    records, left_out, _ = read(courses.scheduler_log(tmp_path), at=at)
    assert [(each.op, each.verb, str(each.key)) for each in records] == [
        (Op.CONTEXT, verb, "pods/shop/web-1") for verb in ("attempt", "unschedulable", "bound")
    ]
    assert "1 cannot allocate all claims" in records[1].message
    assert timestamps.micro_text(records[2].observed_at) == "2026-01-02T03:04:06.000004Z"
    assert any("about no attempt" in each for each in left_out)


def test_capture_shows_what_changed_between_two_lists(tmp_path):
    records, _, _ = read(courses.kshrk_archive(tmp_path))
    deleted, changed = records[-2:]
    assert (deleted.op, deleted.name) == (Op.DELETED, "claim")
    assert Loss.SYNTHETIC_DELETE in deleted.losses
    assert (changed.op, changed.object["status"]["phase"]) == (Op.MODIFIED, "Failed")


def test_tables_show_where_a_pod_runs(tmp_path):
    there = final(read(dumps.tables(tmp_path))[0])
    pod = there["Pod", "shop", "web-1"].object
    assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("n1", "Running")
    claim = there["ResourceClaim", "shop", "claim"].object
    assert claim["status"] == {"allocation": {}}
    sliced = there["ResourceSlice", "", "n1-gpu"].object
    assert sliced["spec"] == {"nodeName": "n1", "driver": "gpu.example.com", "pool": {"name": "n1"}}


def test_description_shows_labels_node_and_containers(tmp_path):
    there = final(read(dumps.descriptions(tmp_path))[0])
    pod = there["Pod", "shop", "web-1"].object
    assert pod["metadata"]["labels"] == {"made/for": "the-tests"}
    assert pod["spec"] == {
        "nodeName": "n1",
        "containers": [{"name": "main", "image": "web:1"}],
    }


def test_object_that_is_printed_in_several_places_is_one_object(tmp_path):
    records, _, lost = read(dumps.terminal(tmp_path), rules=RULES)
    assert lost == []
    assert [(record.op, record.name) for record in records] == [
        (Op.BASELINE, "claim"),
        (Op.BASELINE, "other"),
    ]
    claim, other = (record.object for record in records)
    assert claim["metadata"]["uid"] == records[0].uid == "uid-claim"
    exactly = {"allocationMode": "ExactCount", "count": 1, "deviceClassName": "gpu"}
    assert claim["spec"] == {"devices": {"requests": [{"exactly": exactly, "name": "r"}]}}
    assert "spec" not in other
    assert Loss.NO_UID in records[1].losses
    assert Loss.NO_UID not in records[0].losses


def test_object_that_another_source_holds_is_not_taken_from_what_was_printed(tmp_path):
    (tree,) = truth.objects("ResourceClaim")
    whole = dumps.one(tmp_path, "claim.json", dumps.as_bytes(tree).decode())
    with open_history([dumps.terminal(tmp_path), whole], ReadOptions(rules=RULES)) as recorded:
        records = sorted(recorded.records(), key=lambda record: record.name)
    assert [(record.op, record.name) for record in records] == [
        (Op.BASELINE, "claim"),
        (Op.BASELINE, "other"),
    ]
    assert comparable(records[0].object) == comparable(tree)


@pytest.mark.parametrize(
    ("cut", "is_packed"), [(0.2, False), (0.4, False), (0.6, False), (0.6, True), (0.8, True)]
)
def test_archive_that_ends_in_the_middle_gives_what_came_before(tmp_path, cut, is_packed):
    path = dumps.velero(tmp_path)
    whole = path.read_bytes() if is_packed else gzip.decompress(path.read_bytes())
    path.write_bytes(whole[: int(len(whole) * cut)])
    records, _, lost = read(path)
    assert records
    assert set(final(records)) < ALL
    assert any("backup.tar.gz" in each for each in lost)


def test_lines_in_brackets_do_not_hide_what_follows(tmp_path):
    line = "[2026-01-02 03:04:05] INFO: nothing happens\n"
    content = line * 5_000 + dumps.as_bytes(dumps.listed(truth.objects())).decode() + "\n" + line
    records, _, lost = read(dumps.one(tmp_path, "app.log", content))
    assert set(final(records)) == ALL
    assert lost == []


def test_archive_within_too_many_archives_is_lost_with_its_reason(tmp_path):
    content = dumps.as_bytes(dumps.listed(truth.objects()))
    for _ in range(6):
        content = dumps._tar({"inner.tar": content})
    path = dumps.one(tmp_path, "deep.tar", content)
    with pytest.raises(InputError, match="an archive within 4 archives"):
        read(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.md", "# Nothing\n\nhere, but `apiVersion` is a word.\n"),
        ("empty.json", ""),
        ("groups.json", dumps.GROUP_LIST),
        ("values.yaml", "replicas: 3\n"),
        ("noise.bin", bytes(range(256)) * 10),
        ("list.json", truth.typed_list("Pod", is_empty=True)),
    ],
)
def test_source_with_nothing_readable_is_refused(tmp_path, name, content):
    with pytest.raises(InputError) as refusal:
        read(dumps.one(tmp_path, name, content))
    assert name in str(refusal.value)


def test_events_of_a_description_are_events_about_what_it_describes(tmp_path):
    text = """Name:             web-1
Namespace:        shop
Node:             <none>
Status:           Pending
Containers:
  main:
    Image:      web:1
Conditions:
  Type           Status
  PodScheduled   False
Events:
  Type     Reason            Age                From               Message
  ----     ------            ----               ----               -------
  Warning  FailedScheduling  62s (x5 over 5m)   default-scheduler  0/1 nodes are available: 1 x.
  Normal   Other             1s                 me                 something else
[root@bastion ~]# oc get deviceclass
NAME   AGE
gpu    3d
"""
    records, _, _ = read(dumps.one(tmp_path, "described.txt", text), rules=RULES)
    there = {(record.kind, record.namespace): record.object for record in records}
    assert set(there) == {("Pod", "shop"), ("Event", "shop"), ("DeviceClass", "")}
    pod = there["Pod", "shop"]
    assert pod["status"]["conditions"] == [{"type": "PodScheduled", "status": "False"}]
    said = {one.object["reason"]: one.object for one in records if one.kind == "Event"}
    failed = said["FailedScheduling"]
    assert failed["message"] == "0/1 nodes are available: 1 x."
    assert failed["source"] == {"component": "default-scheduler"}
    assert failed["involvedObject"]["name"] == "web-1"
    assert said["Other"]["message"] == "something else"
