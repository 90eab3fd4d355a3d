"""What people paste and attach in reports about drivers, kubelets and schedulers, form by form."""

import csv
import io
import json
import textwrap

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from tests.unit.history.formats.test_every_format import RULES
from tests.unit.history.test_logged_events import POD, klog
from tests.unit.history.test_service_forms import CLAIMS, EVENTS, dense
from tests.unit.history.test_wrapped_texts import AT, CLAIM, LINES, keys, read

ONE = (Op.ADDED, "ResourceClaim", "shop", "one")
STORED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "7"},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Pending"},
}


def objects(records, kind):
    return [each.object for each in records if each.kind == kind]


def table(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def folder_of(path, files):
    for name, text in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    with open_history([path], ReadOptions()) as history:
        return list(history.records()), [lost.problem for lost in history.refusals]


def test_kubectl_events_with_a_series(tmp_path):
    text = (
        "$ kubectl events -n shop --for pod/web-1\n"
        "LAST SEEN               TYPE      REASON             OBJECT      MESSAGE\n"
        "4m43s (x12 over 20m)    Warning   FailedScheduling   Pod/web-1   0/1 nodes are available\n"
        "10s                     Normal    Scheduled          Pod/web-1   Successfully assigned\n"
    )
    records, lost = read(tmp_path, text)
    events = objects(records, "Event")
    assert [(each["reason"], each.get("count")) for each in events] == [
        ("FailedScheduling", 12),
        ("Scheduled", None),
    ]
    assert {each["metadata"]["namespace"] for each in events} == {"shop"}
    assert {each["involvedObject"]["name"] for each in events} == {"web-1"}
    assert lost == []


def test_rows_of_watched_events_without_their_titles_are_read(tmp_path):
    text = (
        f"{CLAIM}---\nkubectl get events -n shop -w\n\n"
        "8m2s        Normal    NodeReady             node/n1                 it is ready\n"
        "5m19s       Warning   ClaimPrepareFailed    resourceclaim/one       Link not found\n"
    )
    records, lost = read(tmp_path, text)
    said = [
        (each.object["involvedObject"]["name"], each.object["reason"], each.object["message"])
        for each in records
        if each.kind == "Event"
    ]
    assert said == [
        ("n1", "NodeReady", "it is ready"),
        ("one", "ClaimPrepareFailed", "Link not found"),
    ]
    assert lost == []


def test_rows_of_wide_events_without_their_titles_are_lost(tmp_path):
    row = (
        "5m19s   Warning   Failed   pod/web   spec.containers{c}   kubelet, n1   gone   5m   1   x"
    )
    records, lost = read(tmp_path, f"{CLAIM}---\nkubectl get events -n shop -w -o wide\n\n{row}\n")
    assert keys(records) == [ONE]
    assert any("events" in each for each in lost)


@pytest.mark.parametrize("command", ["pods", "ps"])
def test_tables_of_a_container_runtime_are_no_objects_of_the_cluster(tmp_path, command):
    shown = {
        "pods": (
            "POD ID          CREATED        STATE    NAME    NAMESPACE   ATTEMPT   RUNTIME\n"
            "63b24e530e044   5 minutes ago  Ready    web-1   shop        0         (default)\n"
        ),
        "ps": (
            "CONTAINER   IMAGE    CREATED        STATE     NAME   ATTEMPT   POD ID   POD\n"
            "dfebbb65    3d1873   5 minutes ago  Running   ctr    0         63b24e   web-1\n"
        ),
    }
    text = f"$ sudo crictl {command}\n{shown[command]}\n```yaml\n{CLAIM}```\n"
    records, _ = read(tmp_path, text)
    assert keys(records) == [ONE]


def test_audit_events_behind_the_words_of_kail(tmp_path):
    text = "".join(
        f"kube-system/kube-apiserver-a[kube-apiserver]: {dense(event)}\n" for event in EVENTS
    )
    records, lost = read(tmp_path, text)
    assert keys(records) == CLAIMS
    assert lost == []


def test_logs_that_grafana_exports_as_a_table(tmp_path):
    rows = [
        (
            json.dumps({"app": "api"}),
            "2026-01-01 00:00:01.500",
            dense(event),
            str(1767225601500000000),
        )
        for event in EVENTS
    ]
    text = table([("labels", "Time", "Line", "tsNs"), *rows])
    records, lost = read(tmp_path, text, name="Explore-logs-2026-01-01.csv")
    assert keys(records) == CLAIMS
    assert lost == []


def test_logs_that_grafana_exports_as_text(tmp_path):
    head = 'Common labels: {"app":"api"}\nLine limit: "1000 (2 returned)"\n\n\n'
    lines = "".join(f"2026-01-01 00:00:01.500\t{dense(event)}\n" for event in EVENTS)
    records, lost = read(tmp_path, head + lines, name="Explore-logs.txt")
    assert keys(records) == CLAIMS
    assert lost == []


def test_events_in_hits_of_a_search(tmp_path):
    """An exporter writes Events as clients have them, without kind and version."""
    event = {
        "metadata": {"name": "web-1.1", "namespace": "shop", "uid": "u-e", "resourceVersion": "4"},
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "type": "Warning",
        "lastTimestamp": "2026-01-01T00:00:07Z",
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1"},
    }
    hits = {"took": 1, "hits": {"total": {"value": 1}, "hits": [{"_index": "e", "_source": event}]}}
    records, lost = read(tmp_path, json.dumps(hits, indent=1), name="hits.json")
    assert keys(records) == [(Op.BASELINE, "Event", "shop", "web-1.1")]
    assert records[0].object["message"] == "0/1 nodes are available"
    assert lost == []


def test_lines_of_klog_in_a_table_of_datadog(tmp_path):
    rows = [("2027-01-02T03:04:05.1Z", "n1", "kube-scheduler", line) for line in LINES]
    text = table([("Date", "Host", "Service", "Message"), *rows])
    records, lost = read(tmp_path, text, name="extract.csv")
    assert [each.verb for each in records] == ["attempt", "unschedulable"]
    assert lost == []


def test_events_of_a_table_of_splunk(tmp_path):
    rows = [("2026-01-01T00:00:01.500+0000", dense(event), "n1", "audit.log") for event in EVENTS]
    text = table([("_time", "_raw", "host", "source"), *rows])
    records, lost = read(tmp_path, text, name="1767225601_1.csv")
    assert keys(records) == CLAIMS
    assert lost == []


def test_objects_of_jq_are_objects_and_fields_that_it_selects_are_none(tmp_path):
    whole = json.dumps(STORED, separators=(",", ":"))
    selected = json.dumps({"name": "web-1", "node": "n1", "phase": "Pending"})
    records, _ = read(tmp_path, f"{whole}\n{selected}\n")
    assert keys(records) == [(Op.BASELINE, "Pod", "shop", "web-1")]
    with pytest.raises(InputError):
        read(tmp_path, f"{selected}\n{selected}\n")


def test_kyaml_between_fences(tmp_path):
    text = (
        "### claim\n```yaml\n---\n{\n"
        '  apiVersion: "resource.k8s.io/v1",\n  kind: "ResourceClaim",\n  metadata: {\n'
        '    name: "one",\n    namespace: "shop",\n  },\n  spec: {\n    devices: {\n'
        '      requests: [{\n        name: "gpu",\n        exactly: {\n'
        '          deviceClassName: "gpu.example.com",\n        },\n      }],\n    },\n  },\n'
        "}\n```\n"
    )
    records, lost = read(tmp_path, text, name="issue.md")
    assert keys(records) == [ONE]
    requests = records[0].object["spec"]["devices"]["requests"]
    assert requests[0]["exactly"]["deviceClassName"] == "gpu.example.com"
    assert lost == []


@pytest.mark.parametrize(
    ("after", "broken"), [("and so on\n\n", 1), ("", 1), ("  },\n},\n", 0), ("  },\n}\n", 0)]
)
def test_object_in_kyaml_that_breaks_off_is_a_loss_and_the_next_one_is_read(
    tmp_path, after, broken
):
    claim = '{\n  apiVersion: "resource.k8s.io/v1",\n  kind: "ResourceClaim",\n  metadata: {\n'
    whole = claim + '    name: "one",\n    namespace: "shop",\n  },\n  spec: {},\n}\n'
    records, lost = read(tmp_path, f"the first:\n{claim}{after}{whole}", name="issue.md")
    assert ONE in keys(records)
    assert sum("breaks off" in str(each) for each in lost) == broken


def test_folder_of_oc_adm_inspect(tmp_path):
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [STORED], "metadata": {}}
    claims = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimList", "items": None}
    sliced = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n" + (
        "metadata:\n  name: n1-gpu\n  uid: u-s\n  resourceVersion: '9'\nspec:\n  nodeName: n1\n"
        "  driver: gpu.example.com\n  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n"
    )
    own = "---\n" + json.dumps(STORED)
    at = "inspect.local.1"
    records, lost = folder_of(
        tmp_path,
        {
            f"{at}/namespaces/shop/core/pods.yaml": "---\n" + json.dumps(pods),
            f"{at}/namespaces/shop/pods/web-1/web-1.yaml": own,
            f"{at}/namespaces/shop/resource.k8s.io/resourceclaims.yaml": json.dumps(claims),
            f"{at}/namespaces/shop/pods/web-1/ctr/ctr/logs/current.log": "2026-01-01T0Z a\n",
            f"{at}/cluster-scoped-resources/resource.k8s.io/resourceslices/n1-gpu.yaml": sliced,
            f"{at}/timestamp": "2026-01-01 00:00:00 +0000 UTC\n",
        },
    )
    assert sorted(key[1:] for key in keys(records)) == [
        ("Pod", "shop", "web-1"),
        ("ResourceSlice", "", "n1-gpu"),
    ]
    assert lost == []


