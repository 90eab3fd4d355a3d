"""Texts as they reach a bug report: coloured, compared, cut, or as a collector keeps lines."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Op
from app.domain.values import timestamps

CLAIM = (
    "apiVersion: resource.k8s.io/v1\n"
    "kind: ResourceClaim\n"
    "metadata:\n"
    "  name: one\n"
    "  namespace: shop\n"
    "spec:\n"
    "  devices:\n"
    "    requests:\n"
    "    - name: gpu\n"
    "      exactly:\n"
    "        deviceClassName: gpu.example.com\n"
)
ATTEMPT = '"Attempting to schedule pod" pod="shop/web-1"'
FAILURE = (
    '"Unable to schedule pod; no fit; waiting" pod="shop/web-1" '
    'err="0/1 nodes are available: 1 cannot allocate all claims."'
)
LINES = (
    f"I0102 03:04:05.000002       1 schedule_one.go:83] {ATTEMPT}",
    f"I0102 03:04:05.000003       1 schedule_one.go:1105] {FAILURE}",
)
AT = "2026-01-05T00:00:00Z"


def read(folder, text, *, name="text", at=None, rules=None):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    options = ReadOptions(at=None if at is None else timestamps.parse(at), rules=rules)
    with open_history([path], options) as history:
        records = list(history.records())
        return records, [lost.place + ": " + lost.problem for lost in history.refusals]


def keys(records):
    return [(record.op, record.kind, record.namespace, record.name) for record in records]


def test_page_of_html_gives_what_is_pasted_in_it(tmp_path):
    escaped = CLAIM.replace("gpu.example.com", "gpu.example.com # a &lt; b &amp;&amp; c")
    coloured = escaped.replace("kind", '<span class="pl-ent">kind</span>')
    page = (
        "<!DOCTYPE html>\n<html><head><script>var kind = 1;</script></head><body>\n"
        f"<p>kind: prose</p>\n<div><pre>{coloured}</pre></div>\n"
        "<pre><code>NAME    STATE     AGE\ntwo     pending   5s\n</code></pre></body></html>"
    )
    records, lost = read(tmp_path, page, name="issue.html")
    assert keys(records) == [
        (Op.ADDED, "ResourceClaim", "shop", "one"),
        (Op.BASELINE, "ResourceClaim", "default", "two"),
    ]
    assert lost == []


def test_file_that_a_comparison_adds_is_read_without_its_plus_signs(tmp_path):
    added = "".join(f"+{line}\n" for line in CLAIM.splitlines())
    header = "diff --git a/c.yaml b/c.yaml\n--- /dev/null\n+++ b/c.yaml\n@@ -0,0 +1,11 @@\n"
    records, lost = read(tmp_path, f"```diff\n{header}{added}```\n")
    assert keys(records) == [(Op.ADDED, "ResourceClaim", "shop", "one")]
    assert records[0].object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert lost == []


def test_object_that_an_apply_would_make_is_none(tmp_path):
    """`kubectl diff` compares what is there with what a dry run on the server answers."""
    added = "".join(f"+{line}\n" for line in CLAIM.splitlines())
    text = (
        "diff -u -N /x/LIVE-1/a.shop.one /x/MERGED-2/a.shop.one\n--- /x/LIVE-1/a.shop.one\tx\n"
        f"+++ /x/MERGED-2/a.shop.one\tx\n@@ -0,0 +1,9 @@\n{added}"
    )
    other = CLAIM.replace("name: one", "name: two")
    records, lost = read(tmp_path, f"{text}\n```yaml\n{other}```\n")
    assert [record.name for record in records] == ["two"]
    assert lost == []


def test_changed_part_of_a_file_is_no_document(tmp_path):
    text = (
        "```diff\n@@ -1,4 +1,4 @@\n-apiVersion: resource.k8s.io/v1beta1\n"
        "+apiVersion: resource.k8s.io/v1\n kind: ResourceClaim\n metadata:\n   name: one\n```\n"
    )
    with pytest.raises(InputError):
        read(tmp_path, text)


def test_colours_of_a_terminal_are_taken_off(tmp_path):
    text = "\x1b[32m$\x1b[0m kubectl get resourceclaims\r\n\x1b[1mNAME   STATE     AGE\x1b[0m\r\n"
    records, _ = read(tmp_path, text + "one    pending   5s\r\n")
    assert keys(records) == [(Op.BASELINE, "ResourceClaim", "default", "one")]


@pytest.mark.parametrize("dots", ["...", "  ...", "  …", "  - ..."])
def test_dots_for_what_was_left_out_are_named_and_the_rest_is_read(tmp_path, dots):
    text = CLAIM.replace("spec:\n", f"{dots}\nspec:\n")
    records, lost = read(tmp_path, f"see\n```\n{text}```\n")
    assert records[0].object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert len(lost) == 1
    assert lost[0].startswith("text:8: the ... stands for a part that was left out")


def test_end_of_a_document_in_a_stream_stays_an_end(tmp_path):
    other = CLAIM.replace("name: one", "name: two")
    records, lost = read(tmp_path, f"{CLAIM}...\n---\n{other}...\nsee above\n")
    assert [record.name for record in records] == ["one", "two"]
    assert lost == []


def test_list_that_breaks_off_gives_the_items_before(tmp_path):
    item = "\n".join(
        ("- " if not number else "  ") + line for number, line in enumerate(CLAIM.splitlines())
    )
    broken = item.replace("name: one", "name: three").replace("namespace: shop", 'namespace: "sh')
    whole = item.replace("name: one", "name: two")
    text = f"apiVersion: v1\nitems:\n{item}\n{whole}\n{broken}\n"
    records, lost = read(tmp_path, text, name="claims.yaml")
    assert [record.name for record in records] == ["one", "two"]
    assert len(lost) == 1
    assert "not YAML" in lost[0]


def test_item_that_is_damaged_takes_no_other_with_it(tmp_path):
    item = "\n".join(
        ("- " if not number else "  ") + line for number, line in enumerate(CLAIM.splitlines())
    )
    damaged = item.replace("namespace: shop", "namespace: shop: shop")
    last = item.replace("name: one", "name: last")
    text = f"apiVersion: v1\nitems:\n{damaged}\n{last}\nkind: List\nmetadata:\n  x: 1\n"
    records, lost = read(tmp_path, f"what I have\n\n{text}")
    assert [record.name for record in records] == ["last"]
    assert len(lost) == 1


def test_document_of_a_text_that_no_server_takes_is_lost_alone(tmp_path):
    old = CLAIM.replace("resource.k8s.io/v1", "resource.k8s.io/v1alpha2").replace("one", "old")
    records, lost = read(tmp_path, f"```\n{old}```\nand\n```\n{CLAIM}```\n")
    assert [record.name for record in records] == ["one"]
    assert len(lost) == 1
    assert "v1alpha2" in lost[0]


def test_rows_that_do_not_stand_below_their_titles_keep_their_words(tmp_path):
    text = (
        "NAME    STATUS   ROLES           AGE   VERSION\n"
        "a-long-name-of-a-node   Ready    control-plane   3d    v1.36.0\n"
        "n2                      NotReady,SchedulingDisabled   <none>   3d   v1.36.0\n"
    )
    records, _ = read(tmp_path, text)
    assert [record.name for record in records] == ["a-long-name-of-a-node", "n2"]
    assert records[1].object["spec"] == {"unschedulable": True}
    assert records[0].object["status"]["nodeInfo"] == {"kubeletVersion": "v1.36.0"}


def test_row_of_which_the_cells_cannot_be_told_apart_is_text(tmp_path):
    text = "NAME    STATUS   ROLES    AGE   VERSION\nsome-longer-name Ready <none> 3d v1\n"
    with pytest.raises(InputError):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "wrap",
    [
        "[pod/kube-scheduler-a/kube-scheduler] {}",
        "kube-scheduler-a kube-scheduler {}",
        "Jan 02 03:04:05 master kube-scheduler[897]: {}",
        "\x1b[32mkube-scheduler-a\x1b[0m › {}",
        "   log: {}",
    ],
)
def test_attempts_are_read_behind_what_a_program_writes_before_a_line(tmp_path, wrap):
    records, _ = read(tmp_path, "".join(wrap.format(line) + "\n" for line in LINES), at=AT)
    assert [record.verb for record in records] == ["attempt", "unschedulable"]
    assert timestamps.micro_text(records[1].observed_at) == "2026-01-02T03:04:05.000003Z"
    assert "1 cannot allocate all claims" in records[1].message


@pytest.mark.parametrize(
    ("field", "stamp"), [("log", "time"), ("textPayload", "timestamp"), ("message", "@timestamp")]
)
def test_attempts_in_the_lines_of_a_collector_have_its_times(tmp_path, field, stamp):
    times = ("2027-01-02T03:04:05.1Z", "2027-01-02T03:04:05.2Z")
    lines = [
        json.dumps({field: line + "\n", stamp: time})
        for line, time in zip(LINES, times, strict=True)
    ]
    records, _ = read(tmp_path, "\n".join(lines))
    assert [record.verb for record in records] == ["attempt", "unschedulable"]
    assert [timestamps.micro_text(record.observed_at) for record in records] == [
        "2027-01-02T03:04:05.100000Z",
        "2027-01-02T03:04:05.200000Z",
    ]


def test_attempts_in_the_form_of_klog_in_json(tmp_path):
    pod = {"namespace": "shop", "name": "web-1"}
    error = {"err": "0/1 nodes are available", "v": 3}
    lines = [
        {"ts": 1767323045000.25, "msg": "Attempting to schedule pod", "pod": pod},
        {"ts": 1767323046000, "msg": "Unable to schedule pod; no fit; waiting", "pod": pod} | error,
        {"ts": 1767323047000, "msg": "Add event for unscheduled pod", "pod": pod},
    ]
    records, _ = read(tmp_path, "\n".join(map(json.dumps, lines)))
    assert [(record.verb, str(record.key)) for record in records] == [
        ("attempt", "pods/shop/web-1"),
        ("unschedulable", "pods/shop/web-1"),
    ]
    assert timestamps.micro_text(records[0].observed_at) == "2026-01-02T03:04:05.000250Z"
    assert records[1].message.endswith("0/1 nodes are available")


def test_attempts_late_in_a_text_are_read(tmp_path):
    text = "a line of prose\n" * 2000 + "\n".join(LINES)
    records, _ = read(tmp_path, text, at=AT)
    assert [record.verb for record in records] == ["attempt", "unschedulable"]


def test_audit_log_of_google_as_yaml(tmp_path):
    entry = """\
