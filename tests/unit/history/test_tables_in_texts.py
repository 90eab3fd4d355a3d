"""Tables of audit events that stand in a text, and objects that a test prints in its log."""

import csv
import io
import json
import textwrap

import pytest
import yaml

from app.adapters.history.opening import open_history
from app.adapters.history.printouts import pages, printed
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import CHANGES, Loss
from app.domain.values import timestamps
from tests.unit.history.test_service_forms import CLAIMS, EVENTS, dense
from tests.unit.history.test_wrapped_texts import CLAIM, keys, read

COLUMNS = {
    "AuditId": "auditID",
    "Verb": "verb",
    "Level": "level",
    "Stage": "stage",
    "RequestUri": "requestURI",
    "ObjectRef": "objectRef",
    "ResponseObject": "responseObject",
    "ResponseStatus": "responseStatus",
    "User": "user",
}


def table(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def cells(zone):
    """The rows of a portal: a column for each field, times in the form of the United States."""
    times = [f"{name} [{zone}]" for name in ("RequestReceivedTime", "StageReceivedTime")]
    rows = [[*times, *COLUMNS]]
    for number, event in enumerate(EVENTS):
        parts = [event.get(name, "") for name in COLUMNS.values()]
        shown = [each if isinstance(each, str) else dense(each) for each in parts]
        rows.append([f"1/2/2026, 3:04:{number:02d}.{part}00 AM" for part in "12"] + shown)
    return table(rows)


def with_time(title):
    """The rows of a portal with a single column of times, of any name."""
    rows = list(csv.reader(io.StringIO(cells("UTC"))))
    kept = [[row[1], *row[2:]] for row in rows]
    kept[0][0] = title
    return table(kept)


@pytest.mark.parametrize("title", ["TimeGenerated [UTC]", "TimeGenerated"])
def test_time_of_a_row_is_that_of_its_event_where_the_event_has_none(title, tmp_path):
    path = tmp_path / "query_data.csv"
    path.write_text(
        with_time(title).replace("1/2/2026, 3:04:", "2026-01-02T03:04:").replace(".200 AM", ".200Z")
    )
    with open_history([path], ReadOptions()) as history:
        changes = [each for each in history.records() if each.op in CHANGES]
        assert len(changes) == len(CLAIMS)
        assert all(Loss.NO_TIME not in each.losses for each in changes)
        assert timestamps.micro_text(changes[0].observed_at).startswith("2026-01-02T03:04:00.2")
        assert [note for note in history.notes if "TimeGenerated" in note] == [
            "times are those of TimeGenerated: the columns RequestReceivedTime and "
            "StageReceivedTime are missing"
        ]


def test_events_without_a_time_say_so(tmp_path):
    path = tmp_path / "query_data.csv"
    path.write_text(with_time("Note"))
    with open_history([path], ReadOptions()) as history:
        records = [each for each in history.records() if each.op in CHANGES]
        assert len(records) == len(CLAIMS)
        assert all(Loss.NO_TIME in each.losses for each in records)


TABLES = {
    "Insights": table(
        [("@timestamp", "@message"), *(("2026-01-02 03:04:05.000", dense(each)) for each in EVENTS)]
    ),
    "events over several lines": table(
        [
            ("time", "log_s"),
            *(("2026-01-02T03:04:05Z", json.dumps(each, indent=1)) for each in EVENTS),
        ]
    ),
    "a portal": cells("UTC"),
    "a portal in local time": cells("Local Time"),
}
AROUND = {
    "a fence": "We saw this:\n\n```csv\n{}```\nIt was gone then.\n",
    "an indented fence": "1. We saw\n\n   ```\n{}   ```\n",
    "text": "We saw this:\n{}\nIt was gone then.\n",
}


def said(records):
    return [(each.op, each.kind, each.name, each.object, each.verb) for each in records]


@pytest.mark.parametrize(
    ("name", "around"),
    [
        (name, around)
        for name in TABLES
        for around in AROUND
        # An editor that sets a cell in changes what it holds.
        if not (name == "events over several lines" and around == "an indented fence")
    ],
)
def test_table_in_a_text_says_what_it_says_as_a_file(tmp_path, name, around):
    alone, _ = read(tmp_path, TABLES[name], name="export.csv")
    inner = textwrap.indent(TABLES[name], "   ") if "indented" in around else TABLES[name]
    records, lost = read(tmp_path, AROUND[around].format(inner), name="issue.md")
    assert said(records) == said(alone)
    assert keys(records) == CLAIMS
    assert lost == []


@pytest.mark.parametrize("around", AROUND)
def test_row_that_is_cut_in_a_text_is_lost_alone(tmp_path, around):
    rows = TABLES["Insights"].splitlines()
    cut = "\n".join([*rows[:-1], rows[-1][:200]]) + "\n"
    inner = textwrap.indent(cut, "   ") if "indented" in around else cut
    records, lost = read(tmp_path, AROUND[around].format(inner), name="issue.md")
    assert keys(records) == CLAIMS[:-1]
    assert len(lost) == 1


def test_local_times_whose_zone_nothing_tells_are_no_times(tmp_path):
    records, _ = read(tmp_path, TABLES["a portal in local time"], name="export.csv")
    assert [each.observed_at for each in records] == [None] * len(CLAIMS)
    known, _ = read(tmp_path, TABLES["a portal"], name="export.csv")
    assert all(each.observed_at is not None for each in known)


@pytest.mark.parametrize("line", ["Jan  2 03:04:05.678: INFO: claim is", "03:04:05.678 the claim:"])
def test_object_that_a_test_logs_is_read(tmp_path, line):
    text = f"  {line}\n{textwrap.indent(CLAIM, '      ')}  STEP: done @ 01/02/26 03:04:05.9\n"
    records, lost = read(tmp_path, text, name="build-log.txt")
    [record] = records
    assert (record.kind, record.name) == ("ResourceClaim", "one")
    assert record.object["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert lost == []


def test_part_of_a_document_below_words_is_no_object(tmp_path):
    text = f"helm values:\n  template:\n{textwrap.indent(CLAIM, '    ')}\n{CLAIM}"
    records, _ = read(tmp_path, text.replace("name: one", "name: two", 1))
    assert [each.name for each in records] == ["one"]


@pytest.mark.parametrize("alias", ["v1", "v1beta2"])
@pytest.mark.parametrize("address", [" | 0xc003aa2908", ""])
def test_object_that_a_test_in_go_did_not_expect(tmp_path, alias, address):
    """It stands below its type without its kind, set in by as much as the messages around it."""
    claim = yaml.safe_load(CLAIM)
    group = claim.pop("apiVersion").partition("/")[0]
    assert claim.pop("kind") == "ResourceClaim"
    shown = textwrap.indent(yaml.safe_dump(claim), " " * 8)
    text = (
        "[FAILED] Timed out after 80.000s.\nexpected claim to be allocated, got instead:\n"
        f"    <*{alias}.ResourceClaim{address}>: \n{shown}In [It] at: dra.go:1 @ 10/12/25\n"
    )
    path = tmp_path / "build-log.txt"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        (record,) = history.records()
        assert history.refused_places == []
    assert (record.kind, record.name) == ("ResourceClaim", "one")
    assert (record.group, record.version) == (group, alias)


@pytest.mark.parametrize(
    "head", ["[]v1.{} | len:2, cap:2", "[]*v1.{} | len:2, cap:4", "*v1.{}List"]
)
def test_objects_that_a_test_in_go_did_not_expect(tmp_path, head):
    """Several are a list, of which each item stands without its kind."""
    claim = yaml.safe_load(CLAIM)
    del claim["apiVersion"], claim["kind"]
    several = [{**claim, "metadata": {**claim["metadata"], "name": name}} for name in ("a", "b")]
    value = {"items": several, "metadata": {}} if head.endswith("List") else several
    shown = textwrap.indent(yaml.safe_dump(value), " " * 8)
    text = (
        f"Expected\n    <{head.format('ResourceClaim')}>: \n{shown}to be empty\n```\n{CLAIM}```\n"
    )
    path = tmp_path / "build-log.txt"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        records = list(history.records())
        assert history.refused_places == []
    assert [(each.group, each.kind, each.name) for each in records] == [
        ("resource.k8s.io", "ResourceClaim", name) for name in ("a", "b", "one")
    ]
    assert records[0].object["spec"] == claim["spec"]


def test_object_of_an_unknown_type_in_go_is_text(tmp_path):
    shown = textwrap.indent(yaml.safe_dump({"metadata": {"name": "one"}}), " " * 8)
    path = tmp_path / "build-log.txt"
    path.write_text(f"got instead:\n    <*v1.NodePool | 0xc003aa2908>: \n{shown}\n")
    with pytest.raises(InputError, match="finds no object"), open_history([path], ReadOptions()):
        pass


EVENT_ROWS = (
    ("Warning", "FailedScheduling", "3m", "default-scheduler", "0/2 nodes: 2 cannot allocate."),
    ("Warning", "BackOff", "2m (x3 over 5m)", "kubelet, n1", "Back-off restarting container"),
    (
        "Normal",
        "Scheduled",
        "<unknown>",
        "default-scheduler",
        "Successfully assigned d/web-1 to n1",
    ),
)


def events_of_a_page(*rows, gap, mark=""):
    """The Events of a description below its command, with as many blanks between the columns."""
    titles = ("Type", "Reason", "Age", "From", "Message")
    table = [titles, tuple("-" * len(title) for title in titles), *rows]
    width = [max(len(row[at]) for row in table) for at in range(4)]
    lines = ["Events:"]
    for row in table:
        filled = [cell.ljust(width[at] if gap > 1 else 0) for at, cell in enumerate(row[:4])]
        lines.append("  " + (" " * gap).join([*filled, row[4]]))
    return "kubectl describe pod web-1 -n d\n" + "".join(f"{mark}{line}\n" for line in lines)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_events_of_a_page_whose_columns_are_lost_are_read(tmp_path, count):
    whole, lost = read(tmp_path, events_of_a_page(*EVENT_ROWS[:count], gap=2))
    assert len(whole) == count
    assert not lost
    assert read(tmp_path, events_of_a_page(*EVENT_ROWS[:count], gap=1)) == (whole, [])


@pytest.mark.parametrize("gap", [1, 2])
def test_row_of_events_that_cannot_be_read_is_named(tmp_path, gap):
    text = events_of_a_page(*EVENT_ROWS[:2], gap=gap) + "  Warning FailedScheduling soon\n"
    trees, lost = read(tmp_path, text)
    assert len(trees) == 2
    assert [each.rpartition(": ")[2] for each in lost] == [pages.UNREAD_EVENTS]


@pytest.mark.parametrize("gap", [1, 2])
def test_events_of_a_page_in_comments_are_named(tmp_path, gap):
    text = f"{CLAIM}---\nin words\n" + events_of_a_page(*EVENT_ROWS, gap=gap, mark="# ")
    trees, lost = read(tmp_path, text)
    assert len(trees) == 1
    assert [each.rpartition(": ")[2] for each in lost] == [printed.COMMENTED_EVENTS]


EVENTS_BELOW = (
    "# $ kubectl get events -n shop\n"
    "# LAST SEEN   TYPE      REASON             OBJECT      MESSAGE\n"
    "# 3m          Warning   FailedScheduling   pod/web-1   no device\n"
)
PAGE_BELOW = (
    "# Events:\n#   Type     Reason   Age   From      Message\n"
    "#   ----     ------   ----  ----      -------\n#   Warning  Failed   3m    kubelet   gone\n"
)


@pytest.mark.parametrize("border", ["", "\n", "---\n"])
def test_comments_behind_a_manifest_that_show_a_table_are_read(tmp_path, border):
    claim = CLAIM
    note = tmp_path / "claim.yaml"
    note.write_text(f"{claim}{border}{EVENTS_BELOW}")
    with open_history([note], ReadOptions()) as history:
        (event,) = [record for record in history.records() if record.kind == "Event"]
        assert [record.name for record in history.records() if record.kind != "Event"] == ["one"]
    assert event.object["involvedObject"]["name"] == "web-1"
    assert event.object["message"] == "no device"
    assert event.namespace == "shop"
    note.write_text(f"{claim}{border}{PAGE_BELOW}")
    with open_history([note], ReadOptions()) as history:
        ((_, problem),) = history.refused_places
    assert problem == printed.COMMENTED_EVENTS


def test_comments_within_a_manifest_are_part_of_it(tmp_path):
    """What stands behind such comments in an object is not lost, whatever they show."""
    claim = CLAIM
    first, rest = claim.split("\n", 1)
    note = tmp_path / "claim.yaml"
    note.write_text(f"{first}\n{EVENTS_BELOW}{rest}")
    with open_history([note], ReadOptions()) as history:
        (record,) = [each for each in history.records() if each.kind != "Event"]
    wanted = yaml.safe_load(CLAIM)
    assert (record.name, record.object["spec"]) == ("one", wanted["spec"])
