"""Files that people attach to reports, in forms of terminals, editors and other languages."""

import base64
import gzip
import html
import json
import pprint

import pytest
import yaml

from app.adapters.history import python_values
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.objects import profile as profiles
from tests.unit.history.worlds import CLAIMS, PODS, tree

RULES = rules_for(profiles.from_settings({"profile": "1.36"}))

POD = tree(
    PODS,
    "web",
    "shop",
    metadata={"annotations": {"note": 'it\'s\n"so"'}},
    spec={"nodeName": None, "hostNetwork": True, "containers": [{"name": "c", "image": "i"}]},
)
CLAIM = tree(CLAIMS, "gpu", "shop", spec={})


def imported(tmp_path, content, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_history([path], ReadOptions(rules=RULES)) as history:
        return list(history.records()), history


@pytest.mark.parametrize(
    "text",
    [
        f"{POD!r}\n",
        f"{pprint.pformat(POD)}\n",
        f"the body:\n{pprint.pformat(POD)}\nand more\n",
        f"2026-11-01 DEBUG made {POD!r} in 3 ms\n",
        f"{CLAIM!r}\n{POD!r}\n",
        f"{[CLAIM, POD]!r}\n",
    ],
)
def test_object_as_python_prints_it_has_its_values(tmp_path, text):
    records, _ = imported(tmp_path, text)
    (pod,) = [each for each in records if each.resource == "pods"]
    assert pod.object["spec"] == POD["spec"]
    assert pod.object["metadata"]["annotations"] == POD["metadata"]["annotations"]
    assert len(records) == text.count("'apiVersion'")


@pytest.mark.parametrize(
    "text",
    [
        f"made {POD!r}\n"[:-20],
        f"made {POD!r}\n".replace("None", "datetime.datetime(2026, 11, 1)"),
        f"{pprint.pformat(POD)}\n".replace("True", "object()"),
    ],
)
def test_object_of_python_with_more_than_plain_values_is_lost(tmp_path, text):
    claim = yaml.safe_dump(CLAIM)
    records, source = imported(tmp_path, f"{text}\n---\n{claim}")
    assert [each.name for each in records] == ["gpu"]
    (refusal,) = source.refusals
    assert "as Python prints it" in refusal.problem


def test_yaml_between_single_quotes_stays_yaml():
    metadata = "{'name': 'it''s', 'uid': 'u'}"
    text = f"{{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {metadata}}}"
    assert python_values.documents(text.encode(), "a", DEFAULT_LIMITS) == []


@pytest.mark.parametrize("before", ["", "made "])
@pytest.mark.parametrize("empty", ["", "echo ''", 'it\'s "here"'])
def test_object_of_python_has_empty_texts(tmp_path, before, empty):
    pod = {**POD, "metadata": {**POD["metadata"], "annotations": {"a": empty, "b": ""}}}
    (record,), _ = imported(tmp_path, f"{before}{pod!r}\n")
    assert record.object == pod


def test_objects_of_python_that_never_end_are_looked_at_once():
    lines = ["{'kind': '", " {'kind': 'a', 'b': "] * 50_000
    assert python_values.text_at(lines, 0) == ("", 0)
    assert python_values.documents("\n".join(lines).encode(), "a", DEFAULT_LIMITS) == []


PAGE = "Name:             web\nNamespace:        shop\nNode:             n1/10.0.0.2\n"
TABLE = (
    "NAME   READY   STATUS    RESTARTS   AGE   IP       NODE\n"
    "web    0/1     Pending   0          5m    <none>   n1\n"
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (yaml.safe_dump(CLAIM, sort_keys=False), "gpu"),
        (json.dumps(CLAIM, indent=2), "gpu"),
        (json.dumps(CLAIM, indent=2).replace('"', "\u201c"), "gpu"),
        (f"$ kubectl get pods -n shop -o wide\n{TABLE}", "web"),
        (f"$ kubectl describe pod web -n shop\n{PAGE}", "web"),
    ],
    ids=["yaml", "json", "quotes", "table", "page"],
)
def test_spaces_that_all_became_no_break_ones_are_spaces(tmp_path, text, name):
    (plain,), _ = imported(tmp_path, text.replace("\u201c", '"'), "plain.txt")
    (record,), _ = imported(tmp_path, text.replace(" ", "\xa0"))
    assert record.name == name
    assert record.object == plain.object


