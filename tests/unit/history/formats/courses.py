"""Files that hold a course of changes: watches, audit events in every envelope, stores, traces."""

import base64
import csv
import gzip
import hashlib
import io
import json
from datetime import datetime

import msgspec
import zstandard

from tests.unit.history.formats import dumps, truth
from tests.unit.history.khi_files import KhiFile
from tests.unit.history.test_etcd import bolt, key_value, revision
from tests.unit.history.test_kine import database


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values)


def docker_log(folder):
    """What a program printed over many lines, in the JSON that Docker makes of each."""
    shown = json.dumps({"apiVersion": "v1", "kind": "List", "items": truth.objects()}, indent=2)
    entry = {"stream": "stdout", "time": "2026-01-05T00:00:00Z"}
    text = lines({"log": f"{line}\n", **entry} for line in shown.splitlines())
    return dumps.one(folder, "id-json.log", text)


def watch_stream(folder):
    return dumps.one(
        folder, "w.jsonl", lines({"type": "ADDED", "object": tree} for tree in truth.objects())
    )


def audit_events(level="RequestResponse"):
    """A creation of every object."""
    for number, tree in enumerate(truth.objects()):
        metadata = tree["metadata"]
        group, _, version = tree["apiVersion"].rpartition("/")
        event = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": level,
            "auditID": f"00000000-0000-4000-9000-{number:012d}",
            "stage": "ResponseComplete",
            "requestURI": f"/made/{number}",
            "verb": "create",
            "user": {"username": "alice", "groups": ["system:authenticated"]},
            "sourceIPs": ["10.0.0.1"],
            "userAgent": "kubectl/v1.36.2",
            "objectRef": {
                "resource": truth.PLURALS[tree["kind"]],
                "namespace": metadata.get("namespace", ""),
                "name": metadata["name"],
                "apiGroup": group,
                "apiVersion": version,
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": f"2026-01-02T03:04:{number:02d}.000000Z",
            "stageTimestamp": f"2026-01-02T03:04:{number:02d}.500000Z",
            "annotations": {"authorization.k8s.io/decision": "allow"},
        }
        if level == "RequestResponse":
            event["responseObject"] = tree
        yield event


def audit_log(folder):
    return dumps.one(folder, "audit.log", lines(audit_events()))


