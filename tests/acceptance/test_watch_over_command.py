"""`redra watch-over` says of a recording what `redra verify` and `redra scan` say of it."""

import json

import anyio
import pytest

from app.adapters.history.formats.bundle import BundleWriter
from app.domain.objects import registry
from app.service import exporting
from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.command_line import ROOT, database_running, redra
from tests.unit.analysis.verify import test_other_choices
from tests.unit.service.test_replaying import history_of, resealed

pytestmark = [pytest.mark.database, pytest.mark.slow]

RECORDING = ROOT / "examples" / "recordings" / "maintenance"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched") / "data"
    with database_running(folder):
        words = ("--history", "night", "--profile", "1.36", "--keep-going")
        code, _, said = redra("import", RECORDING, *words, data=folder)
        assert code == 0, said
        yield folder


@draws.in_turn("ways")
def test_recording_is_told_as_verify_and_scan_tell_it(data):
    _, listed, _ = redra("histories", "-o", "json", data=data)
    (night,) = [each for each in json.loads(listed) if each["name"] == "night"]
    code, out, said = redra(
        "watch-over", "night", "--until", night["revision"], "-o", "json", data=data
    )
    lines = [json.loads(line) for line in out.splitlines()]
    _, scanned, _ = redra("scan", "night", "-o", "json", data=data)
    sightings = json.loads(scanned)
    incidents = {(each["name"], each["revision"]) for each in lines if each["judge"] == "incident"}
    assert incidents == {(each["incident"], each["revision"]) for each in sightings}
    _, verified, _ = redra("verify", "night", "-o", "json", data=data)
    kinds = json.loads(verified)["invariants"]["kinds"]
    assert sum(each["judge"] == "invariant" for each in lines) == sum(kinds.values())
    assert code == (1 if any(each["failure"] for each in lines) else 0)
    assert f"history night up to revision {night['revision']}" in said


def test_text_names_revision_judge_and_objects(data):
    code, out, _ = redra("watch-over", "night", "--until", "5", data=data)
    assert (code, out) == (0, "")
    code, out, said = redra("watch-over", "night", "--until", "200", data=data)
    assert (code, out.partition(" (")[0]) == (1, "140: incident toleration-without-effect")
    assert "revision 200: 1 finding, 0 allowed other choices" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "there is no history 'nowhere'"),
        (("night", "--until", "99999"), "has no revision 99999"),
        (("night", "--until", "soon"), "neither a revision nor an instant"),
    ],
)
def test_what_cannot_be_watched_is_refused(data, words, said):
    code, out, error = redra("watch-over", *words, data=data)
    assert (code, out) == (2, "")
    assert said in error


def names(out):
    return [json.loads(line)["name"] for line in out.splitlines()]


@draws.in_turn("ways")
def test_run_that_goes_on_behind_the_last_line_says_the_rest(data):
    words = ("watch-over", "night", "--until", "532", "-o", "json")
    code, out, _ = redra(*words, data=data)
    first, last = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    code, again, said = redra(*words, "--since", first["revision"] - 1, data=data)
    assert (code, names(again)) == (1, [first["name"], last["name"]])
    code, again, said = redra(*words, "--since", last["revision"] - 1, data=data)
    assert (code, names(again)) == (1, [last["name"]])
    code, rest, said = redra(*words, "--since", last["seen"], data=data)
    assert (code, rest) == (0, "")
    assert "behind revision" in said
    code, _, error = redra("watch-over", "night", "--since", "9", "--until", "5", data=data)
    assert (code, "--since is revision 9, and --until is revision 5" in error) == (2, True)


@draws.in_turn("ways")
def test_timeline_shows_a_finding_where_it_began(data):
    _, out, _ = redra("timeline", "night", "--findings", "-o", "json", data=data)
    rows = json.loads(out)
    findings = [row for row in rows if row["kind"] == "Finding"]
    finding, late = findings
    assert late["text"].startswith("placed-to-be-evicted (certain): it gets ")
    assert (finding["revision"], finding["name"]) == (140, "any-0")
    assert finding["text"].startswith("toleration-without-effect (certain): it was evicted")
    assert [row["revision"] for row in rows] == sorted(row["revision"] for row in rows)
    _, plain, _ = redra("timeline", "night", "-o", "json", data=data)
    assert [row for row in rows if row not in findings] == json.loads(plain)
    _, alone, _ = redra("timeline", "night", "--kind", "Finding", "-o", "json", data=data)
    assert json.loads(alone) == findings
    _, later, _ = redra(
        "timeline", "night", "--findings", "--since", "141", "-o", "json", data=data
    )
    assert [row for row in json.loads(later) if row["kind"] == "Finding"] == [late]
    code, _, error = redra("timeline", "night", "--findings", "-n", "taints", data=data)
    assert (code, "--findings applies to a whole history" in error) == (2, True)


