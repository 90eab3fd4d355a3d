"""The JSON and the page of a comparison, compared with the courses that a model states.

The model gives nodes, devices and instants. That each difference stands once in the tree of
causes, in the JSON and on the page, follows from the tree alone.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from app.analysis.diff import text
from app.analysis.diff.report import DiffReport
from tests.simulation.stated_differences import Lived
from tests.simulation.stated_worlds import APART, Place

Json = Mapping[str, Any]


def step_of(time: str) -> int | None:
    """The step of an instant: worlds begin at three o'clock. A pod may be tried late in a step."""
    if not time:
        return None
    begin = datetime(2026, 1, 2, 3, tzinfo=UTC)
    return (datetime.fromisoformat(time) - begin) // timedelta(seconds=APART)


def judge_pod(entry: Json, place: Place, lived: Mapping[str, Lived | None]) -> None:
    """Judges the entry of a pod, which is at `place` in the worlds a and b."""
    for side in "ab":
        pod, shown = lived[side], entry[side]
        if pod is None:
            assert shown is None
            continue
        is_placed = pod.placed is not None
        wanted = (place.node, [pod.device]) if is_placed else ("", [])
        devices = [name.rpartition("/")[2] for name in shown["devices"]]
        steps = {"placed": pod.placed, "evicted": pod.evicted}
        if pod.evicted is None:
            steps["ended"] = pod.ended
        assert (shown["node"], devices) == wanted, (entry["subject"], side)
        assert {name: step_of(shown[name]) for name in steps} == steps, (entry["subject"], side)


def judge_choice(entry: Json, lived: Mapping[str, Lived | None]) -> None:
    """A pod that is moved chose the device at which the sides part on one of them, if any."""
    device = entry.get("parting", {}).get("device", "").rpartition("/")[2]
    if not device or "moved" not in entry["classes"]:
        return
    chosen = [side for side in "ab" if (pod := lived[side]) is not None and pod.device == device]
    said = [side for side in "ab" if entry["parting"][side] == "chosen"]
    assert said == chosen, entry["subject"]


def judge_report(report: DiffReport) -> dict[str, Json]:
    """Judges the JSON and the page of a report by each other; returns the entries by subject."""
    body = report.to_json()
    entries: dict[str, Json] = {each["subject"]: each for each in body["differences"]}
    classes = Counter(each["class"] for each in entries.values())
    assert body["outcome"] == ("different" if entries else "same")
    assert body["pods"]["classes"] == classes
    assert (body["pods"]["different"], body["leftOut"]) == (len(entries), 0)
    assert (body["a"]["history"], body["b"]["history"]) == (report.a.name, report.b.name)
    parting = {f"pods/{each.pair.name}" for each in report.differences if each.parting is not None}
    above = Counter(below for each in entries.values() for below in each["consequences"])
    for subject, entry in entries.items():
        assert entry["class"] == entry["classes"][0]
        *chain, root = entry["chain"]
        assert root == entry["root"]
        assert chain == [] or subject in entries[chain[0]]["consequences"], subject
        assert above[subject] == bool(chain), subject
        assert {*(chain[:1] or [root])} <= {*entry["causes"]}
        assert ("parting" in entry) is (subject in parting)
        if subject in parting:
            assert all(entry["parting"][each] for each in "ab"), subject
    judge_page(text.page_json(report), entries)
    return entries


def judge_page(page: Json, entries: Mapping[str, Json]) -> None:
    """Each difference of more than words is once on the page, below that from which it follows."""
    assert page["outcome"] == ("different" if entries else "same")
    paths = dict(_pods(page["reasons"], ()))
    wanted = {
        subject: (*reversed(entry["chain"][:-1]), subject)
        for subject, entry in entries.items()
        if entry["classes"] != ["said otherwise"]
    }
    assert {path[-1]: path for path in paths} == wanted
    for path, reason in paths.items():
        entry = entries[path[-1]]
        assert f"from {entry['time']} on" in reason["text"]
        if entry["a"] is not None and entry["b"] is not None:
            said = [each["text"] for each in reason.get("children", ())]
            for side in "ab":
                assert any(
                    each.startswith(f"{side.upper()}: {entry[side]['text']}") for each in said
                )


def _pods(
    reasons: Sequence[Json], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The pods of a page, each with those above it."""
    for reason in reasons:
        pod = re.match(r"pod (\S+): .*, from ", reason["text"])
        path = above
        if pod is not None:
            path = (*above, f"pods/{pod[1]}")
            yield path, reason
        yield from _pods(reason.get("children", ()), path)


TURNED = {
    "only in A": "only in B",
    "evicted": "spared",
    "newly placed": "newly unschedulable",
    "later": "earlier",
}
TURNED |= {value: key for key, value in TURNED.items()}


def judge_turned(one: DiffReport, other: DiffReport, words: str) -> None:
    """Judges two reports of which the second has the sides exchanged."""
    said, turned = (_by_subject(each, is_turned=each is other) for each in (one, other))
    assert said.keys() == turned.keys(), words
    for subject, answer in said.items():
        again = turned[subject]
        if answer["first"][0] != again["first"][0]:
            # Where both sides act at once, either may be looked at first.
            courses = [each for each in (answer["a"], answer["b"]) if each is not None]
            at = [{each["placed"], each["evicted"], each["ended"]} for each in courses]
            is_at_once = answer["aspect"] == "messages" or bool(at[0] & at[1] - {""})
            assert is_at_once, (words, subject)
            del answer["first"], again["first"]
        assert answer == again, (words, subject)


def _by_subject(report: DiffReport, *, is_turned: bool) -> dict[str, dict[str, Any]]:
    """The answer about each pod; turned, as if the sides had been exchanged.

    A pod whose name was generated has that of A, so pods are known here by their uids.
    """
    differences = report.to_json()["differences"]
    pods = {
        each["subject"]: "|".join(sorted(side["uid"] for side in (each["a"], each["b"]) if side))
        for each in differences
    }
    answers = {}
    for each in differences:
        a, b, side = each["a"], each["b"], each["first"]
        parting = each.get("parting", {"a": "", "b": ""})
        classes = set(each["classes"])
        if is_turned:
            a, b, side = b, a, "b" if side == "a" else "a"
            parting = {**parting, "a": parting["b"], "b": parting["a"]}
            classes = {TURNED.get(name, name) for name in classes}
        answers[pods[each["subject"]]] = {
            **{name: each[name] for name in ("aspect", "time", "root", "rootKind")},
            "chain": [pods.get(name, name) for name in each["chain"]],
            **{
                name: sorted(pods.get(cause, cause) for cause in each[name])
                for name in ("causes", "consequences")
            },
            "a": a,
            "b": b,
            "classes": classes,
            "first": (side, parting),
        }
    return answers
