"""Allocations in a log that leaves out all deletions, or lost lines here and there.

Claim `y` of a pod on `node` gets a device. Pool p has a and b there, pool q has k everywhere; a
comes first, then b, then k. Which of them may be wrong follows from what the log cannot show: a
slice, a rule or a claim that is not shown afterwards may have ended, or have changed, unseen.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import device, key_of, result, selector, user
from tests.unit.analysis.verify.test_last_lost import ANY, OPEN, SAME, WRONG, local, result_of
from tests.unit.analysis.verify.test_selector_judge import put_class

Step = Callable[[Story], object]
ENDS = {"lacks_ends": True}
RULE = {"key": "worn", "effect": "NoSchedule"}


def judged(given: str, *before: Step, after: tuple[Step, ...] = (), **lacks: bool) -> Any:
    """The comparison of the allocation of a device, `a` to `k`, with steps before it and after."""
    story = Story()
    put_class(story)
    story.put(key_of("nodes", "node"), {})
    local(story, "p", "node", device("a"), device("b"))
    story.publish("q", device("k"))
    story.claim("y", ANY)
    story.pod("of-y", "y", node="node")
    for step in before:
        step(story)
    tree, write = story.change(key_of("resourceclaims", "y"), after=30)
    allocation: dict[str, Any] = {"devices": {"results": [result("p", given)]}}
    if given == "k":
        allocation = {"devices": {"results": [result("q", given)]}}
    else:
        allocation["nodeSelector"] = selector(node="node")
    users = [user("of-y", story.uid("of-y"))]
    tree["status"] = {"allocation": allocation, "reservedFor": users}
    write()
    count = story.revision
    for step in after:
        step(story)
    return result_of(story, None, number=story.revision - count, **lacks)


def show(*names: str) -> Step:
    """Slices are written again as they are: nobody has withdrawn them."""

    def step(story: Story) -> None:
        for name in names:
            tree, write = story.change(key_of("resourceslices", name))
            tree["metadata"]["labels"] = {"shown": str(story.revision)}
            write()

    return step


def lose(resource: str, *names: str) -> Step:
    """A line about each object is lost, as the next one shows."""

    def step(story: Story) -> None:
        for name in names:
            story.gap(key_of(resource, name), "gap")
            if resource == "resourceslices" and name not in "pq":
                local(story, name, "elsewhere", device("z"))
            elif resource == "resourceslices":
                show(name)(story)
            elif resource == "resourceclaims":
                story.claim(name, ANY)
            else:
                rule(name, pool="p" if name == "rule" else "z")(story)

    return step


def rule(name: str = "rule", pool: str = "p", **of: str) -> Step:
    """A rule that taints devices."""

    def step(story: Story) -> None:
        chosen = {"pool": pool, **of}
        tree = {"spec": {"deviceSelector": chosen, "taint": RULE}}
        story.put(key_of("devicetaintrules", name), tree, after=1)

    return step


def incomplete(story: Story) -> None:
    """Pool p has a second slice, which no line shows."""
    tree, write = story.change(key_of("resourceslices", "p"))
    tree["spec"]["pool"]["resourceSliceCount"] = 2
    write()


def allocate(pool: str, name: str) -> Step:
    """Another claim gets a device."""
    return lambda story: story.allocate("later", result(pool, name))


def publish(story: Story) -> None:
    """A slice is made, which may be the one that the pool lacks."""
    story.publish("s", device("z"))


LOST_LATER = (show("p", "q"), lose("resourceslices", "p", "q"))
"""Two lines of slices are lost, both after the allocation."""


ROWS: dict[str, tuple[Callable[[], Any], Any]] = {
    "the first device": (partial(judged, "a"), SAME),
    "the second one": (partial(judged, "b"), WRONG),
    "a device of another pool": (partial(judged, "k"), WRONG),
    # deletions are left out
    "the other pool may be gone": (partial(judged, "k", **ENDS), OPEN),
    "the other pool is there later": (partial(judged, "k", after=(show("p"),), **ENDS), WRONG),
    "the own pool is there later": (partial(judged, "k", after=(show("q"),), **ENDS), OPEN),
    "a device of the own pool is not gone alone": (partial(judged, "b", **ENDS), WRONG),
    # lines of slices are lost
    "one lost line is an accident": (partial(judged, "k", lose("resourceslices", "s")), WRONG),
    "slices may have changed": (partial(judged, "k", lose("resourceslices", "s", "t")), OPEN),
    "the own one may, too": (partial(judged, "b", lose("resourceslices", "s", "t")), OPEN),
    "all slices are as they are later": (
        partial(judged, "k", lose("resourceslices", "s", "t"), after=(show("p", "q"),)),
        WRONG,
    ),
    "one of them is not": (
        partial(judged, "k", lose("resourceslices", "s", "t"), after=(show("q"),)),
        OPEN,
    ),
    "they were lost later, from the beginning": (
        partial(judged, "k", after=(lose("resourceslices", "s", "t"),)),
        OPEN,
    ),
    "lost after the write": (
        partial(judged, "k", after=(show("p", "q"), lose("resourceslices", "p", "q"))),
        WRONG,
    ),
    # a slice of the pool that no line shows
    "a device of it is allocated later": (
        partial(judged, "b", incomplete, after=(*LOST_LATER, allocate("p", "unknown"))),
        OPEN,
    ),
    "none of its devices is allocated": (
        partial(judged, "b", incomplete, after=(*LOST_LATER, allocate("p", "a"))),
        WRONG,
    ),
    "a device that another pool lacks is allocated": (
        partial(judged, "b", incomplete, after=(*LOST_LATER, allocate("q", "unknown"))),
        WRONG,
    ),
    "the pool has all its slices": (
        partial(judged, "b", after=(*LOST_LATER, allocate("p", "unknown"))),
        WRONG,
    ),
    "another slice comes later": (
        partial(
            judged,
            "b",
            incomplete,
            after=(*LOST_LATER, publish, allocate("p", "unknown")),
        ),
        WRONG,
    ),
    "no line is lost": (
        partial(judged, "b", incomplete, after=(show("p"), allocate("p", "unknown"))),
        WRONG,
    ),
    # lines of claims are lost
    "one claim may hold it": (
        partial(judged, "b", lose("resourceclaims", "s")),
        WRONG,
    ),
    "claims may hold anything": (partial(judged, "b", lose("resourceclaims", "s", "t")), OPEN),
    "they hold nothing that is chosen": (
        partial(judged, "a", lose("resourceclaims", "s", "t")),
        SAME,
    ),
    # rules
    "a tainted device": (partial(judged, "a", rule()), WRONG),
    "its rule may have ended": (partial(judged, "a", rule(), after=(show("q"),), **ENDS), OPEN),
    "its rule is there later": (
        partial(judged, "a", rule(), after=(show("q"), rule()), **ENDS),
        WRONG,
    ),
    "its rule is there later, what was chosen instead is not": (
        partial(judged, "a", rule(), after=(rule(),), **ENDS),
        OPEN,
    ),
    "another rule is there later": (
        partial(judged, "a", rule(), after=(show("q"), rule("other", pool="z")), **ENDS),
        OPEN,
    ),
    "one of its two rules is there later": (
        partial(judged, "a", rule(), rule("second"), after=(show("q"), rule()), **ENDS),
        WRONG,
    ),
    "a write of its rule is lost before a later line": (
        partial(judged, "a", rule(), lose("devicetaintrules", "rule")),
        WRONG,
    ),
    "a write of its rule is lost about then": (
        partial(judged, "a", rule(), after=(lose("devicetaintrules", "rule"),)),
        OPEN,
    ),
    "writes of other rules are lost": (
        partial(judged, "a", rule(), after=(rule(), lose("devicetaintrules", "s", "t"))),
        WRONG,
    ),
    "writes of rules are lost": (
        partial(judged, "a", rule(), lose("devicetaintrules", "s", "t")),
        OPEN,
    ),
    "a rule of another device ends, too": (
        partial(judged, "k", rule("far", pool="q"), **ENDS),
        OPEN,
    ),
}


@pytest.mark.parametrize(("found", "expected"), ROWS.values(), ids=ROWS)
def test_what_the_log_cannot_show_may_explain_an_allocation(
    found: Callable[[], Any], expected: Any
) -> None:
    assert found() is expected