def test_verify_live_judges_as_watch_over_does(data):
    words = ("night", "-o", "json", "--to", "532", "--live")
    assert redra("verify", *words, data=data) == redra(
        "watch-over", "night", "--until", "532", "-o", "json", data=data
    )
    code, _, error = redra("verify", "night", "--live", "--to", "99999", data=data)
    assert (code, error.startswith("redra: --to: history 'night' has no revision")) == (2, True)
    code, _, error = redra("verify", "night", "--live", "--processes", "2", data=data)
    assert (code, "--live judges one growing history" in error) == (2, True)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("device", "code", "kind"),
    [("c-first", 0, ""), ("d-second", 3, "other choice"), ("b-held", 1, "violation")],
)
def test_choice_of_another_scheduler_is_told_from_a_violation(data, tmp_path, device, code, kind):
    story = test_other_choices.world()
    test_other_choices.give(story, "x", device)
    bundle = tmp_path / "choices.redra"
    anyio.run(write_bundle, story, bundle)
    code_of_import, _, error = redra("import", bundle, "--history", device, data=data)
    assert code_of_import == 0, error
    words = ("verify", device, "--live", "--to", story.revision)
    status, out, said = redra(*words, "-o", "json", data=data)
    lines = [json.loads(line) for line in out.splitlines()]
    decisions = [each for each in lines if each["judge"] == "decision"]
    assert (status, [each["kind"] for each in decisions]) == (code, [kind] if kind else [])
    assert f"{int(code == 3)} allowed other choice" in said
    status, out, _ = redra(*words, data=data)
    assert (status, "allowed, but another choice than redra's" in out) == (code, code == 3)
    status, out, _ = redra("verify", device, data=data)
    assert (status, "allowed, but another choice than redra's" in out) == (code and 1, code == 3)
    _, out, _ = redra("verify", device, "-o", "json", data=data)
    allocations = json.loads(out)["allocations"]
    assert [each["kind"] for each in allocations["differences"]] == ([kind] if kind else [])
    assert sum(allocations["differencesByKind"].values()) == int(bool(kind))


def give_kind(event, tree):
    kind = registry.find(event.key.group, event.key.resource)
    tree |= {"apiVersion": f"{kind.group}/v1".lstrip("/"), "kind": kind.kind}


async def write_bundle(story, path):
    log, info = await history_of(resealed(story.events, give_kind))
    await exporting.export_history(
        log, info, BundleWriter(path), program="redra test", file=path.name
    )


@draws.in_turn("ways")
def test_server_that_watches_over_a_history_counts_says_and_marks_what_it_finds(data, tmp_path):
    _, out, _ = redra("watch-over", "night", "--until", "532", "-o", "json", data=data)
    lines = [json.loads(line) for line in out.splitlines()]
    server = ServerProcess(tmp_path, "--watch-over", "night")
    server.data = data
    server.start()
    try:
        with server.client() as client:
            judged = 'redra_watched_revision{history="night"} 532.0'
            metrics = ""
            while judged not in metrics:  # Each look is a request.
                metrics = client.get("/metrics").text
            for line in lines:
                labels = f'failure="true",history="night",judge="incident",name="{line["name"]}"'
                assert f"redra_findings_total{{{labels}}} 1.0" in metrics
            assert 'class="finding"' in client.get("/ui/h/night/timeline").text
    finally:
        server.end()
    for line in lines:
        assert f"night: {line['revision']}: incident {line['name']}" in server.log.read_text()


def test_server_does_not_watch_over_a_history_that_is_not_there(data, tmp_path):
    code, _, error = redra("up", "--watch-over", "nowhere", "--listen", "127.0.0.1:0", data=data)
    assert code == 2
    assert "there is no history 'nowhere'" in error
