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
