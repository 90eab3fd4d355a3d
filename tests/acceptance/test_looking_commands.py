"""Commands that show what pages show: `redra report`, `redra findings`, `redra map`."""

import json
from collections import Counter
from pathlib import Path

import pytest

from app.analysis.findings.report import severity_of_defect
from tests import draws
from tests.command_line import ROOT, database_running, redra
from tests.web.reading import read

RECORDING = ROOT / "examples" / "recordings" / "maintenance"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a recording, whose database runs."""
    folder = tmp_path_factory.mktemp("looking") / "data"
    with database_running(folder):
        code, _, error = redra("import", RECORDING, "--history", "maintenance", data=folder)
        assert code == 0, error
        yield folder


@draws.in_turn("ways")
@pytest.mark.database
def test_report_is_written_as_one_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "incident.html"
    code, out, error = redra("report", "maintenance", "-o", file, data=data)
    assert (code, error) == (0, "")
    size = file.stat().st_size
    assert out == f"{file}: {size} bytes, history maintenance\n"
    assert size <= 5_000_000
    root = read(file.read_text())
    # Known defects, on the page before, are listed in the same way.
    assert any(each.all("a", "why") for each in root.all("ol", "findings"))
    assert not root.all("script")


@draws.in_turn("ways")
@pytest.mark.database
def test_report_before_the_first_event_says_that_nothing_is_known(data: Path) -> None:
    words = ("report", "maintenance", "--at", "1990-01-01T00:00:00Z", "-o", "-")
    code, out, error = redra(*words, data=data)
    assert (code, error) == (0, "")
    text = read(out).one("ol", "findings").text
    assert "nothing is known before revision 1, with which the history begins" in text


@pytest.mark.database
def test_trace_of_a_moment_goes_to_standard_output(data: Path) -> None:
    words = ("report", "maintenance", "--format", "perfetto", "--at", "100", "-o", "-")
    code, out, error = redra(*words, data=data)
    assert (code, error) == (0, "")
    trace = json.loads(out)
    assert trace["otherData"]["revision"] == 100
    arguments = [one.get("args", {}) for one in trace["traceEvents"]]
    assert max(args.get("revision", 0) for args in arguments) == 100


@draws.in_turn("refusals")
@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "there is no history 'nowhere'"),
        (("maintenance", "--at", "99999"), "--at: history 'maintenance' has no revision 99999"),
        (("maintenance", "--at", "yesterday"), "'yesterday' is neither a revision nor an instant"),
        (("maintenance", "-o", "/no/such/folder/x.html"), "the file cannot be written"),
    ],
)
def test_report_that_cannot_be_made_is_refused_in_a_sentence(
    data: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, error = redra("report", *words, data=data)
    assert (code in (1, 2), out, error.count("\n")) == (True, "", 1)
    assert message in error


@draws.in_turn("ways")
@pytest.mark.database
def test_findings_are_those_of_the_page(data: Path) -> None:
    code, out, error = redra("findings", "maintenance", "-o", "json", data=data)
    assert (code, error) == (1, "")
    items = json.loads(out)["items"]
    code, text, _ = redra("findings", "maintenance", data=data)
    # The longest name is of a claim: 62 characters with its indentation.
    _, narrow, _ = redra("findings", "maintenance", data=data, COLUMNS="70")
    assert max(map(len, narrow.splitlines())) <= 70 < max(map(len, text.splitlines()))
    assert narrow.split() == text.split()
    assert code == 1
    lines = text.splitlines()
    for item in items:
        assert f"{item['severity']}: {item['text']}" in lines
        names = [
            f"{one['resource']}/{'/'.join(filter(None, (one['namespace'], one['name'])))} "
            f"({one['revision']})"
            for one in item["objects"]
        ]
        assert any(line.startswith(f"  {', '.join(names)}") for line in lines) == bool(names)
    # Known defects come along, as scan finds them, and in JSON beside the page's items.
    _, scanned, _ = redra("scan", "maintenance", "-o", "json", data=data)
    defects = json.loads(out)["knownDefects"]
    assert [one["incident"] for one in defects] == [one["incident"] for one in json.loads(scanned)]
    titles = [one["title"] for one in json.loads(scanned)]
    assert titles
    shown = [line for line in lines if ": known defect (" in line]
    assert sorted(line.partition("): ")[2] for line in shown) == sorted(titles)
    # Whatever they are, the graver comes first.
    ranks = [line.partition(":")[0] for line in lines if not line.startswith("  ")][:-1]
    assert ranks == sorted(ranks, key=["error", "warning", "notice"].index)
    assert {one["severity"] for one in defects} <= {*ranks}
    # The command below each finding explains the first of its objects.
    asked = [line.split()[1:] for line in lines if line.startswith("  redra why ")]
    firsts = [item["objects"][0]["name"] for item in items if item["objects"]]
    firsts += [one["objects"][0].rpartition("/")[2] for one in defects]
    assert sorted(words[1].partition("/")[2] for words in asked) == sorted(firsts)
    for words in asked:
        assert redra(*words, data=data)[0] == 0
    code, out, _ = redra("findings", "maintenance", "--at", "3", data=data)
    assert (code, *out.splitlines()) == (
        0,
        "nothing is wrong up to revision 3",
        "No refused write is in this history: who sent one got the reason, and audit logs have it.",
    )
    before = redra("findings", "maintenance", "--at", "1990-01-01T00:00:00Z", data=data)
    text = "notice: nothing is known before revision 1, with which the history begins\n"
    assert before == (1, text, "")


@pytest.mark.database
def test_map_has_a_sign_for_each_device(data: Path) -> None:
    named = ("--history", "maintenance", "--at", "200")
    code, out, error = redra("map", *named, "-o", "json", data=data)
    assert (code, error) == (0, "")
    pools = json.loads(out)["pools"]
    signs = {"held": "#", "free": ".", "blocked": "x", "tainted": "!", "unusable": "?"}
    _, text, _ = redra("map", *named, data=data)
    for pool in pools:
        row = "".join(signs[device["state"]] for device in pool["devices"])
        assert f"    {row}" in text.splitlines()
        (line,) = (
            one for one in text.splitlines() if f"  {pool['driver']}/{pool['pool']}  " in one
        )
        states = Counter(device["state"] for device in pool["devices"])
        assert all(f"{count} {state} ({signs[state]})" in line for state, count in states.items())
    _, text, _ = redra("map", *named, "--devices", data=data)
    for pool in pools:
        for device in pool["devices"]:
            assert f"    {device['name']}: {device['state']}" in text
            for holder in device["holders"]:
                assert f"held by {holder}" in text
    one = pools[0]["pool"]
    _, text, _ = redra("map", one, *named, data=data)
    assert f"/{one}  " in text


@pytest.mark.database
def test_map_of_labels_that_no_node_has_names_them(data: Path) -> None:
    named = ("--history", "maintenance", "--at", "200")
    code, text, _ = redra("map", *named, "-l", "zone=nowhere", data=data)
    assert code == 0
    assert text == "no pool of a node with the labels zone=nowhere is published at revision 200\n"


@draws.in_turn("refusals")
@pytest.mark.database
def test_pool_that_is_nowhere_is_refused_with_the_nearest(data: Path) -> None:
    named = ("--history", "maintenance", "--at", "200")
    _, out, _ = redra("map", *named, "-o", "json", data=data)
    name = json.loads(out)["pools"][0]["pool"]
    for form in ((), ("-o", "json")):
        code, out, error = redra("map", f"{name}x", *named, *form, data=data)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert f"there is no pool '{name}x' at revision 200" in error
        assert f"do you mean {name}" in error or f" or {name}" in error
    code, out, error = redra("map", "qqqqqqqqqqqqqqqqq", *named, data=data)
    assert (code, out) == (2, "")
    assert "leave it out to see all" in error
    for option, noun in (("--driver", "driver"), ("--node", "node")):
        code, out, error = redra("map", name, option, "nobody", *named, data=data)
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert f"{noun} 'nobody' does not exist at revision 200" in error


@pytest.mark.database
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("why", "pod/taints/more-1", "--node", "worker-11", "--at", "2026-11-21T08:05:13Z"),
         "worker-1"),
        (("why", "pool/gpu.example.com/worker-11", "--at", "200"), "gpu.example.com/worker-1"),
        (("fit", "--template", "plian", "-n", "taints", "--at", "200"), "plain"),
        (("map", "maintenance", "--driver", "gpu.example.con", "--at", "200"), "gpu.example.com"),
        (("incidents", "show", "driver-is-lots"), "driver-is-lost"),
    ],
)  # fmt: skip
def test_name_that_is_nowhere_is_refused_with_the_nearest(
    data: Path, words: tuple[str, ...], name: str
) -> None:
    if words[0] not in ("map", "incidents"):
        words = (*words, "--history", "maintenance")
    code, out, error = redra(*words, **({} if words[0] == "incidents" else {"data": data}))
    assert (code, out, error.count("\n")) == (2, "", 1)
    assert name in error.partition("do you mean")[2], error


@draws.in_turn("ways")
@pytest.mark.database
def test_map_takes_history_and_pool_as_other_commands_do(data: Path) -> None:
    whole = redra("map", "--history", "maintenance", data=data)
    assert whole[0] == 0
    early = redra("map", "--history", "maintenance", "--at", "20", data=data)
    pool = redra("map", "worker-1", "--history", "maintenance", data=data)
    assert len({whole, early, pool}) == 3
    assert redra("map", "maintenance", data=data) == whole
    assert redra("map", "maintenance@20", data=data) == early
    for words in (
        ("maintenance", "worker-1"),
        ("gpu.example.com/worker-1", "--history", "maintenance"),
        ("maintenance", "gpu.example.com/worker-1"),
        ("maintenance", "pool/gpu.example.com/worker-1"),
        ("maintenance", "pool", "gpu.example.com/worker-1"),
    ):
        assert redra("map", *words, data=data) == pool, words
    code, out, error = redra("map", "maintenence", data=data)
    assert (code, out) == (2, "")
    assert error == "redra: there is no history 'maintenence'; do you mean maintenance?\n"


@pytest.mark.parametrize(
    ("kind", "is_certain", "severity"),
    [("defect", True, "error"), ("trap", True, "warning"), ("defect", False, "notice")],
)
def test_known_defects_have_a_severity(kind: str, is_certain: bool, severity: str) -> None:
    assert severity_of_defect(kind, is_certain=is_certain).value == severity


FOUND = [
    "pods/late-12 -n taints  (deleted 2026-11-21T08:05:26.949215Z by system:node:worker-2, "
    "revision 215)",
    "resourceclaims/late-12-dev-4g6kx -n taints  (deleted 2026-11-21T08:05:26.952710Z by "
    "system:serviceaccount:kube-system:resource-claim-controller, revision 216)",
]


@pytest.mark.database
def test_objects_are_found_by_a_part_of_the_name_in_all_namespaces(data: Path) -> None:
    of_history = ("--history", "maintenance")
    code, out, error = redra("find", "LATE-12", *of_history, data=data)
    assert (code, error) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == FOUND
    assert {line.partition("/")[0] for line in lines[2:]} == {"events"}
    code, out, error = redra("find", "taints/late-12", *of_history, "--at", "200", data=data)
    assert (code, error) == (0, "")
    assert out.splitlines() == [
        "pods/late-12 -n taints  (revision 199)",
        "resourceclaims/late-12-dev-4g6kx -n taints  (revision 195)",
    ]
    code, out, error = redra("find", "po/late-12", *of_history, "-o", "json", data=data)
    assert (code, error) == (0, "")
    assert [one["name"] for one in json.loads(out)["gone"]] == ["late-12"]
    code, out, error = redra("find", "nothing-of-this", *of_history, data=data)
    assert (code, out) == (0, "")
    assert error == "no object has 'nothing-of-this' in its name up to revision 532\n"


@pytest.mark.database
def test_object_of_the_only_namespace_that_has_it_is_explained(data: Path, tmp_path: Path) -> None:
    of_history = ("--history", "maintenance")
    named = redra("why", "po/late-12", "-n", "taints", *of_history, data=data)
    assert named[0] == 0
    assert redra("why", "po/late-12", "-A", *of_history, data=data) == named
    assert redra("why", "po", "late-12", "-A", *of_history, data=data) == named
    code, out, error = redra("why", "po/late-12", "-A", "-n", "x", *of_history, data=data)
    assert (code, out) == (2, "")
    assert "-A and -n cannot be combined" in error
    # An object without a namespace, or whose namespace is written, is the same with the option.
    for subject in ("node/worker-1", "po/taints/late-12"):
        alone = redra("why", subject, *of_history, data=data)
        assert alone[0] == 0
        assert redra("why", subject, "-A", *of_history, data=data) == alone
    # Nobody looked in namespace default alone.
    for word in ("po", "pod"):
        code, out, error = redra("why", f"{word}/late-13", "-A", *of_history, data=data)
        assert (code, out) == (2, "")
        assert 'pods "late-13" not found in any namespace up to revision 532' in error
        assert "late-12" in error
        assert "default" not in error
    made = {"apiVersion": "v1", "kind": "ConfigMap"}
    file = tmp_path / "made.json"
    items = [{**made, "metadata": {"name": "c", "namespace": one}} for one in ("default", "taints")]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    code, _, error = redra("fork", "maintenance", "--history", "twice", "-f", file, data=data)
    assert code == 0, error
    code, out, error = redra("why", "cm/c", "-A", "--history", "twice", data=data)
    assert (code, out) == (2, "")
    assert "cm c is in several namespaces: cm/default/c, cm/taints/c" in error