@pytest.mark.parametrize("form", [json.dumps, yaml.safe_dump])
def test_no_break_space_in_a_text_beside_other_spaces_stays(tmp_path, form):
    notes = {"a": "10\xa0GiB", "b": "of 10\xa0GiB", "c": "10\xa0\xa0GiB\nx:\xa0y"}
    claim = tree(CLAIMS, "gpu", "shop", metadata={"annotations": notes}, spec={})
    packed = form(
        claim, **({"ensure_ascii": False} if form is json.dumps else {"allow_unicode": True})
    )
    (record,), _ = imported(tmp_path, f"see:\n{packed}\n")
    assert record.object["metadata"]["annotations"] == notes


def test_page_in_the_frame_of_a_terminal_is_read(tmp_path):
    lines = yaml.safe_dump(CLAIM, sort_keys=False).splitlines()
    framed = "".join(f"\u2502 {line:<60} \u2502\n" for line in lines)
    records, _ = imported(tmp_path, f"\u250c YAML \u2500\u2510\n{framed}\u2514\u2500\u2518\n")
    assert [each.name for each in records] == ["gpu"]


def test_page_that_its_frame_may_have_cut_stays_text(tmp_path):
    lines = yaml.safe_dump(CLAIM, sort_keys=False).splitlines()
    width = max(map(len, lines))
    framed = "".join(f"\u2502{line:<{width}}\u2502\n" for line in lines)
    with pytest.raises(InputError, match="it is not YAML"):
        imported(tmp_path, framed)


def test_bytes_of_windows_are_its_letters_and_said(tmp_path):
    named = {
        **CLAIM,
        "metadata": {**CLAIM["metadata"], "annotations": {"owner": "J\u00e9r\u00f4me \u2013"}},
    }
    text = yaml.safe_dump(named, allow_unicode=True)
    (record,), source = imported(tmp_path, text.encode("cp1252"), "a.yaml")
    assert record.object["metadata"]["annotations"] == {"owner": "J\u00e9r\u00f4me \u2013"}
    assert "a.yaml: bytes that are not UTF-8 are read as Windows-1252" in source.notes
    _, source = imported(tmp_path, text, "b.yaml")
    assert not any("Windows" in note for note in source.notes)


def test_metadata_of_unknown_kinds_are_no_objects(tmp_path):
    item = {"metadata": {"name": "a", "namespace": "shop", "uid": "u"}}
    version = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList"}
    with pytest.raises(InputError, match="metadata of an object whose kind it does not show"):
        imported(tmp_path, yaml.safe_dump({**version, "items": [item]}), "a.yaml")


CLAIM_PAGE = """\
Name:         gpu
Namespace:    shop
API Version:  resource.k8s.io/v1alpha3
Kind:         ResourceClaim
Metadata:
  Creation Timestamp:  2026-11-01T10:00:00Z
  UID:                 u-1
Spec:
  Devices:
    Requests:
      Allocation Mode:    ExactCount
      Count:              1
      Device Class Name:  gpu.example.com
      Name:               gpu
Events:                   <none>
"""
SLICE_PAGE = """\
Name:         n1-gpu
API Version:  resource.k8s.io/v1alpha3
Kind:         ResourceSlice
Metadata:
  UID:  u-2
Spec:
  Devices:
    Basic:
      Attributes:
        Index:
          Int:  0
      Capacity:
        Memory:  80Gi
    Name:        gpu-0
  Driver:        gpu.example.com
  Node Name:     n1
  Pool:
    Generation:            1
    Name:                  n1
    Resource Slice Count:  1
Events:                    <none>
"""


