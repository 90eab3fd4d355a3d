"""Logs of kubectl and other clients in Go with -v=8 and more, which have the bodies of requests.

What was sent is no object of the cluster: only an answer shows what a server stored. The bytes of
protobuf are written by hand, for the reader of them decodes.
"""

import json

import pytest

from app.adapters.history.enclosed import client_logs
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests.unit.history.worlds import CLAIMS, tree

STORED = tree(CLAIMS, "stored", "shop", rv=7)
SENT = tree(CLAIMS, "sent", "shop")
STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403}
BODIES = "bodies of requests, which need not have been stored"
POD = (
    b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod"
    b"\x12\x18\x0a\x16\x0a\x06web-01\x12\x00\x1a\x04shop\x22\x00\x2a\x02u1"
)
"""A pod web-01 in the namespace shop with the uid u1."""
PODS = b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x1e\x0a\x02\x12\x00\x12\x18" + POD[17:]
"""A list of that pod."""


def dense(value):
    return json.dumps(value, separators=(",", ":"))


def header(source):
    return f"I1101 10:00:00.000001  4711 {source}] "


def first_form(side, value):
    return f"{header('request.go:1351')}{side} Body: {dense(value)}\n"


def between_quotes(side, value):
    return f'{header("type.go:252")}"{side} Body" body={json.dumps(dense(value))}\n'


def on_lines(side, value):
    return f'{header("type.go:252")}"{side} Body" body=<\n\t{dense(value)}\n >\n'


def dump(content):
    """The lines of a hexdump, as `hexdump -C` sets them."""
    lines = []
    for at in range(0, len(content), 16):
        part = content[at : at + 16]
        halves = "  ".join(part[half : half + 8].hex(" ") for half in (0, 8))
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {halves:<48}  |{shown}|")
    return lines


def dumped(side, lines):
    body = "".join(f"\t{line}\n" for line in lines)
    return f'{header("type.go:252")}"{side} Body" body=<\n{body} >\n'


def dumped_first(side, lines):
    return f"{header('request.go:1349')}{side} Body:\n" + "".join(f"{line}\n" for line in lines)


def read(tmp_path, text):
    path = tmp_path / "kubectl.log"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        names = [(record.kind, record.namespace, record.name) for record in history.records()]
        left_out = {reason for _, reason in history.left_out}
        return names, left_out, [f"{place}: {why}" for place, why in history.refused_places]


@pytest.mark.parametrize("form", [first_form, between_quotes, on_lines])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_object_of_an_answer_is_read_and_a_sent_one_is_left_out(tmp_path, form, end):
    text = form("Request", SENT) + form("Response", STORED) + form("Response", STATUS)
    names, left_out, lost = read(tmp_path, text.replace("\n", end))
    assert (names, lost) == ([("ResourceClaim", "shop", "stored")], [])
    assert any(BODIES in reason for reason in left_out)


@pytest.mark.parametrize("form", [first_form, between_quotes, on_lines])
def test_refused_creation_gives_no_object(tmp_path, form):
    with pytest.raises(InputError, match="there is no object"):
        read(tmp_path, form("Request", SENT) + form("Response", STATUS))


def test_sent_object_in_a_log_in_json_is_no_object(tmp_path):
    line = {"ts": 1.5, "v": 8, "body": dense(SENT | {"metadata": STORED["metadata"]})}
    sent, answer = (line | {"msg": f"{side} Body"} for side in ("Request", "Response"))
    answer["body"] = dense(tree(CLAIMS, "other", "shop", rv=8))
    names, _, _ = read(tmp_path, f"{dense(sent)}\n{dense(answer)}\n")
    assert names == [("ResourceClaim", "shop", "other")]


@pytest.mark.parametrize("form", [dumped, dumped_first])
@pytest.mark.parametrize("content", [POD, PODS], ids=["pod", "list"])
def test_answer_in_protobuf_is_decoded(tmp_path, form, content):
    text = form("Request", dump(POD)) + "and\n" + form("Response", dump(content))
    names, left_out, lost = read(tmp_path, text)
    assert (names, lost) == ([("Pod", "shop", "web-01")], [])
    assert any(BODIES in reason for reason in left_out)


@pytest.mark.parametrize(
    "lines",
    [
        dump(PODS)[:-1],
        [*dump(PODS)[:2], *dump(PODS)[3:]],
        [*dump(PODS)[:2], dump(PODS)[2][:20] + " [truncated 1700 chars]"],
    ],
)
def test_answer_in_protobuf_that_is_cut_is_named_with_its_line(tmp_path, lines):
    text = on_lines("Response", STORED) + dumped("Response", lines)
    names, _, lost = read(tmp_path, text)
    assert names == [("ResourceClaim", "shop", "stored")]
    assert lost == ["kubectl.log:5: a body in protobuf breaks off here; -v=10 logs all of it"]


