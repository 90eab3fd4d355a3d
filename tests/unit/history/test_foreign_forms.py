"""Objects as programs in other languages print them: read, or named."""

import json

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.printouts import descriptions, foreign, printed
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.objects.profile import Profile
from tests.unit.history.formats import truth
from tests.unit.history.test_wrapped_texts import CLAIM

RULES = rules_for(Profile())

NODE_JS = """{
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web-1',
    namespace: 'shop',
    uid: 'u-1',
    creationTimestamp: 2026-01-02T03:04:05.000Z,
    deletionTimestamp: undefined,
    labels: { 'app.example.com/part': 'web', tier: undefined },
    finalizers: [ 'a.example.com/b', 'a.example.com/c', ... 3 more items ],
    ownerReferences: [ [Object], [Object] ]
  },
  spec: { nodeName: 'n1', containers: [Array] },
  status: { phase: 'Running', conditions: [ [Object] ] }
}
"""


def read(tmp_path, text, name="app.log"):
    path = tmp_path / name
    path.write_text(text)
    with open_history([path], ReadOptions(rules=RULES)) as history:
        lost = [f"{place}: {problem}" for place, problem in history.refused_places]
        return [record.object for record in history.records()], lost


@pytest.mark.parametrize("before", ["", "starting\n"])
def test_object_that_node_shows_has_no_gap_as_a_value(tmp_path, before):
    (pod,), lost = read(tmp_path, before + NODE_JS)
    assert pod["metadata"]["labels"] == {"app.example.com/part": "web"}
    assert pod["metadata"]["finalizers"] == ["a.example.com/b", "a.example.com/c"]
    assert not {"ownerReferences", "deletionTimestamp"} & pod["metadata"].keys()
    assert (pod["spec"], pod["status"]) == ({"nodeName": "n1"}, {"phase": "Running"})
    first = before.count("\n")
    lines = [first + at for at in (11, 12, 14, 15)]
    assert lost == [f"app.log:{line}: {descriptions.LEFT_OUT}" for line in lines]


FOREIGN = {
    "Go": "cache.go:90: update &Pod{ObjectMeta:{web-1  shop  u-1},Spec:PodSpec{NodeName:n1,},}",
    "Go, with packages": 'unknown type &v1.ResourceClaim{TypeMeta:v1.TypeMeta{Kind:""}}',
    "Java": "class V1Pod {",
    "fabric8": "got Pod(apiVersion=v1, kind=Pod, metadata=ObjectMeta(name=web-1))",
    "JavaScript": "V1beta1ResourceClaim {",
    "Go, fields": "pod: {TypeMeta:{Kind: APIVersion:} ObjectMeta:{Name:web-1 Namespace:shop}}",
    "Go, a map": "got map[apiVersion:v1 kind:Pod metadata:map[name:web-1 namespace:shop]]",
    "Go, with its package": 'got []api.Pod{api.Pod{TypeMeta:x.TypeMeta{Kind:""}, Spec:…}}',
    "Go, an Event": 'I1023 11:43:20.004270 1 a.go:81] New: api.Event{TypeMeta:x{Kind:""}, A:1}',
    "spew": "(*v1.Pod)(0xc000a1c000)({",
    "go-cmp": "  &v1.Pod{",
    "Gomega, several": "    <[]v1.Pod | len:1, cap:1>: [",
    "Gomega, one": "    <*v1beta1.ResourceClaim | 0xc000a1c000>: {",
}


@pytest.mark.parametrize("form", FOREIGN)
def test_object_in_a_form_that_nobody_reads_is_named(tmp_path, form):
    trees, lost = read(tmp_path, f"{CLAIM}---\nAnd it said\n{FOREIGN[form]}\n")
    assert len(trees) == 1
    assert [each.partition(": ")[2].partition(";")[0] for each in lost] == [foreign.OBJECT]
    with pytest.raises(InputError, match=foreign.OBJECT[:30]):
        read(tmp_path, f"{FOREIGN[form]}\n", "alone.log")


