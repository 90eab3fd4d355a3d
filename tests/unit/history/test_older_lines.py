"""Lines that components log in sentences, judged by the same line with a message and fields."""

import json
import re

import pytest

from app.adapters.history.formats.component_logs import CUT_POD
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss
from app.domain.values import timestamps
from tests.unit.history.test_kubelet_lines import klog, records

WHY = "0/2 nodes are available: 2 Insufficient cpu."
ID = "web-1_shop(11111111-1111-4111-8111-111111111111)"
POD = 'pod="shop/web-1"'
SAME = {
    "Attempting to schedule pod: shop/web-1": f'"Attempting to schedule pod" {POD}',
    f"Unable to schedule shop/web-1: no fit: {WHY}; waiting": (
        f'"Unable to schedule pod; no fit; waiting" {POD} err="{WHY}"'
    ),
    f"Unable to schedule shop web-1: no fit: {WHY}; waiting": (
        f'"Unable to schedule pod; no fit; waiting" {POD} err="{WHY}"'
    ),
    "Unable to schedule shop/web-1: no nodes are registered to the cluster; waiting": (
        f'"Unable to schedule pod; no nodes are registered to the cluster; waiting" {POD}'
    ),
    "Unable to schedule shop/web-1: possibly due to node not found: it is gone; waiting": (
        f'"Unable to schedule pod, possibly due to node not found; waiting" {POD} err="it is gone"'
    ),
    "Error scheduling shop/web-1: timed out; retrying": (
        f'"Error scheduling pod; retrying" {POD} err="timed out"'
    ),
    "Attempting to bind shop/web-1 to n1": f'"Attempting to bind pod to node" {POD} node="n1"',
    'pod shop/web-1 is bound successfully on node "n1", 2 nodes evaluated, 1 nodes were found.': (
        f'"Successfully bound pod to node" {POD} node="n1" evaluatedNodes=2 feasibleNodes=1'
    ),
    "pod shop/web-1 is bound successfully on node n1.example.com, 2 nodes evaluated": (
        f'"Successfully bound pod to node" {POD} node="n1.example.com"'
    ),
    f'SyncLoop (ADD, "api"): "{ID}"': f'"SyncLoop ADD" source="api" pods=["{POD[5:-1]}"]',
    f'SyncLoop (DELETE, "api"): "{ID}, web-2_lab(u)"': (
        '"SyncLoop DELETE" source="api" pods=["shop/web-1","lab/web-2"]'
    ),
    f'SyncLoop (PLEG): "{ID}", event: &pleg.PodLifecycleEvent{{ID:"u", Type:"ContainerDied"}}': (
        f'"SyncLoop (PLEG): event for pod" {POD} event=&{{ID:u Type:ContainerDied Data:c}}'
    ),
    f'Error syncing pod u ("{ID}"), skipping: failed to "StartContainer" for "c"': (
        f'"Error syncing pod, skipping" {POD} err="failed to \\"StartContainer\\" for \\"c\\""'
    ),
    f'Unable to attach or mount volumes for pod "{ID}": timed out; skipping pod': (
        f'"Unable to attach or mount volumes for pod; skipping pod" {POD} err="timed out"'
    ),
}
FAILED = "Failed to schedule pod: shop/web-1"
SAYS = ("op", "namespace", "name", "verb", "actor", "message", "observed_at", "losses")
WRAPS = {
    "as it is": "{}",
    "a journal": "Jan 02 03:04:05 n1 kubelet[222]: {}",
    "a container runtime": "2026-01-02T03:04:05.000006789Z stderr F {}",
}


def said(folder, line):
    found, _ = records(folder, line + "\n")
    return [[getattr(each, name) for name in SAYS] for each in found]


@pytest.mark.parametrize("sentence", SAME)
def test_sentence_of_an_older_component_says_what_its_fields_say_today(tmp_path, sentence):
    for wrap in WRAPS.values():
        wrapped = [wrap.format(klog(each)) for each in (sentence, SAME[sentence])]
        old, new = (said(tmp_path, each) for each in wrapped)
        assert old == new
        assert len(old) == (2 if "web-2" in sentence else 1)


@pytest.mark.parametrize("sentence", [*SAME, *SAME.values()])
def test_line_whose_number_somebody_left_out_says_the_same(tmp_path, sentence):
    shortened = re.sub(r"(?<=\.go:)\d+(?=\])", "...", klog(sentence))
    assert shortened != klog(sentence)
    assert said(tmp_path, shortened) == said(tmp_path, klog(sentence)) != []


SHORTENED = (
    "03:04:05.000006     222 kubelet.go:2434] ",
    "03:04:05.000006 a/b.go:9] ",
    "a_b.go:9] ",
)
EVENT = (
    '"Event occurred" object="shop/web-1" kind="Pod" type="Warning" reason="Failed" message="m"',
    'Event(v1.ObjectReference{Kind:"Pod", Namespace:"shop", Name:"web-1"}): type: \'Warning\' '
    "reason: 'Failed' m",
)