def test_columns_that_somebody_chose_are_no_table_of_a_kind(tmp_path):
    text = (
        "$ kubectl get resourceclaims -n shop -o custom-columns=NAME:.metadata.name,"
        "NODE:.status.allocation.nodeSelector,STATUS:.status.x\n"
        "NAME   NODE   STATUS\none    n1     Running\n"
        f"```yaml\n{CLAIM}```\n"
    )
    records, _ = read(tmp_path, text)
    assert {(each.kind, each.name) for each in records} == {("ResourceClaim", "one")}
    assert {*records[0].object} == {"apiVersion", "kind", "metadata", "spec"}


def test_screen_of_k9s_names_no_wrong_object(tmp_path):
    text = (
        "┌──────────────────────── Pods(shop)[1] ────────────────────────┐\n"
        "│ NAME↑        PF READY STATUS    RESTARTS IP         NODE  AGE  │\n"
        "│ web-1        ●  1/1   Running          0 10.0.0.7   n1    5m   │\n"
        "└────────────────────────────────────────────────────────────────┘\n"
    )
    records, _ = read(tmp_path, f"{text}\n```yaml\n{CLAIM}```\n")
    assert ONE in keys(records)
    assert {(each.kind, each.name) for each in records} <= {
        ("ResourceClaim", "one"),
        ("Pod", "web-1"),
    }