REJECTED = (
    'event.go:264] Server rejected event \'&v1.Event{TypeMeta:v1.TypeMeta{Kind:""}, Reason:"x"}\'',
    'event.go:359] "Server rejected event (will not retry!)" event="&Event{ObjectMeta:{web-1}}"',
)


@pytest.mark.parametrize(
    "line",
    ["namespace &Pods{}", "and/or", "apps/v1", "class V1PodBuilder {", "pod/web-1", *REJECTED],
)
def test_words_are_no_objects(line):
    assert foreign.problem(line) == ""


HUNK = """@@ -8,3 +8,3 @@{heading}
   devices:
     requests:
-    - name: gpu
+    - name: tpu
"""
CHANGES = {
    "by its file": "--- a/one.yaml\n+++ b/one.yaml\n" + HUNK.format(heading=""),
    "by its place": HUNK.format(heading=" spec:"),
    "by its fields": HUNK.format(heading="") + " status:\n",
    "of kubectl": f"--- /tmp/LIVE-1/a\n+++ /tmp/MERGED-1/a\t2026\n{HUNK.format(heading='')}",
}
OTHER_CHANGES = {
    "of code": HUNK.format(heading=" func main() {"),
    "that adds a file": "@@ -0,0 +1,3 @@\n+apiVersion: v1\n+kind: Node\n+metadata: {name: n1}\n",
    "that is named": "In @@ -8,3 +8,3 @@ spec: was changed\n",
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_of_a_manifest_in_a_text_is_a_loss(tmp_path, change):
    trees, lost = read(tmp_path, f"```yaml\n{CLAIM}```\n```diff\n{CHANGES[change]}```\n")
    assert len(trees) == 1
    assert [each.partition(": ")[2].partition(";")[0] for each in lost] == [foreign.CHANGE]


@pytest.mark.parametrize("change", OTHER_CHANGES)
def test_other_change_is_no_loss(tmp_path, change):
    _, lost = read(tmp_path, f"```yaml\n{CLAIM}```\n```diff\n{OTHER_CHANGES[change]}```\n")
    assert lost == []


NO_ROW_BELOW = "NAMESPACE   NAME   STATE   AGE\n"
NO_ROWS = '{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "rows": %s}'


@pytest.mark.parametrize("command", ["", "$ kubectl get resourceclaims -A\n"])
def test_table_without_rows_is_refused_as_one(tmp_path, command):
    with pytest.raises(InputError, match="without rows: there is nothing to import"):
        read(tmp_path, command + NO_ROW_BELOW)


@pytest.mark.parametrize("rows", ["[]", "null"])
def test_answer_without_rows_loses_nothing(tmp_path, rows):
    trees, lost = read(tmp_path, f"{NO_ROWS % rows}\n---\n{CLAIM}", "two.yaml")
    assert len(trees) == 1
    assert lost == []
    with pytest.raises(InputError, match="a table without rows"):
        read(tmp_path, NO_ROWS % rows, "table.json")


SEGMENT = bytes((1, *bytes(7))) + b"\x9d" * 24
DQLITE = ("0000000000000001-0000000000000234", "metadata1", "metadata2", "open-1", "snapshot-1-5-7")


def test_database_of_dqlite_is_one_loss(tmp_path):
    (tmp_path / "backend").mkdir()
    for name in DQLITE:
        (tmp_path / "backend" / name).write_bytes(SEGMENT)
    (tmp_path / "claim.yaml").write_text(CLAIM)
    with open_history([tmp_path], ReadOptions()) as history:
        assert len(list(history.records())) == 1
        [(place, problem)] = history.refused_places
    assert place == "backend/metadata1"
    assert "a database of dqlite" in problem


@pytest.mark.parametrize("name", DQLITE)
def test_file_of_dqlite_is_refused_as_one(tmp_path, name):
    (tmp_path / name).write_bytes(SEGMENT)
    with (
        pytest.raises(InputError, match="a database of dqlite"),
        open_history([tmp_path / name], ReadOptions()),
    ):
        pass


LINES_OF_PROGRAMS = [
    'time="2026-01-02T03:04:05Z" level=info msg="Restoring Pod: web-1" backup=one',
    '  2026-01-02T03:04:05.000-05:00\tLEVEL(-2)\tcore/a.go:1\tReconcile\t{"name": "web-1"}',
    '2026-01-02T03:04:05Z\tINFO\tStarting\t{"name": "web-1"}',
]


@pytest.mark.parametrize("line", LINES_OF_PROGRAMS)
def test_log_of_another_program_is_refused_as_one(tmp_path, line):
    with pytest.raises(InputError, match="a log of a program with no object"):
        read(tmp_path, f"{line}\n{line}\n", "manager.log")


def test_page_of_a_kind_that_is_not_read_is_named(tmp_path):
    page = "Name:         one\nNamespace:    shop\nLabels:       <none>\nAnnotations:  <none>\n"
    _, lost = read(tmp_path, f"```yaml\n{CLAIM}```\n```\n{page}Phase:  Completed\n```\n")
    assert [each.partition(": ")[2] for each in lost] == [printed.FOREIGN_PAGE]


def test_text_with_commands_and_no_object_is_refused_as_one(tmp_path):
    with pytest.raises(InputError, match="commands or output of kubectl that show no object"):
        read(tmp_path, "Try it:\n\n    kubectl get domains one\n\nNAME   AGE\none    9s\n", "a.md")


TITLES = ("Name", "Namespace", "Containers", "Restarts", "Controlled By", "Node", "QoS", "Age")
CELLS = ("web-1", "shop", "1", "0", "ReplicaSet", "n1", "BestEffort", "3d")


@pytest.mark.parametrize("between", ["\t", "\n"])
@pytest.mark.parametrize("columns", [len(TITLES), 3])
def test_table_of_a_window_is_named_with_its_cure(tmp_path, between, columns):
    rows = [(*TITLES[: columns - 1], "Age", "Status"), (*CELLS[: columns - 1], "3d", "Running")]
    text = "".join(f"{between.join(row)}\n" for row in rows)
    with pytest.raises(InputError, match="a table of a program with windows") as refusal:
        read(tmp_path, text, "pods.txt")
    assert "kubectl get" in str(refusal.value.cure)


@pytest.mark.parametrize(
    "text",
    [
        "shop\tweb-1\tn1\tx\nshop\tweb-2\t\ty\n",
        '"shop","web-1",0\n"shop","say ""x"", y",1\n',
        '"a","b"\n',
    ],
    ids=["tsv", "csv", "one row"],
)
def test_rows_without_titles_are_named_with_their_cure(tmp_path, text):
    with pytest.raises(InputError, match="rows of cells without titles") as refusal:
        read(tmp_path, text, "pods.txt")
    assert "kubectl get" in str(refusal.value.cure)


@pytest.mark.parametrize(
    "text",
    [
        "Name of the game\nAge\n",
        "a\tb\nc\nd\n",
        "A\tB\nc\td\n",
        "one, two\nthree, four\n",
        "plain words\n",
    ],
)
def test_words_are_no_table(tmp_path, text):
    with pytest.raises(InputError, match="does not know the format"):
        read(tmp_path, text, "words.txt")


SCREEN = """\u250c\u2500\u2500 Pods(shop)[2] \u2500\u2500\u2510
\u2502 NAME\u2191  PF READY STATUS  RESTARTS NODE AGE \u2502
\u2502 web-1  \u25cf  0/1   Pending        0 n/a  6m  \u2502
\u2514\u2500\u2500\u2518
"""
LIVE = "/tmp/LIVE-12/resource.k8s.io.v1.DeviceClass..gpu"
LOG = {"level": "ERROR", "message": "could not schedule pod", "Pod": {"name": "web-1"}}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (SCREEN, "the screen of k9s"),
        (SCREEN.replace("\u2502", " "), "the screen of k9s"),
        ("NAMESPACE\u2193 NAME PF READY STATUS\nshop web-1 0/1 Running\n", "the screen of k9s"),
        (f"diff -u -N {LIVE} {LIVE.replace('LIVE', 'MERGED')}\n--- a\n+++ b\n", "kubectl diff"),
        (f"{json.dumps(LOG)}\n" * 2, "a log of a program"),
        (json.dumps([{"name": "web-1", "phase": "Pending"}], indent=2), "JSON in which nothing"),
        ("NAME    CPU(cores)   MEMORY(bytes)\nweb-1   1m           2Mi\n", "kubectl top"),
        (
            '# HELP kube_pod_info x\nkube_pod_info{pod="web-1",node="n1"} 1\n',
            "metrics of Prometheus",
        ),
        ("/registry/pods/shop/web-1\n\n/registry/pods/shop/web-2\n\n", "without their values"),
        ("/registry/pods/shop/web-1\n", "keys of etcd without"),
        ("$ kubectl version\nClient Version: v1.34.1\n", "output of kubectl version"),
        ("$ kubectl get crd\nNo resources found\n", "output of kubectl that shows no object"),
        (
            "me@h:~$ kubectl get pods x\nError from server (NotFound)\n",
            "output of kubectl that show",
        ),
        ("No resources found in shop namespace.\n", "shows no object"),
        (
            "NAME\tNAMESPACE\tREVISION\tUPDATED\tSTATUS\nx\tshop\t1\t2026\tdeployed\n",
            "of helm list",
        ),
        ("spec:\n  nodeName: n1\nstatus:\n  phase: Running\n", "parts of objects"),
        ("diff --git a/pod.yaml b/pod.yaml\n@@ -1 +1 @@\n-a: b\n+a: c\n", "changes of files"),
    ],
)
def test_what_people_attach_instead_of_objects_is_named_with_its_cure(tmp_path, text, what):
    with pytest.raises(InputError, match=what) as refusal:
        read(tmp_path, text, "pods.txt")
    assert {"objects", "files"} & set(str(refusal.value.cure).split())


