"""Rules about changes of pools over time, each broken by a history made for it."""

import random

import pytest

from app.analysis.lint.revisions import PoolsOverTime
from app.analysis.lint.subjects import LintedObject
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant


def slice_of(name: str, generation: int, *, count: int = 1, kind: str = "int") -> JsonObject:
    device = {
        "name": f"{name}-device",
        "attributes": {"model": {kind: 1 if kind == "int" else "1"}},
    }
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "pool", "generation": generation, "resourceSliceCount": count},
            "allNodes": True,
            "devices": [device],
        },
    }


class Story:
    """Slices as they are written, a second apart."""

    def __init__(self) -> None:
        self.pools = PoolsOverTime()
        self.revision = 0

    def write(self, tree: JsonObject) -> None:
        self.revision += 1
        subject = LintedObject(
            kind="ResourceSlice", tree=json_tree.copy(tree), revision=self.revision
        )
        self.pools.see(subject, Instant(self.revision * SECOND))

    def delete(self, tree: JsonObject) -> None:
        self.revision += 1
        subject = LintedObject(kind="ResourceSlice", tree=tree, revision=self.revision)
        self.pools.forget(subject, Instant(self.revision * SECOND))

    def findings(self) -> list[tuple[str, int]]:
        return [(each.rule.id, each.place.revision) for each in self.pools.findings()]


def sound_updates(story: Story, rng: random.Random) -> int:
    """A driver that publishes one slice, generation by generation; returns the last."""
    last = rng.randint(2, 9)
    for generation in range(1, last + 1):
        story.write(slice_of("one", generation))
    return last


@pytest.mark.parametrize("seed", range(20))
def test_driver_that_counts_its_generations_is_not_named(seed: int) -> None:
    story = Story()
    sound_updates(story, random.Random(seed))
    assert story.findings() == []


@pytest.mark.parametrize("seed", range(20))
def test_generation_that_jumps_is_named_at_its_revision(seed: int) -> None:
    rng, story = random.Random(seed), Story()
    last = sound_updates(story, rng)
    story.write(slice_of("one", last + rng.randint(2, 50)))
    jumped = story.revision
    story.write(slice_of("one", last + 51))
    found = story.findings()
    assert found[0] == ("generation-jump", jumped)
    assert {rule for rule, _ in found} == {"generation-jump"}


@pytest.mark.parametrize("seed", range(20))
def test_generation_that_goes_back_is_named_at_its_revision(seed: int) -> None:
    rng, story = random.Random(seed), Story()
    last = sound_updates(story, rng)
    story.write(slice_of("one", last - 1))
    assert story.findings() == [("generation-back", story.revision)]


@pytest.mark.parametrize("seed", range(20))
def test_type_that_changes_is_named_at_its_revision(seed: int) -> None:
    rng, story = random.Random(seed), Story()
    last = sound_updates(story, rng)
    story.write(slice_of("one", last + 1, kind=rng.choice(("string", "version"))))
    assert story.findings() == [("attribute-type-changed", story.revision)]


def test_spells_without_a_slice_are_summed_up_at_the_longest() -> None:
    story = Story()
    first, second = slice_of("one", 1, count=2), slice_of("two", 1, count=2)
    story.write(first)
    story.write(second)
    story.delete(second)
    lost = story.revision
    story.write(first)
    story.write(second)
    (finding,) = story.pools.findings()
    assert finding.rule.id == "pool-incomplete-for"
    assert finding.place.revision == lost
    assert finding.message == (
        "pool gpu.example.com/pool was incomplete 2 times, 2.000 s at the longest and 3.000 s in "
        "all"
    )


def test_spell_that_does_not_end_says_so() -> None:
    story = Story()
    story.write(slice_of("one", 1, count=2))
    story.write(slice_of("one", 1, count=2))
    (finding,) = story.pools.findings()
    assert finding.message.endswith("1.000 s in all, and still is at the end")