def test_logs_of_kind_show_an_event_in_two_files(tmp_path):
    line = f"Jan 02 03:04:05 kind-worker kubelet[222]: {klog(POD)}\n"
    again = line.replace("03:04:05.000006", "03:04:09.000006")
    records, lost = folder_of(
        tmp_path,
        {
            "kind-worker/kubelet.log": line + again,
            "kind-worker/journal.log": "Jan 02 03:04:04 kind-worker systemd[1]: Started\n"
            + line
            + again,
            "kind-worker/kubernetes-version.txt": "Kubernetes v1.36.2\n",
            "kind-control-plane/inspect.json": json.dumps([{"Id": "a", "Config": {}}]),
        },
    )
    [event] = objects(records, "Event")
    assert event["count"] == 2
    assert lost == []


STAMPS = {
    "GitHub": "2026-01-02T03:04:05.1234567Z ",
    "Jenkins": "[2026-01-02T03:04:05.123Z] ",
    "kubectl logs --timestamps": "2026-01-02T03:04:05.123456789Z ",
    "docker compose": "driver-1  | ",
}


@pytest.mark.parametrize("form", ["YAML", "JSON", "a table"])
@pytest.mark.parametrize("stamp", STAMPS)
def test_what_a_job_prints_has_its_time_before_each_line(tmp_path, stamp, form):
    shown = {
        "YAML": CLAIM,
        "JSON": json.dumps(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "one", "namespace": "shop"},
                "spec": {"devices": {"requests": []}},
            },
            indent=2,
        ),
        "a table": "NAMESPACE   NAME   STATE     AGE\nshop        one    pending   5s\n",
    }
    text = f"Run kubectl get\n+ kubectl get resourceclaims -A\n{shown[form]}\nall is done\n"
    lines = "".join(f"{STAMPS[stamp]}{line}\n" for line in text.splitlines())
    records, lost = read(tmp_path, lines, name="job.log")
    assert [key[1:] for key in keys(records)] == [ONE[1:]]
    assert lost == []


