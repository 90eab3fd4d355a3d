"""Lines of a kubelet about a pod that are no Events, as klog, journals and tools write them."""

import json

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.analysis.recordings.fidelity import FidelityCollector
from app.domain.errors import InputError
from app.domain.log.records import KUBELET_FAILURE, KUBELET_REPORT, Op
from app.domain.values import timestamps

WHY = 'NodePrepareResources failed for ResourceClaim one: "gpu-0" is gone'
FAILED = "Failed to prepare dynamic resources"
PLEG = '"SyncLoop (PLEG): event for pod" pod="shop/web-1" event='


def klog(rest):
    return f"I0102 03:04:05.000006     222 kubelet.go:2434] {rest}"


def records(folder, text):
    """The records of a log, and how many lines it leaves out."""
    path = folder / "kubelet.log"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        return list(history.records()), len(history.left_out)


JSON = {
    "ts": 1767323045000.1,
    "caller": "kubelet/kuberuntime_manager.go:1400",
    "msg": FAILED,
    "pod": {"name": "web-1", "namespace": "shop"},
    "err": WHY,
}
LINE = klog(f'"{FAILED}" err={json.dumps(WHY)} pod="shop/web-1"')
FORMS = {
    "klog": LINE,
    "a journal": f"Jan 02 03:04:05 n1 kubelet[222]: {LINE}",
    "klog as JSON": json.dumps(JSON),
    "JSON behind the node": f"n1: {json.dumps(JSON, separators=(',', ':'))}",
}


@pytest.mark.parametrize("form", FORMS)
def test_failure_of_a_kubelet_is_a_request_about_the_pod(tmp_path, form):
    (record,), _ = records(tmp_path, FORMS[form] + "\n")
    assert (record.op, record.namespace, record.name) == (Op.CONTEXT, "shop", "web-1")
    assert (record.verb, record.message) == (KUBELET_FAILURE, f"{FAILED}: {WHY}")
    assert record.actor.user == "kubelet"
    assert (record.observed_at is None) is ("JSON" not in form)


REPORTS = {
    '"SyncLoop ADD" source="api" pods=["shop/web-1","shop/web-2"]': ("SyncLoop ADD", 2),
    '"SyncLoop DELETE" source="api" pods=[shop/web-1]': ("SyncLoop DELETE", 1),
    '"SyncLoop REMOVE" source="api" pods="[shop/web-1 shop/web-2]"': ("SyncLoop REMOVE", 2),
    PLEG + "&{ID:u Type:ContainerDied Data:c}": (
        "SyncLoop (PLEG): event for pod: ContainerDied",
        1,
    ),
    PLEG + '{"ID":"u","Type":"ContainerStarted","Data":"c"}': (
        "SyncLoop (PLEG): event for pod: ContainerStarted",
        1,
    ),
    '"Killing container with a grace period" pod="shop/web-1" containerName="c" gracePeriod=30': (
        "Killing container with a grace period: c",
        1,
    ),
    '"RemoveContainer" containerID="c"': ("", 0),
    '"Failed to get status for pod" pod="shop/web-1" err="refused"': ("", 0),
}


@pytest.mark.parametrize("line", REPORTS)
def test_report_of_a_kubelet_is_one_for_each_pod(tmp_path, line):
    message, count = REPORTS[line]
    known = klog('"Observed pod startup duration" pod="shop/web-1" podStartE2EDuration="2s"')
    read, left_out = records(tmp_path, f"{known}\n{klog(line)}\n")
    assert [each.verb for each in read] == [KUBELET_REPORT] * (1 + count)
    assert [each.message for each in read[1:]] == [message] * count
    assert [each.name for each in read[1:]] == ["web-1", "web-2"][:count]
    assert left_out == (count == 0)


WHOLE = {
    "an attempt": klog('"Attempting to schedule pod" pod="shop/web-1"'),
    "a refused attempt": klog(
        '"Unable to schedule pod; no fit; waiting" pod="shop/web-1" err="0/3 \\"x\\" node=n1"'
    ),
    "a binding": klog('"Successfully bound pod to node" pod="shop/web-1" node="n1"'),
    "a failure": LINE,
    "a list": klog('"SyncLoop ADD" source="api" pods=["shop/web-1","shop/web-1"]'),
    "a list without quotes": klog('"SyncLoop ADD" source="api" pods=[shop/web-1 shop/web-1]'),
    "JSON": json.dumps({"ts": 1.1, "msg": FAILED, "pod": {"name": "web-1", "namespace": "shop"}}),
}


