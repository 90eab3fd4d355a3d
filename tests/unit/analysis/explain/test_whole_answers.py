"""Whole answers: every line, with what it counts, where it leads and which issues took part.

One question of each world is kept with all its lines. Of the answers about every other object of
it, those lines are kept that no answer before has, with what stands in the JSON beside the reasons.

`REDRA_REWRITE=1 pytest tests/unit/analysis/explain/test_whole_answers.py` writes them anew; then
read the difference.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.analysis.explain.questions import ObjectExplanation
from app.analysis.explain.reasons import Reason
from tests.cluster import Cluster
from tests.unit.analysis import kept_texts
from tests.unit.analysis.explain.answered_worlds import HELPED, WIDE, WORLDS
from tests.unit.analysis.explain.seldom_worlds import LARGE, SELDOM, SELDOM_HELPED, SETTINGS
from tests.unit.service.test_explaining import asking, views_up_to

FILE = Path(__file__).with_name("whole_answers.txt")

OTHERS_FILE = Path(__file__).with_name("answers_about_others.txt")

SELDOM_FILE = Path(__file__).with_name("seldom_answers.txt")

_ELSEWHERE = ("blast", "helps")
"""Details that are kept by the tests of their own."""


def lines_of(reason: Reason, depth: int = 0) -> Iterator[str]:
    """A reason and those behind it: the text, then what a page makes of it."""
    marks = [f"{reason.count} things"] if reason.count != 1 else []
    marks += [f"revision {reason.revision}"] if reason.revision else []
    if reason.about is not None:
        space = reason.about.namespace
        place = "" if space in ("", "default") else f"{space}/"
        marks.append(f"{reason.about.resource}/{place}{reason.about.name}")
    marks += [*reason.issues, *(["kept"] if reason.is_kept else [])]
    marks += [f"rests on {key.resource}/{key.name}" for key in reason.rests_on]
    marks += [f"denied by {resource}" for resource in reason.denies]
    marks += [f"decided by {reason.marked!r}"] if reason.marked else []
    yield "  " * depth + reason.text + (f" | {', '.join(marks)}" if marks else "")
    for child in reason.children:
        yield from lines_of(child, depth + 1)


def written(answer: ObjectExplanation) -> str:
    heading = f"{answer.subject}: {answer.outcome}: {answer.text}"
    children = (line for child in answer.reason.children for line in lines_of(child))
    helps = (
        f"on {one['node']}: {'; '.join(one['changes'])}" for one in answer.details.get("helps", ())
    )
    return "\n".join((heading, *children, *helps))


def detailed(answer: ObjectExplanation) -> Iterator[str]:
    """The details beside the reasons, one line for each entry of a list."""
    for name, value in answer.details.items():
        if name not in _ELSEWHERE:
            for entry in value if isinstance(value, list) else [value]:
                yield f"{name}: {json.dumps(entry, sort_keys=True)}"


def subjects(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Every object that ever was, every device and every pool, as kind and name."""
    events = cluster.line.events
    keys = {event.key for event in events if event.is_about_object}
    for key in sorted(key for key in keys if key.namespace in ("", "default")):
        if key.resource not in ("events", "namespaces"):
            yield key.resource, key.name
    slices = views_up_to(events, len(events), cluster.profile).inventory.slices()
    devices = sorted({device.id for one in slices for device in one.devices})
    yield from (("device", "/".join(device)) for device in devices)
    yield from (("pool", "/".join(pool)) for pool in sorted({device[:2] for device in devices}))


@pytest.mark.parametrize("name", WORLDS)
async def test_answer_reads_the_same(name: str) -> None:
    cluster, kind, subject = WORLDS[name]()
    async with asking(cluster.settle()) as ask:
        text = written(await ask(kind, subject))
    kept_texts.check(FILE, name, text, [*WORLDS, *HELPED])


@pytest.mark.parametrize("name", HELPED)
async def test_what_would_help_reads_the_same(name: str) -> None:
    cluster, kind, subject = HELPED[name]()
    async with asking(cluster.settle()) as ask:
        text = written(await ask(kind, subject, help=True))
    kept_texts.check(FILE, name, text, [*WORLDS, *HELPED])


@pytest.mark.parametrize("name", WIDE)
async def test_answers_about_all_others_read_the_same(name: str) -> None:
    cluster, *_ = WIDE[name]()
    lines: dict[str, None] = {}
    async with asking(cluster.settle()) as ask:
        for subject in subjects(cluster):
            answer = await ask(*subject)
            lines |= dict.fromkeys((*written(answer).splitlines(), *detailed(answer)))
    kept_texts.check(OTHERS_FILE, name, "\n".join(lines), WIDE)


@pytest.mark.parametrize("name", [*SELDOM, *SELDOM_HELPED])
async def test_answer_in_a_seldom_state_reads_the_same(name: str) -> None:
    helps = name in SELDOM_HELPED
    cluster, *asked = (SELDOM | SELDOM_HELPED)[name]()
    settings = cluster.settle().profile.settings() | SETTINGS.get(name, {})
    async with asking(cluster, settings=settings) as ask:
        answer = await ask(*asked, help=helps)
        lines = dict.fromkeys((*written(answer).splitlines(), *detailed(answer)))
        for subject in () if helps or name in LARGE else subjects(cluster):
            answer = await ask(*subject)
            lines |= dict.fromkeys((*written(answer).splitlines(), *detailed(answer)))
    kept_texts.check(SELDOM_FILE, name, "\n".join(lines), [*SELDOM, *SELDOM_HELPED])


def everything(reason: Reason) -> Iterator[Reason]:
    yield reason
    for child in reason.children:
        yield from everything(child)


@pytest.mark.parametrize("name", ["rule_that_evicts", "node_is_not_ready", "capacity_is_used_up"])
async def test_answer_is_the_same_from_its_json(name: str) -> None:
    """What a page shows of a stored answer is what it shows of the answer."""
    cluster, *asked = WORLDS[name]()
    async with asking(cluster.settle()) as ask:
        answer = await ask(*asked)
    tree = json.loads(json.dumps(answer.reason.to_json()))
    again = Reason.from_json(tree)
    assert again.to_json() == tree
    pairs = zip(everything(again), everything(answer.reason), strict=True)
    for one, other in pairs:
        assert (one.text, one.count, one.revision) == (other.text, other.count, other.revision)
        assert (one.about, one.issues, one.marked) == (other.about, other.issues, other.marked)
        assert one.is_kept == other.is_kept
    assert any(one.about is not None for one in everything(again))


def test_every_answer_has_its_world() -> None:
    assert list(kept_texts.kept(SELDOM_FILE)) == [*SELDOM, *SELDOM_HELPED]
    assert list(kept_texts.kept(FILE)) == [*WORLDS, *HELPED]
    assert list(kept_texts.kept(OTHERS_FILE)) == list(WIDE)