@pytest.mark.parametrize("mark", ["#", "##", "//", "--", ";", "REM", "::"])
@pytest.mark.parametrize("form", ["YAML", "a list", "JSON", "documents", "words"])
def test_manifest_of_comments_alone_is_named_with_its_cure(tmp_path, mark, form):
    """What an editor or a converter of files makes of a dump, with the space of most of them."""
    trees = truth.objects()
    listed = {"apiVersion": "v1", "kind": "List", "items": trees}
    text = {
        "YAML": yaml.safe_dump(trees[0]),
        "a list": yaml.safe_dump(listed),
        "JSON": json.dumps(listed, indent=2),
        "documents": yaml.safe_dump_all(trees, explicit_start=True),
        "words": f"all of it\n\n{yaml.safe_dump(listed)}",
    }[form]
    commented = "".join(f"{mark} {line}\n" for line in text.splitlines())
    with pytest.raises(InputError, match=f"comments alone, behind {mark};") as refusal:
        read(tmp_path, commented, "pods.yaml")
    assert f"take {mark} and the space" in refusal.value.cure


def test_object_beside_a_commented_one_is_read(tmp_path):
    commented = "".join(f"# {line}\n" for line in CLAIM.splitlines())
    trees, lost = read(tmp_path, f"{commented}{CLAIM}")
    assert (len(trees), lost) == (1, [])


def test_screen_in_a_text_is_named(tmp_path):
    trees, lost = read(tmp_path, f"{CLAIM}---\nIn k9s:\n{SCREEN}\n")
    assert len(trees) == 1
    assert [each.partition(": ")[2] for each in lost] == [
        f"{foreign.SCREEN}; {foreign.CURES[foreign.SCREEN]}"
    ]


@pytest.mark.parametrize("begin", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"\xd4\xc3\xb2\xa1"])
def test_picture_is_named_where_it_stands_alone(tmp_path, begin):
    (tmp_path / "screen").write_bytes(begin + bytes(99))
    with pytest.raises(InputError, match=r"a picture|network packets"):
        open_history([tmp_path / "screen"], ReadOptions())
