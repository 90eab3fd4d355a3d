"""What `diff` says of drawn pairs, compared with what a model states from the one change.

The classes of each pod, the pod or change directly before it, and the root of all: the model says
them before the comparison is asked, and shares no code with it.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from app.analysis.diff.causes import Root, RootKind
from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.domain.log import HistoryId, HistoryInfo
from app.service import diffing
from tests import draws
from tests.simulation import stated_answers
from tests.simulation import stated_differences as stated
from tests.simulation.stated_differences import CHANGE, Lived, World
from tests.simulation.stated_worlds import (
    ALONE,
    ALTERATIONS,
    APART,
    SETTINGS,
    Place,
    cluster_of,
    drawn_world,
    ran,
)

PAIRS_MAX = 12
NEIGHBOUR = Place(node="n1", device_class="other-gpu", prefix="other-")


Worlds = Mapping[Place, World]


async def compared(a: Worlds, b: Worlds) -> DiffReport:
    sides = []
    for worlds, name in ((a, "A"), (b, "B")):
        cluster = ran(worlds)
        settings = cluster.profile.settings()
        info = HistoryInfo(id=HistoryId(1), name="drawn", settings=settings)
        sides.append(diffing.side_of(info, cluster.line.events, name))
    return await diffing.drive(compare(*sides))


def root_of(root: Root) -> str:
    return SETTINGS if root.kind is RootKind.SETTINGS else root.name.rpartition("/")[2]


@dataclass(frozen=True)
class DrawnPair:
    """Two worlds at a place, the names of the change between them, and what follows from it."""

    place: Place
    sides: tuple[World, World]
    subject: str

    @property
    def lived(self) -> dict[str, dict[str, Lived]]:
        return dict(zip("ab", map(stated.lived, self.sides), strict=True))

    def classes(self) -> dict[str, set[str]]:
        """The classes of each pod that differs, by its name at its place."""
        pods = self.lived
        names = {**pods["a"], **pods["b"]}
        said = {n: stated.classes(pods["a"].get(n), pods["b"].get(n)) for n in names}
        return {f"{self.place.prefix}{name}": each for name, each in said.items() if each}

    def subjects(self) -> set[str]:
        """The names of the change at its place."""
        place, pods = self.place, self.lived
        names = set()
        for name in self.subject.split():
            if name == ALONE.device_class:
                names.add(place.device_class)
            elif name.startswith(ALONE.node):
                names.add(f"{place.node}{name.removeprefix(ALONE.node)}")
            else:
                is_here = name in {**pods["a"], **pods["b"]} or name == "z-late"
                names.add(f"{place.prefix}{name}" if is_here else name)
        return names

    def before(self, name: str) -> set[str]:
        """The causes directly before what befalls a pod of this place."""
        near = stated.before(name.removeprefix(self.place.prefix), self.lived, self.subject)
        return {each if each == CHANGE else f"{self.place.prefix}{each}" for each in near}


def drawn_pair(place: Place, alteration: str, drawn: random.Random) -> DrawnPair | None:
    pair = ALTERATIONS[alteration](drawn, drawn_world(drawn))
    if pair is None:
        return None
    a, b, subject = pair
    return DrawnPair(place, (b, a) if drawn.random() < 0.5 else (a, b), subject)


async def judge(words: str, pairs: Sequence[DrawnPair]) -> Counter[str]:
    """Compares a cluster of pairs with what the model states; counts the classes that were said."""
    wanted = {name: said for pair in pairs for name, said in pair.classes().items()}
    report = await compared(
        {pair.place: pair.sides[0] for pair in pairs}, {pair.place: pair.sides[1] for pair in pairs}
    )
    shown = {
        each.pair.name.rpartition("/")[2]: each
        for each in report.differences
        if not each.is_about_words
    }
    assert {n: {c.value for c in each.classes} for n, each in shown.items()} == wanted, words
    entries = stated_answers.judge_report(report)
    for pair in pairs:
        for name in pair.classes():
            each = shown[name]
            own = name.removeprefix(pair.place.prefix)
            lived = {side: pods.get(own) for side, pods in pair.lived.items()}
            stated_answers.judge_pod(entries[f"pods/default/{name}"], pair.place, lived)
            stated_answers.judge_choice(entries[f"pods/default/{name}"], lived)
            near = each.chain[0].pair.name.rpartition("/")[2] if each.chain else CHANGE
            assert near in pair.before(name), (words, name, near)
            assert root_of(each.root) in pair.subjects(), (words, name, each.root)
    return Counter(each for said in wanted.values() for each in said)


async def judge_one(alteration: str, seed: int) -> Counter[str]:
    """Judges a drawn world that differs in one change."""
    words = f"stated {alteration} {seed}"
    pair = drawn_pair(ALONE, alteration, random.Random(words))
    return Counter() if pair is None else await judge(words, [pair])


async def judge_two(one: str, other: str, seed: int) -> Counter[str]:
    """Judges two drawn worlds in one cluster, each with a node and a change of its own."""
    words = f"stated {one} {other} {seed}"
    drawn = random.Random(words)
    pairs = [drawn_pair(ALONE, one, drawn), drawn_pair(NEIGHBOUR, other, drawn)]
    if None in pairs:
        return Counter()
    return await judge(words, [pair for pair in pairs if pair is not None])


@pytest.mark.parametrize("alteration", ALTERATIONS)
async def test_classes_and_causes_are_those_that_follow_from_the_change(alteration: str) -> None:
    """Pairs are drawn until one differs, or several with more draws."""
    different = 0
    for seed in range(PAIRS_MAX * draws.FACTOR):
        different += bool(await judge_one(alteration, seed))
        if different == draws.FACTOR:
            break
    assert different, "the alteration is idle"


@pytest.mark.parametrize(("alteration", "seed"), [("removed", 9), ("raised", 33), ("raised", 48)])
async def test_device_of_one_side_is_looked_at_in_its_place(alteration: str, seed: int) -> None:
    """What only one side could have comes first, at a moment that shows what the other one had."""
    assert await judge_one(alteration, seed)


@draws.BY_DAY
@pytest.mark.parametrize("alteration", ALTERATIONS)
async def test_sides_that_are_exchanged_are_compared_the_other_way_round(alteration: str) -> None:
    different = 0
    for seed in range(PAIRS_MAX * draws.FACTOR):
        pair = drawn_pair(ALONE, alteration, random.Random(f"turned {alteration} {seed}"))
        if pair is None:
            continue
        a, b = ({ALONE: world} for world in pair.sides)
        one = await compared(a, b)
        stated_answers.judge_turned(one, await compared(b, a), f"{alteration} {seed}")
        different += bool(one.differences)
        if different == draws.FACTOR:
            break
    assert different, "the alteration is idle"


OF_A_NODE = sorted({*ALTERATIONS} - {"limited", "switched"})
"""The changes that concern one of two nodes only; a quota and a gate concern both."""


@draws.BY_DAY
@pytest.mark.parametrize(
    ("one", "other"), [*zip(OF_A_NODE, [*OF_A_NODE[3:], *OF_A_NODE[:3]], strict=True)]
)
async def test_what_changes_on_one_node_explains_nothing_on_the_other(one: str, other: str) -> None:
    """Two changes at once: each pod has the classes, causes and root of its own node."""
    said = Counter[str]()
    for seed in range(PAIRS_MAX * draws.FACTOR):
        said += await judge_two(one, other, seed)
        if sum(said.values()) > draws.FACTOR:
            break
    assert said, "the alterations are idle"


async def test_pod_that_uses_a_counter_on_both_sides_is_no_cause_of_its_lack() -> None:
    """A controller or a second run gives the same pod another uid; it is the same user still."""
    assert await judge_two("renamed", "lowered", 7)


async def test_only_the_text_changes_where_a_class_that_selects_nothing_is_made() -> None:
    sides = []
    for name in ("A", "B"):
        cluster = cluster_of({ALONE: World((), (("gpu-0", "a"),))})
        cluster.template("worded", class_name="absent")
        if name == "B":
            cluster.device_class("absent", selector="false")
        cluster.pod("worded", template="worded")
        cluster.settle().wait(APART)
        info = HistoryInfo(id=HistoryId(1), name="drawn")
        sides.append(diffing.side_of(info, cluster.line.events, name))
    report = await diffing.drive(compare(*sides))
    (difference,) = report.differences
    assert [each.value for each in difference.classes] == ["said otherwise"]
    (changed,) = report.to_json()["texts"]
    assert changed["root"].endswith("/absent")
    assert (changed["count"], changed["examples"]) == (1, ["pods/default/worded"])
    assert (root_of(difference.root), difference.chain) == ("absent", [])