def test_claim_of_an_older_version_that_is_described(tmp_path):
    text = textwrap.dedent(
        """\
        # kubectl describe resourceclaim -n shop one
        Name:         one
        Namespace:    shop
        Labels:       <none>
        Annotations:  <none>
        API Version:  resource.k8s.io/v1beta1
        Kind:         ResourceClaim
        Metadata:
          Creation Timestamp:  2026-01-02T03:04:05Z
          Finalizers:
            resource.kubernetes.io/delete-protection
          Resource Version:  77
          UID:               13584603-d6ae-4576-a799-919f10d6283e
        Spec:
          Devices:
            Requests:
              Allocation Mode:    ExactCount
              Count:              1
              Device Class Name:  gpu.example.com
              Name:               gpu
        Status:
          Allocation:
            Devices:
              Results:
                Device:   gpu-0
                Driver:   gpu.example.com
                Pool:     n1
                Request:  gpu
            Node Selector:
              Node Selector Terms:
                Match Fields:
                  Key:       metadata.name
                  Operator:  In
                  Values:
                    n1
          Reserved For:
            Name:      web-1
            Resource:  pods
            UID:       u-1
        Events:        <none>
        """
    )
    records, lost = read(tmp_path, text, rules=RULES)
    [claim] = objects(records, "ResourceClaim")
    results = claim["status"]["allocation"]["devices"]["results"]
    assert results == [
        {"device": "gpu-0", "driver": "gpu.example.com", "pool": "n1", "request": "gpu"}
    ]
    assert claim["status"]["reservedFor"] == [{"name": "web-1", "resource": "pods", "uid": "u-1"}]
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert lost == []


def test_slices_with_long_names_in_a_report(tmp_path):
    node = "gke-node-a.example.internal"
    rows = [
        ("NAME", "NODE", "DRIVER", "POOL", "AGE"),
        (f"{node}-compute-domain.nvidia.com-b", node, "compute-domain.nvidia.com", node, "44h"),
        (f"{node}-gpu.nvidia.com-sgw47", node, "gpu.nvidia.com", node, "44h"),
    ]
    shown = "".join("".join(f"{cell:66}" for cell in row).rstrip() + "\n" for row in rows)
    text = f"**ResourceSlices**\n```\n$ kubectl get resourceslices -o wide\n{shown}```\n"
    records, lost = read(tmp_path, text)
    assert [each["spec"] for each in objects(records, "ResourceSlice")] == [
        {"nodeName": node, "driver": driver, "pool": {"name": node}}
        for driver in ("compute-domain.nvidia.com", "gpu.nvidia.com")
    ]
    assert lost == []


def test_messages_of_a_chat_have_their_marks_escaped(tmp_path):
    """Slack's exports and API escape three characters in texts."""
    claim = CLAIM + (
        "        selectors:\n        - cel:\n"
        "            expression: device.capacity['x'].mem > quantity('1Gi') && true\n"
    )
    text = claim.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    message = {"type": "message", "user": "U1", "ts": "1767323045.000100", "text": f"```{text}```"}
    records, lost = read(tmp_path, json.dumps([message], indent=1), name="2026-01-02.json")
    assert keys(records) == [ONE]
    exactly = records[0].object["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["selectors"][0]["cel"]["expression"].endswith("> quantity('1Gi') && true")
    assert lost == []


def test_line_of_the_scheduler_at_a_time_of_its_zone_is_read_beside_others(tmp_path):
    """A journal of several units, as `journalctl -o short-iso` prints it."""
    text = "".join(
        f"2026-01-02T05:04:05+0100 n1 {unit}[{number}]: {line}\n"
        for number, (unit, line) in enumerate(
            [("kubelet", klog(POD)), ("kube-scheduler", LINES[0]), ("systemd", "Started x.")]
        )
    )
    records, lost = read(tmp_path, text, at=AT)
    assert sorted(each.kind for each in records) == ["Event", "Pod"]
    [event] = objects(records, "Event")
    assert event["lastTimestamp"] == "2026-01-02T04:04:05Z"
    assert lost == []


def test_words_between_borders_of_yaml_are_read_like_any_text(tmp_path):
    """Words without a colon are a document of YAML, and a table in them was passed over unsaid."""
    text = (
        f"{CLAIM}---\nthe pods\n\nNAMESPACE   NAME    READY   STATUS    RESTARTS   AGE   NODE\n"
        f"shop        web-1   0/1     Pending   0          5m    n1\n---\n"
        f"{CLAIM.replace('one', 'two')}"
    )
    records, lost = read(tmp_path, text, name="bug.yaml")
    assert sorted(key[1:] for key in keys(records)) == [
        ("Pod", "shop", "web-1"),
        ("ResourceClaim", "shop", "one"),
        ("ResourceClaim", "shop", "two"),
    ]
    assert lost == []


@pytest.mark.parametrize("stamp", STAMPS)
def test_lines_of_a_log_without_a_document_keep_their_beginnings(tmp_path, stamp):
    """A message with a colon behind a time is no field of an object."""
    lines = "".join(f"{STAMPS[stamp]}type: {n}: it works\n" for n in range(5))
    records, lost = read(tmp_path, f"{lines}```yaml\n{CLAIM}```\n", name="job.log")
    assert keys(records) == [ONE]
    assert lost == []
