"""The sentences of all violations that stories show, with their doubts and evictors, kept whole."""

from collections.abc import Iterator
from pathlib import Path

from app.analysis.verify.invariants import InvariantWatch
from tests.unit.analysis import kept_texts
from tests.unit.analysis.invariants.test_rules import STORIES, Story

FILE = Path(__file__).with_name("sentences_of_stories.txt")


def lines(story: Story) -> Iterator[str]:
    """What is wrong in a story, and which taints its evictions are for."""
    watch = InvariantWatch()
    watch.follow(story.events)
    for each in watch.violations():
        shown = each.to_json()
        doubt = f" ({shown['doubt']})" if shown["doubt"] else ""
        yield f"{shown['kind']} {shown['rule']}: {shown['message']}{doubt}"
    for revision, evictors in sorted(watch.evictors.items()):
        for each in evictors:
            source = f"rule {each.rule}" if each.rule else f"slice {each.slice} of {each.driver}"
            was = " until just before" if each.is_over else ""
            written = f" of revision {each.written}" if each.written else ""
            yield f"eviction at {revision} for {each.key}={each.value}, {source}{written}{was}"


def test_stories_are_told_in_the_sentences_that_were_read() -> None:
    blocks: list[str] = []
    for tell in STORIES:
        story = Story()
        tell(story)
        blocks += [tell.__name__, *(f"    {line}" for line in lines(story))]
    kept_texts.check(FILE, "sentences", "\n".join(blocks), ["sentences"])