@pytest.mark.parametrize("begin", [*SHORTENED, ""])
def test_line_whose_head_somebody_shortened_says_the_same(tmp_path, begin):
    """People cut the level and the day, the clock or the whole head before they show a line."""
    lines = [*SAME.values(), *EVENT, *(SAME if begin else ())]
    for line in lines:
        assert said(tmp_path, begin + line) == said(tmp_path, klog(line)) != [], line


@pytest.mark.parametrize("begin", [*SHORTENED, ""])
def test_line_without_a_day_has_no_time_in_a_named_year(tmp_path, begin):
    line = next(iter(SAME.values()))
    path = tmp_path / "short.log"
    path.write_text(f"{klog(line)}\n{begin}{line}\n")
    at = timestamps.parse("2026-06-01T00:00:00Z")
    with open_history([path], ReadOptions(at=at)) as history:
        whole, short = history.records()
        assert not any("without a year" in note for note in history.notes)
    assert whole.observed_at == timestamps.parse("2026-01-02T03:04:05.000006Z")
    assert (short.observed_at, Loss.NO_TIME in short.losses) == (None, True)


@pytest.mark.parametrize(
    "line",
    [
        f"we saw {next(iter(SAME.values()))}",
        f'"{next(iter(SAME))}"',
        f"e2e.go:33: {next(iter(SAME))}",
        '"Attempting to schedule pod": pod="shop/web-1"',
    ],
)
def test_words_that_are_no_line_of_a_log_say_nothing(tmp_path, line):
    known = klog('"Attempting to schedule pod" pod="shop/known"')
    read, others = records(tmp_path, f"{known}\n{line}\n")
    assert ([each.name for each in read], others) == (["known"], 1)


def test_failed_attempt_of_a_release_up_to_1_7_is_one(tmp_path):
    for wrap in WRAPS.values():
        ((op, *named, verb, actor, message, _, _),) = said(tmp_path, wrap.format(klog(FAILED)))
        assert (named, verb, message) == (["shop", "web-1"], "unschedulable", FAILED.split(":")[0])
        assert (op, actor) == tuple(
            said(tmp_path, klog(next(iter(SAME))))[0][each] for each in (0, 4)
        )


def test_sentence_in_a_field_of_a_collector_has_its_time(tmp_path):
    for sentence in SAME:
        lines = [
            json.dumps({"time": "2026-01-02T03:04:05Z", "log": klog(each)})
            for each in (sentence, SAME[sentence])
        ]
        old, new = (said(tmp_path, each) for each in lines)
        assert old == new != []
        assert old[0][SAYS.index("observed_at")] is not None


@pytest.mark.parametrize(
    "sentence",
    [
        "Attempting to schedule pod: web-1",
        "Unable to schedule pods",
        'SyncLoop (RECONCILE, "api"): "web-1_shop(u)"',
        "SyncLoop (housekeeping)",
        'Error syncing pod u ("web-1"), skipping: gone',
    ],
)
def test_sentence_about_no_pod_says_nothing(tmp_path, sentence):
    known = klog('"Attempting to schedule pod" pod="shop/known"')
    found, others = records(tmp_path, f"{known}\n{klog(sentence)}\n")
    assert [each.name for each in found] == ["known"]
    assert others == 1


def read_as_it_is(folder, text):
    path = folder / "cut.log"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        names = [(each.namespace, each.name) for each in history.records()]
        return names, history.refused_places, list(history.left_out)


@pytest.mark.parametrize("sentence", [*SAME, FAILED])
def test_sentence_that_the_end_of_a_file_cuts_names_no_other_pod(tmp_path, sentence):
    """`ns/na` there may be a pod, and may be the beginning of another."""
    whole = klog(sentence)
    known = read_as_it_is(tmp_path, f"{whole}\n")[0]
    begin = max(whole.index("web-1") + len("we"), whole.find("fully ") + len("fully "))
    for end in {begin, begin + 3, min(begin + 6, len(whole)), len(whole) - 1, len(whole)}:
        names, lost, left_out = read_as_it_is(tmp_path, f"{whole}\n{whole[:end]}")
        if len(names) > len(known):
            assert names == [*known, *known], whole[:end]
            assert whole[:end].endswith(('"', "}", "found.", "; waiting", "; retrying", "pod"))
        else:
            assert lost == [("cut.log:2", CUT_POD)], whole[:end]
        assert left_out == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Unable to schedule shop/web-1: no fit",
        "Unable to schedule shop/web-1: no fit: 0/2 nodes are avail",
        "Error scheduling shop/web-1: timed",
        "Attempting to schedule pod: shop/web...",
        "Attempting to bind shop/web-1 to n\u2026",
        'SyncLoop (ADD, "api"): "web-1_shop(u), web-2_',
    ],
)
def test_sentence_that_breaks_off_within_a_log_is_lost(tmp_path, sentence):
    whole = klog("Attempting to schedule pod: shop/web-1")
    names, lost, left_out = read_as_it_is(tmp_path, f"{klog(sentence)}\n{whole}\n")
    assert names == [("shop", "web-1")]
    assert lost == [("cut.log:1", CUT_POD)]
    assert left_out == []


def test_sentence_outside_of_a_log_is_text(tmp_path):
    for sentence in SAME:
        with pytest.raises(InputError, match=r"format|no object"):
            records(tmp_path, f"We saw: {sentence}\n")
