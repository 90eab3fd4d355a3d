"""Whole answers: every line, with what it counts, where it leads and which issues took part.

`REDRA_REWRITE=1 pytest tests/unit/analysis/explain/test_whole_answers.py` writes them anew; then
read the difference.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.analysis.explain.questions import ObjectExplanation
from app.analysis.explain.reasons import Reason
from tests.unit.analysis import kept_texts
from tests.unit.analysis.explain.answered_worlds import HELPED, WORLDS
from tests.unit.service.test_explaining import asking

FILE = Path(__file__).with_name("whole_answers.txt")


def lines_of(reason: Reason, depth: int = 0) -> Iterator[str]:
    """A reason and those behind it: the text, then what a page makes of it."""
    marks = [f"{reason.count} things"] if reason.count != 1 else []
    marks += [f"revision {reason.revision}"] if reason.revision else []
    if reason.about is not None:
        space = reason.about.namespace
        place = "" if space in ("", "default") else f"{space}/"
        marks.append(f"{reason.about.resource}/{place}{reason.about.name}")
    marks += [*reason.issues, *(["kept"] if reason.is_kept else [])]
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


def test_every_answer_has_its_world() -> None:
    assert list(kept_texts.kept(FILE)) == [*WORLDS, *HELPED]