def audit_batches(folder):
    events = list(audit_events())
    batches = [
        {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": part}
        for part in (events[:3], events[3:])
    ]
    return dumps.one(folder, "webhook.json", lines(batches))


def audit_metadata(folder):
    return dumps.one(folder, "audit.log", lines(audit_events("Metadata")))


def cloudwatch(folder):
    """What `aws logs filter-log-events` and `get-log-events` print."""
    events = [
        {"logStreamName": "kube-apiserver-audit-1", "timestamp": 1, "message": json.dumps(event)}
        for event in audit_events()
    ]
    return dumps.one(folder, "eks.json", {"events": events, "searchedLogStreams": []})


def cloudwatch_subscription(folder):
    batch = {"messageType": "DATA_MESSAGE", "logGroup": "/aws/eks/x/cluster", "logEvents": []}
    batch["logEvents"] = [{"id": "1", "message": json.dumps(event)} for event in audit_events()]
    return dumps.one(folder, "batch.gz", gzip.compress(json.dumps(batch).encode()))


def azure_resource_logs(folder):
    records = [
        {
            "time": event["stageTimestamp"],
            "category": "kube-audit",
            "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
            "properties": {"log": json.dumps(event) + "\n", "stream": "stdout", "pod": "kube-api"},
        }
        for event in audit_events()
    ]
    return dumps.one(folder, "PT1H.json", lines(records))


def azure_table(folder):
    rows = [
        {
            "TimeGenerated": event["stageTimestamp"],
            "AuditId": event["auditID"],
            "Level": event["level"],
            "Stage": event["stage"],
            "RequestUri": event["requestURI"],
            "Verb": event["verb"],
            "User": json.dumps(event["user"]),
            "UserAgent": event["userAgent"],
            "ObjectRef": event["objectRef"],
            "ResponseStatus": event["responseStatus"],
            "ResponseObject": event["responseObject"],
            "RequestReceivedTime": event["requestReceivedTimestamp"],
            "StageReceivedTime": event["stageTimestamp"],
            "Type": "AKSAudit",
        }
        for event in audit_events()
    ]
    return dumps.one(folder, "aks.json", rows)


def table_of(folder, name, rows):
    """A table as consoles of clouds export it, with the mark that they put before it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return dumps.one(folder, name, b"\xef\xbb\xbf" + text.getvalue().encode())


def portal_time(text):
    """A time as the portal of Azure writes it."""
    return datetime.fromisoformat(text).strftime("%m/%d/%Y, %I:%M:%S.%f %p")


def azure_diagnostics_table(folder):
    rows = [
        {
            "TimeGenerated [UTC]": portal_time(event["stageTimestamp"]),
            "Category": "kube-audit",
            "log_s": json.dumps(event, indent=1),
            "Type": "AzureDiagnostics",
        }
        for event in audit_events()
    ]
    return table_of(folder, "query_data.csv", rows)


def azure_portal_table(folder):
    rows = [
        {
            "TenantId": "t",
            "AuditId": event["auditID"],
            "Level": event["level"],
            "Stage": event["stage"],
            "RequestUri": event["requestURI"],
            "Verb": event["verb"],
            "User": json.dumps(event["user"]),
            "ObjectRef": json.dumps(event["objectRef"]),
            "ResponseStatus": json.dumps(event["responseStatus"]),
            "RequestObject": "",
            "ResponseObject": json.dumps(event["responseObject"]),
            "RequestReceivedTime [UTC]": portal_time(event["requestReceivedTimestamp"]),
            "StageReceivedTime [UTC]": portal_time(event["stageTimestamp"]),
        }
        for event in audit_events()
    ]
    return table_of(folder, "AKSAudit.csv", rows)


def cloudwatch_insights_table(folder):
    rows = [
        {"@timestamp": event["stageTimestamp"], "@message": json.dumps(event)}
        for event in audit_events()
    ]
    return table_of(folder, "logs-insights-results.csv", rows)


def google_table(folder):
    rows = []
    for entry in google_entries():
        payload = entry["protoPayload"]
        rows.append(
            {
                "insertId": entry["insertId"],
                "protoPayload.@type": payload["@type"],
                "protoPayload.authenticationInfo.principalEmail": "alice",
                "protoPayload.methodName": payload["methodName"],
                "protoPayload.resourceName": payload["resourceName"],
                "protoPayload.response": json.dumps(payload["response"]),
                "resource.type": "k8s_cluster",
                "timestamp": entry["timestamp"],
            }
        )
    return table_of(folder, "downloaded-logs.csv", rows)


def google(folder):
    """What `gcloud logging read --format json` prints."""
    return dumps.one(folder, "gke.json", google_entries())


def google_rows(folder):
    """What `bq query --format json` prints of a table with the entries: bodies are text."""
    rows = []
    for entry in google_entries():
        payload = {**entry["protoPayload"], "requestJson": None, "status": {"code": "0"}}
        payload["responseJson"] = json.dumps(payload.pop("response"))
        del payload["@type"]
        time = entry["timestamp"].replace("T", " ").replace("Z", " UTC")
        row = {"insertId": entry["insertId"], "operation": None, "timestamp": time}
        rows.append({**row, "protopayload_auditlog": payload})
    return dumps.one(folder, "rows.json", rows)


def google_entries():
    entries = []
    for event in audit_events():
        reference, tree = event["objectRef"], dict(event["responseObject"])
        group, version = reference["apiGroup"] or "core", reference["apiVersion"]
        place = f"namespaces/{reference['namespace']}/" if reference["namespace"] else ""
        plural, name = reference["resource"], reference["name"]
        dotted = f"{group.removesuffix('.k8s.io')}.{version}.{plural}"
        suffix = "" if group.endswith(".k8s.io") else ".k8s.io"
        tree["@type"] = f"{group}{suffix}/{version}.{tree.pop('kind')}"
        del tree["apiVersion"]
        entries.append(
            {
                "insertId": event["auditID"],
                "protoPayload": {
                    "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
                    "authenticationInfo": {"principalEmail": "alice"},
                    "methodName": f"io.k8s.{dotted}.create",
                    "requestMetadata": {"callerSuppliedUserAgent": "kubectl/v1.36.2"},
                    "resourceName": f"{group}/{version}/{place}{plural}/{name}",
                    "response": tree,
                    "serviceName": "k8s.io",
                    "status": {"code": 0},
                },
                "resource": {"type": "k8s_cluster"},
                "timestamp": event["stageTimestamp"],
            }
        )
    return entries


def elasticsearch(folder):
    hits = [{"_index": "k8s", "_source": {"kubernetes": {"audit": e}}} for e in audit_events()]
    return dumps.one(folder, "hits.json", {"took": 3, "hits": {"total": 8, "hits": hits}})


def elasticsearch_flat(folder):
    def flat(tree, prefix):
        for name, value in tree.items():
            if isinstance(value, dict) and name not in ("responseObject", "annotations"):
                yield from flat(value, f"{prefix}{name}.")
            else:
                yield f"{prefix}{name}", value

    rows = (dict(flat(event, "kubernetes.audit.")) for event in audit_events())
    return dumps.one(folder, "flat.jsonl", lines(rows))


def splunk(folder):
    rows = ({"preview": False, "result": {"_raw": json.dumps(e)}} for e in audit_events())
    return dumps.one(folder, "splunk.json", lines(rows))


def syslog(folder):
    head = "Jan  2 03:04:05 master-1 kube-apiserver[812]: "
    text = "".join(head + json.dumps(event) + "\n" for event in audit_events())
    return dumps.one(folder, "messages", "Jan  2 03:04:04 master-1 systemd[1]: Started.\n" + text)


def kwok(folder):
    import yaml

    patch = {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
        "kind": "ResourcePatch",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "target": {"name": "web-1", "namespace": "shop"},
        "durationNanosecond": 1_000_000_000,
        "method": "patch",
        "template": {"metadata": {"labels": {"patched": "yes"}}},
    }
    return dumps.one(folder, "recording.yaml", yaml.safe_dump_all([*truth.objects(), patch]))


def kshrk_archive(folder):
    """A list of each kind, later a list without the claim, and a watched change of the pod."""
    records = []

    def answer(path, body, second, **more):
        records.append(
            {
                "id": f"r{len(records)}",
                "captured_at": f"2026-01-02T03:05:{second:02d}Z",
                "api_path": path,
                "http_method": "GET",
                "response_code": 200,
                "response_body": body,
                **more,
            }
        )

    for kind, plural in truth.PLURALS.items():
        answer(f"/apis/made/v1/{plural}", truth.typed_list(kind), 1)
    answer("/api/v1/pods?as=Table", {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}, 1)
    answer("/apis/made/v1/resourceclaims", truth.typed_list("ResourceClaim", is_empty=True), 2)
    (pod,) = truth.objects("Pod")
    pod["metadata"]["resourceVersion"] = "300"
    pod["status"]["phase"] = "Failed"
    answer("/api/v1/pods", pod, 3, event_type="MODIFIED")
    files = {"k8shark-capture/metadata.json": {"format_version": 2, "capture_id": "x"}}
    files["k8shark-capture/index.json.zst"] = zstandard.compress(b'{"entries": {}}')
    for number, record in enumerate(records):
        content = zstandard.compress(json.dumps(record).encode())
        digest = hashlib.sha256(record["api_path"].encode()).hexdigest()[:16]
        files[f"k8shark-capture/records/{digest}/{number}.json.zst"] = content
    return dumps._tar_of(folder, "capture.kshrk", files, gzip.compress)


def simulator_record(folder):
    rows = (
        {"time": f"2026-01-02T03:04:{number:02d}.123456789Z", "event": "Add", "resource": tree}
        for number, tree in enumerate(truth.objects())
    )
    return dumps.one(folder, "record.jsonl", lines(rows))


def simkube(folder):
    trace = {
        "version": 2,
        "config": {"trackedObjects": {}},
        "events": [{"ts": 1_767_323_045, "applied_objs": truth.objects(), "deleted_objs": []}],
        "index": {},
        "pod_lifecycles": {},
    }
    return dumps.one(folder, "x.sktrace", msgspec.msgpack.encode(trace))


def khi(folder):
    file = KhiFile()
    for second, tree in enumerate(truth.objects()):
        file.revision(tree, at=f"2026-01-02T03:04:{second:02d}Z")
    return dumps.one(folder, "inspection.khi", file.content())


def _stored():
    for number, tree in enumerate(truth.objects(), start=2):
        stored = {**tree, "metadata": dict(tree["metadata"])}
        del stored["metadata"]["resourceVersion"]
        namespace, name = tree["metadata"].get("namespace", ""), tree["metadata"]["name"]
        plural = "minions" if tree["kind"] == "Node" else truth.PLURALS[tree["kind"]]
        path = "/".join(part for part in (plural, namespace, name) if part)
        yield number, path, msgspec.json.encode(stored)


def etcd_snapshot(folder):
    entries = [
        (revision(number), key_value(f"/registry/{path}".encode(), 1, value))
        for number, path, value in _stored()
    ]
    return dumps.one(folder, "snapshot.db", bolt(entries))


def etcd_folder(folder):
    """The data folder of a member, with the prefix of another distribution."""
    entries = [
        (revision(number), key_value(f"/kubernetes.io/{path}".encode(), 1, value))
        for number, path, value in _stored()
    ]
    return dumps.write(
        folder / "default.etcd",
        {
            "member/snap/db": bolt(entries, digest=False),
            "member/wal/0000000000000000-0000000000000000.wal": b"\0\1\2\3" * 64,
        },
    )


def etcdctl_json(folder):
    """What `etcdctl get --prefix -w json` answers: keys and values in base64."""
    pairs = [
        {
            "key": base64.b64encode(f"/registry/{path}".encode()).decode(),
            "create_revision": number,
            "mod_revision": number,
            "version": 1,
            "value": base64.b64encode(value).decode(),
        }
        for number, path, value in _stored()
    ]
    return dumps.one(folder, "registry.json", {"header": {"revision": 9}, "kvs": pairs, "count": 8})


def etcdctl_fields(folder):
    """What `-w fields` prints: bytes that are no letters as Go writes them between quotes."""
    lines = ['"ClusterID" : 1', '"MemberID" : 2', '"Revision" : 9', '"RaftTerm" : 2']
    for number, path, value in _stored():
        lines += [f'"Key" : "/registry/{path}"', f'"CreateRevision" : {number}']
        lines += [f'"ModRevision" : {number}', '"Version" : 1']
        lines += [f'"Value" : "{"".join(map(_of_go, value))}"', '"Lease" : 0']
    lines += ['"More" : false', '"Count" : 8']
    return dumps.one(folder, "registry.txt", "\n".join(lines) + "\n")


def etcdctl_simple(folder):
    """What etcdctl prints without `-w`: keys and the bytes of values, with a newline each."""
    pairs = [f"/registry/{path}\n".encode() + value + b"\n" for _, path, value in _stored()]
    path = folder / "registry.txt"
    path.write_bytes(b"".join(pairs))
    return path


def etcdctl_watch(folder):
    """What `etcdctl watch --prefix` prints: a line before each key says what happened."""
    writes = [f"PUT\n/registry/{path}\n".encode() + value + b"\n" for _, path, value in _stored()]
    writes.append(b"DELETE\n/registry/pods/shop/never-seen\n\n")
    path = folder / "writes.txt"
    path.write_bytes(b"".join(writes))
    return path


def _of_go(byte):
    letters = {9: "\\t", 10: "\\n", 34: '\\"', 92: "\\\\"}
    return letters.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}")


def kine(folder):
    rows = [(1, "compact_rev_key", 1, 0, 0, b"")]
    rows += [(number, f"/registry/{path}", 1, 0, 0, value) for number, path, value in _stored()]
    return database(folder / "state.db", rows)


def scheduler_log(folder):
    text = (
        'I0102 03:04:05.000001       1 eventhandlers.go:149] "Add event for pod" pod="shop/web-1"\n'
        'I0102 03:04:05.000002       1 schedule_one.go:83] "Attempting to schedule pod" '
        'pod="shop/web-1"\n'
        'I0102 03:04:05.000003       1 schedule_one.go:1105] "Unable to schedule pod; no fit; '
        'waiting" pod="shop/web-1" err="0/1 nodes are available: 1 cannot allocate all claims."\n'
        'I0102 03:04:06.000004       1 schedule_one.go:314] "Successfully bound pod to node" '
        'pod="shop/web-1" node="n1" evaluatedNodes=1 feasibleNodes=1\n'
    )
    return dumps.one(folder, "kube-scheduler.log", text)