def test_pages_of_the_first_structured_form_are_read(tmp_path):
    (claim,), _ = imported(tmp_path, CLAIM_PAGE)
    (request,) = claim.object["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu.example.com"
    assert claim.object["metadata"]["uid"] == "u-1"
    (pool,), _ = imported(tmp_path, SLICE_PAGE)
    (device,) = pool.object["spec"]["devices"]
    assert device["capacity"] == {"memory": {"value": "80Gi"}}


CUT = """apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
  namespace: shop
  uid: 6cbb58ee-0000-4000-8000-000000000001
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
status:
  allocation:
    {dots}
"""
LEFT_OUT = "the ... stands for a part that was left out of the copy"


@pytest.mark.parametrize("dots", ["...", "\u2026"])
@pytest.mark.parametrize("before", ["", "Here is the claim:\n\n"], ids=["alone", "in a text"])
def test_dots_below_a_key_stand_for_its_content(tmp_path, dots, before):
    """Such a document is YAML still, whose field is a text that no object may have there."""
    records, history = imported(tmp_path, before + CUT.format(dots=dots), "claim.yaml")
    (record,) = records
    assert record.object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert "allocation" not in record.object.get("status", {})
    line = 15 + before.count("\n")
    assert [f"{place}: {problem}" for place, problem in history.refused_places] == [
        f"claim.yaml:{line}: {LEFT_OUT}"
    ]


def test_dots_that_a_text_or_a_block_of_text_has_stay(tmp_path):
    text = CUT.format(dots="devices: {results: []}").replace(
        "  namespace: shop\n",
        '  namespace: shop\n  annotations:\n    a: "..."\n    b: |\n      first\n      second...\n',
    )
    (record,), _ = imported(tmp_path, text, "claim.yaml")
    assert record.object["metadata"]["annotations"] == {"a": "...", "b": "first\nsecond...\n"}


PACKED = gzip.compress(yaml.safe_dump(CLAIM).encode())
ENCODED = {
    "base64": base64.encodebytes(PACKED),
    "on one line": base64.b64encode(yaml.safe_dump(CLAIM).encode()) + b"\n",
    "certutil": b"-----BEGIN CERTIFICATE-----\r\n%b-----END CERTIFICATE-----\r\n"
    % base64.encodebytes(PACKED).replace(b"\n", b"\r\n"),
    "uuencode": b"begin-base64 644 a.yaml.gz\n%b====\n" % base64.encodebytes(PACKED),
}


@pytest.mark.parametrize("form", ENCODED)
def test_text_in_base64_gives_what_it_holds(tmp_path, form):
    (record,), history = imported(tmp_path, ENCODED[form])
    assert record.name == "gpu"
    assert record.source == "a.txt/decoded"
    assert history.refused_places == []


def test_text_in_base64_that_breaks_off_is_refused(tmp_path):
    with pytest.raises(InputError, match="breaks off"):
        imported(tmp_path, base64.encodebytes(PACKED).rstrip(b"=\n")[:-1])


@pytest.mark.parametrize("text", [b"a" * 99, base64.b64encode(bytes(range(256))), b"a b\n" * 40])
def test_other_texts_are_no_base64(tmp_path, text):
    with pytest.raises(InputError, match="does not know the format"):
        imported(tmp_path, text + b"\n")


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"a": "b"}}}
JSON5 = """{
  // it's a node
  apiVersion: 'v1',
  kind: 'Node', // of which
  metadata: { name: 'n1', annotations: { a: 'b, // c', d: 'https://e' }, },
}
"""


def test_comments_of_javascript_around_bare_names(tmp_path):
    (record,), history = imported(tmp_path, JSON5)
    assert record.object["metadata"]["annotations"] == {"a": "b, // c", "d": "https://e"}
    assert history.refused_places == []


def test_objects_in_arrays_of_arrays(tmp_path):
    records, _ = imported(tmp_path, json.dumps([[CLAIM], [[NODE]], []]))
    assert [record.name for record in records] == ["gpu", "n1"]