def test_answer_in_protobuf_of_an_unknown_kind_is_named(tmp_path):
    unknown = POD.replace(b"Pod", b"Pud")
    text = on_lines("Response", STORED) + dumped("Response", dump(unknown))
    _, _, lost = read(tmp_path, text)
    assert lost == ["kubectl.log:5: a body in protobuf of a kind that redra does not read"]


@pytest.mark.parametrize("rest", [":", '" body=<'])
def test_many_bodies_without_an_end_are_looked_at_once(rest):
    lines = [f"x] Request Body{rest}"] * 50_000
    bodies = client_logs.plain(lines, "a", 1, DEFAULT_LIMITS)
    assert (bodies.sent, len(bodies.lines)) == (50_000, 50_000)


TITLES = ("Name", "Ready", "Status", "Restarts", "Age")
HOST = "https://10.0.0.1:6443"
ASKED = f"{HOST}/api/v1/namespaces/shop/pods?limit=500"
ELSEWHERE = f"{HOST}/api/v1/namespaces/lab/pods?limit=500"


def table(*, titles=TITLES, cells=("web-1", "1/1", "Running", "0", "3d"), of=None, metadata=None):
    """The answer to `kubectl get`; `of` is the metadata of its one object."""
    row = {"cells": list(cells)}
    if of is not None:
        row["object"] = {"kind": "PartialObjectMetadata", "metadata": of}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "50", **(metadata or {})},
        "columnDefinitions": [{"name": title, "type": "string"} for title in titles],
        "rows": [row],
    }


def first_request(url):
    return f"{header('round_trippers.go:463')}GET {url}\n"


def request_with_fields(url):
    return f'{header("round_trippers.go:527")}"Request" verb="GET" url="{url}" headers=<\n >\n'


FIRST_ANSWER = f"{header('round_trippers.go:574')}Response Status: 200 OK in 9 milliseconds\n"


def objects(tmp_path, text, name="kubectl.log"):
    path = tmp_path / name
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        trees = [record.object for record in history.records()]
        return trees, [problem for _, problem in history.refused_places]


@pytest.mark.parametrize("form", [first_form, between_quotes, on_lines])
@pytest.mark.parametrize("request_line", [first_request, request_with_fields])
def test_path_of_a_request_tells_what_a_table_shows(tmp_path, form, request_line):
    answer = table(titles=["Name", "State", "Age"], cells=["one", "pending", "3d"])
    url = f"{HOST}/k8s/clusters/c-1/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims?limit=5"
    text = request_line(url) + FIRST_ANSWER + form("Response", answer)
    trees, lost = objects(tmp_path, text)
    assert lost == []
    (claim,) = trees
    assert (claim["kind"], claim["metadata"]["namespace"]) == ("ResourceClaim", "shop")
    assert claim["metadata"]["name"] == "one"


def test_row_has_the_metadata_that_the_server_sent_with_it(tmp_path):
    sent = {"name": "web-1", "namespace": "lab", "uid": "u-7", "labels": {"a": "b"}}
    for text in (first_form("Response", table(of=sent)), json.dumps(table(of=sent))):
        (pod,), lost = objects(tmp_path, text)
        assert lost == []
        assert pod["metadata"] == sent
        assert pod["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("above", "namespace"),
    [
        (first_request(ASKED), "shop"),
        (first_request(ASKED) + FIRST_ANSWER, "shop"),
        (f"{first_request(ASKED).rstrip()} 200 OK in 9 milliseconds\n", "shop"),
        (first_request(ELSEWHERE) + first_request(ASKED) + FIRST_ANSWER, "default"),
        ("", "default"),
    ],
)
def test_namespace_of_a_table_is_told_by_the_only_request_that_may_be_its_own(
    tmp_path, above, namespace
):
    (pod,), lost = objects(tmp_path, above + first_form("Response", table()))
    assert (pod["metadata"]["namespace"], lost) == (namespace, [])


def test_table_of_a_kind_that_nothing_tells_is_lost(tmp_path):
    answer = table(titles=["Name", "State", "Age"], cells=["one", "pending", "3d"])
    text = first_form("Response", STORED) + first_form("Response", answer)
    trees, (problem,) = objects(tmp_path, text)
    assert [tree["metadata"]["name"] for tree in trees] == ["stored"]
    assert "it is a table, not objects" in problem


def test_table_that_goes_on_in_another_page_is_named(tmp_path):
    answer = table(metadata={"continue": "more", "remainingItemCount": 3})
    trees, (problem,) = objects(tmp_path, json.dumps(answer), "pods.json")
    assert len(trees) == 1
    assert "goes on in another page" in problem