@pytest.mark.parametrize("form", WHOLE)
def test_line_that_is_cut_names_no_other_pod(tmp_path, form):
    """Such as the last line that fits into a comment: `pod="shop/we` names neither shop nor web."""
    whole = WHOLE[form]
    begin = whole.index(whole.split('"')[5 if form == "JSON" else 1]) + 1
    begin = whole.index('"', begin) + 1
    closed = len(whole) if form == "JSON" else whole.rindex("web-1") + len("web-1")
    cut = [whole[:end] for end in range(begin, len(whole))]
    path = tmp_path / "kubelet.log"
    path.write_text("".join(f"{line}\n" for line in (whole, *cut)))
    with open_history([path], ReadOptions()) as history:
        read = list(history.records())
        lost = {place for place, problem in history.refused_places if "pod is cut" in problem}
    assert {(record.namespace, record.name) for record in read} == {("shop", "web-1")}
    text = read[0].message
    assert {record.message for record in read} <= {text, text.partition(": ")[0]}
    unclosed = [number for number, line in enumerate(cut, start=2) if len(line) <= closed]
    assert {f"kubelet.log:{number}" for number in unclosed} <= lost


FAILED_START = (
    "container &Container{Name:ctr,Image:i,Command:[sleep 9],Claims:[]ResourceClaim{}} start "
    "failed in pod web-1_shop(5e0a2bd6): CreateContainerError: unresolvable CDI devices a/b=c"
)
UNHANDLED = {"ts": 1767323045000.1, "msg": "Unhandled Error", "err": FAILED_START}


@pytest.mark.parametrize(
    "line",
    [
        klog(FAILED_START),
        klog(f"init {FAILED_START}"),
        klog(f'"Unhandled Error" err={json.dumps(FAILED_START)} logger="UnhandledError"'),
        json.dumps(UNHANDLED),
    ],
)
def test_container_that_did_not_start_is_a_failure_of_its_pod(tmp_path, line):
    (record,), _ = records(tmp_path, line + "\n")
    assert (record.verb, record.namespace, record.name) == (KUBELET_FAILURE, "shop", "web-1")
    why = "CreateContainerError: unresolvable CDI devices a/b=c"
    assert record.message == f"container ctr did not start: {why}"


def test_times_of_a_log_without_a_year_are_not_trusted(tmp_path):
    path = tmp_path / "kubelet.log"
    path.write_text(f"{LINE}\n{LINE}\n")
    for at, reasons in [
        (None, ["2 observed requests have no time, only an order"]),
        (timestamps.parse("2026-06-01T00:00:00Z"), []),
    ]:
        with open_history([path], ReadOptions(at=at)) as history:
            collector = FidelityCollector()
            for record in history.records():
                collector.add(record)
            timing = collector.report().verdicts[2]
            lacks_year = any("without a year" in note for note in history.notes)
        assert [*timing.reasons] == reasons
        assert lacks_year is not timing.answer


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("2025-01-02T03:04:05.442 n1 kubelet[222]: info ", "2025-01-02T03:04:05.000006Z"),
        ("2025-01-02 03:04:05,442 n1 ", "2025-01-02T03:04:05.000006Z"),
        ("2024-12-31T22:04:05.442 n1 ", None),
        ("seen 2025-01-02 ", None),
        ("2025-01-02T03:04:05.442Z ", "2025-01-02T03:04:05.442000Z"),
    ],
)
def test_time_without_a_zone_before_a_line_tells_its_year(tmp_path, before, expected):
    (record,), _ = records(tmp_path, f"{before}{LINE}\n")
    assert record.name == "web-1"
    assert record.observed_at == (timestamps.parse(expected) if expected else None)


def test_log_without_a_line_about_a_pod_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no object and no request"):
        records(tmp_path, klog('"RemoveContainer" containerID="c"') + "\n")


def test_same_words_in_an_event_are_no_line_of_a_log(tmp_path):
    path = tmp_path / "text.md"
    titles = "LAST SEEN   TYPE      REASON   OBJECT      MESSAGE"
    row = f"9s          Warning   Failed   pod/web-1   {FAILED}: {WHY}"
    path.write_text(f"It hangs:\n\n{titles}\n{row}\n")
    with open_history([path], ReadOptions()) as history:
        assert [record.kind for record in history.records()] == ["Event"]
        assert ["text between documents" in each for _, each in history.left_out] == [True]