@pytest.mark.parametrize("before", ["<rss>", '<rss version="0.92"><channel>'])
def test_pages_within_xml(tmp_path, before):
    page = f"<p>See</p><pre>{html.escape(yaml.safe_dump(NODE), quote=False)}</pre>"
    text = f"<?xml version='1.0'?>\n{before}<item><description>{html.escape(page)}</description>"
    (record,), _ = imported(tmp_path, f"{text}</item></rss>\n")
    assert record.object["metadata"]["labels"] == {"a": "b"}


def test_json_within_xml(tmp_path):
    values = "".join(f"<v trim='0'>{html.escape(json.dumps(each))}</v>\n" for each in (NODE, CLAIM))
    records, _ = imported(tmp_path, f"<?xml version='1.0'?>\n<results>\n{values}</results>\n")
    assert [record.name for record in records] == ["n1", "gpu"]


CAST = '{"version": 2, "width": 90, "height": 24, "timestamp": 1767323045}\n'
LATER = '{"version":3,"term":{"cols":90,"rows":24}}\n# of a shell\n'


@pytest.mark.parametrize("begin", [CAST, LATER])
def test_recorded_terminal_gives_what_it_showed(tmp_path, begin):
    shown = f"$ kubectl get pods -n shop -o wide\n{TABLE}".replace("\n", "\r\n")
    parts = [shown[at : at + 7] for at in range(0, len(shown), 7)]
    events = [json.dumps([at / 7, "o", part]) + "\n" for at, part in enumerate(parts)]
    typed = json.dumps([0.1, "i", "kubectl"]) + "\n"
    (record,), history = imported(tmp_path, f"{begin}{typed}{''.join(events)}[0.2, 'o")
    assert (record.namespace, record.name) == ("shop", "web")
    assert record.source == "a.txt/shown"
    assert history.refused_places == []


def test_event_of_a_recorded_terminal_that_is_damaged_is_a_loss(tmp_path):
    titles, row = TABLE.splitlines()
    lines = [json.dumps([0.1, "o", f"{each}\r\n"]).encode() for each in (titles, row)]
    damaged = lines[1].replace(b"web", b"w\xffb")
    (record,), history = imported(
        tmp_path, b"\n".join([CAST.encode().strip(), *lines, damaged, lines[0], lines[1], b""])
    )
    assert record.name == "web"
    assert [place for place, _ in history.refused_places] == ["a.txt/shown:4"]


def envelope(kind, raw):
    named = b"\x0a\x02v1\x12" + bytes([len(kind)]) + kind
    return b"k8s\0\x0a" + bytes([len(named)]) + named + b"\x12" + bytes([len(raw)]) + raw


NAMES = [b"\x0a\x06\x0a\x04" + name for name in (b"shop", b"mail")]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_values_that_etcdctl_prints_without_keys(tmp_path, end):
    values = b"\n".join(envelope(b"Namespace", raw) for raw in NAMES)
    records, _ = imported(tmp_path, values + end)
    assert [(record.kind, record.name) for record in records] == [
        ("Namespace", "shop"),
        ("Namespace", "mail"),
    ]


def test_value_of_a_kind_without_fields_is_refused(tmp_path):
    with pytest.raises(InputError, match="in protobuf of the kind Other"):
        imported(tmp_path, envelope(b"Other", NAMES[0]))
    with pytest.raises(InputError, match="damaged"):
        imported(tmp_path, envelope(b"Namespace", NAMES[0][:-1]))


@pytest.mark.parametrize("text", ["NAME;READY;STATUS;RESTARTS;AGE\nweb;1/1;Running;0;5m\n"])
@pytest.mark.parametrize("is_quoted", [False, True])
def test_table_that_a_spreadsheet_separates(tmp_path, text, is_quoted):
    for mark in ",;":
        shown = text.replace(";", f'"{mark}"').replace("\n", '"\n"') if is_quoted else text
        shown = f'"{shown}'[:-1] if is_quoted else shown.replace(";", mark)
        (record,), history = imported(tmp_path, shown)
        assert record.name == "web"
        assert history.refused_places == []