insertId: entry-{number}
logName: projects/p/logs/cloudaudit.googleapis.com%2Factivity
protoPayload:
  '@type': type.googleapis.com/google.cloud.audit.AuditLog
  authenticationInfo:
    principalEmail: someone@example.com
  methodName: io.k8s.core.v1.nodes.create
  resourceName: core/v1/nodes/n{number}
  response:
    '@type': core.k8s.io/v1.Node
    apiVersion: v1
    kind: Node
    metadata:
      creationTimestamp: '2026-01-02T03:04:0{number}Z'
      name: n{number}
      resourceVersion: '{number}'
      uid: u{number}
  serviceName: k8s.io
resource:
  type: k8s_cluster
timestamp: '2026-01-02T03:04:0{number}.5Z'
"""
    text = "---\n".join(entry.format(number=number) for number in (1, 2))
    records, lost = read(tmp_path, text, name="entries.yaml")
    assert [(record.op, record.name, record.actor.user) for record in records] == [
        (Op.ADDED, "n1", "someone@example.com"),
        (Op.ADDED, "n2", "someone@example.com"),
    ]
    assert timestamps.micro_text(records[1].observed_at) == "2026-01-02T03:04:02.500000Z"
    assert lost == []


def logged(name, **served):
    """A claim as JSON, as a client in Go has it in a text of its log."""
    metadata = {"name": name, "namespace": "shop", **served}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    return json.dumps({**claim, "spec": {"devices": {}}}, separators=(",", ":"))


STORED = {"uid": "0b0e0f74-1111-4222-8333-000000000001", "creationTimestamp": AT}


@pytest.mark.parametrize(
    "line",
    [
        'time="2026-01-05T00:00:01Z" level=info msg="a claim" claim={} node=n-1',
        'I0105 00:00:01.000002       1 driver.go:150] "Preparing" pod="shop/web" claim={}',
        '2026-01-05T00:00:01.000Z stderr F level=DEBUG msg=prepare claim={} state="{{\\"a\\":1}}"',
    ],
    ids=["logrus", "klog", "slog at a runtime"],
)
def test_stored_object_between_quotes_in_a_line_of_a_log_is_read(line, tmp_path):
    text = line.format(json.dumps(logged("one", **STORED))) + "\nlevel=info msg=done\n"
    records, lost = read(tmp_path, text)
    assert [key for key in keys(records) if key[1] == "ResourceClaim"] == [
        (Op.BASELINE, "ResourceClaim", "shop", "one")
    ]
    assert lost == []


def test_only_what_is_stored_is_taken_of_a_text_with_objects_and_words(tmp_path):
    message = json.dumps(f"got {logged('one', **STORED)} and {logged('two')}")
    records, lost = read(tmp_path, f"level=info msg={message}\n")
    assert (keys(records), lost) == ([(Op.BASELINE, "ResourceClaim", "shop", "one")], [])


def test_object_that_breaks_off_between_quotes_is_named(tmp_path):
    whole = json.dumps(logged("one", **STORED))
    text = f"level=info claim={whole}\nlevel=info claim={whole[:-20]}\n"
    records, lost = read(tmp_path, text)
    assert keys(records) == [(Op.BASELINE, "ResourceClaim", "shop", "one")]
    assert lost == ["text:2: an object breaks off here"]