def test_times_that_ts_writes_before_lines(tmp_path):
    text = "".join(f"Nov 30 07:25:26 {line}\n" for line in yaml.safe_dump(CLAIM).splitlines())
    (record,), _ = imported(tmp_path, text)
    assert record.name == "gpu"


def test_answers_in_the_recording_of_a_browser(tmp_path):
    body = base64.b64encode(json.dumps(CLAIM).encode()).decode()
    contents = [{"text": body, "encoding": "base64"}, {"text": json.dumps(NODE)}]
    contents.append({"text": base64.b64encode(b"\xff\0").decode(), "encoding": "base64"})
    entries = [{"response": {"content": each}} for each in contents]
    records, _ = imported(tmp_path, json.dumps({"log": {"version": "1.2", "entries": entries}}))
    assert [record.name for record in records] == ["gpu", "n1"]


@pytest.mark.parametrize("indent", ["  ", "\t", ""])
def test_page_that_is_set_in_is_read(tmp_path, indent):
    parts = "Status:       Running\nContainers:\n  c:\n    Image:  i\nEvents:       <none>\n"
    pages = f"{PAGE}{parts}"
    pages += f"\n\n{pages.replace('web', 'mail')}"
    text = "".join(f"{indent}{line}\n" if line else "\n" for line in pages.splitlines())
    records, history = imported(tmp_path, f"It said:\n```\n{text}```\n")
    assert [record.name for record in records] == ["web", "mail"]
    assert [record.object["spec"]["nodeName"] for record in records] == ["n1", "n1"]
    assert history.refused_places == []


def test_name_of_a_part_of_a_page_is_no_page(tmp_path):
    part = "Some words:\n  Name:       web\n  Namespace:  shop\n  Node:       n1/10.0.0.2\n"
    with pytest.raises(InputError, match="does not know the format"):
        imported(tmp_path, part)


GAPS = ["...", "[...]", "<snip>", "[snipped]", "(truncated)", "[\u2026]"]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("place", ["  namespace: shop\n", "spec:\n"])
def test_mark_of_a_gap_in_yaml_is_a_loss(tmp_path, gap, place):
    text = yaml.safe_dump({**NODE, "spec": {"providerID": "x"}}, sort_keys=False)
    if place == "spec:\n":
        text = text.replace("  providerID: x", f"  {gap}")
    else:
        text = text.replace("  name: n1\n", f"  name: n1\n  {gap}\n")
    (record,), history = imported(tmp_path, f"here:\n```yaml\n{text}```\n")
    assert record.name == "n1"
    assert (record.object.get("spec") or {}) == ({} if place == "spec:\n" else {"providerID": "x"})
    assert len(history.refused_places) == 1


@pytest.mark.parametrize("indent", ["  ", "    ", "\t"])
@pytest.mark.parametrize("first", ["apiVersion", "kind"])
@pytest.mark.parametrize("wrap", ["{}", "make it:\n```\n{}```\n", "1. A claim\n\n{}\nDone.\n"])
def test_object_without_the_indentation_of_its_first_line_is_whole(tmp_path, indent, first, wrap):
    """Who copies it out of a page begins with its first letter."""
    order = [first, *(name for name in CLAIM if name != first)]
    lines = yaml.safe_dump({name: CLAIM[name] for name in order}, sort_keys=False).splitlines()
    set_in = "".join(f"{indent if at else ''}{line}\n" for at, line in enumerate(lines))
    (claim,), history = imported(tmp_path, wrap.format(set_in))
    assert claim.object == CLAIM
    assert history.refused_places == []


def test_line_that_is_less_set_in_makes_no_other_object(tmp_path):
    text = "apiVersion: v1\n    kind: Pod\n    metadata:\n      name: a\n  namespace: shop\n"
    known = yaml.safe_dump(CLAIM)
    (claim,), history = imported(tmp_path, f"{known}\nAnd this one:\n\n{text}")
    assert claim.object == CLAIM
    assert ["not YAML" in problem for _, problem in history.refused_places] == [True]
