"""Asks about each pod and claim of a drawn world, and compares the answers with the model."""

import re
from collections.abc import AsyncIterator

from app.analysis.explain.pages import page
from app.analysis.explain.questions import ObjectExplanation
from tests.truth.states import comparing
from tests.truth.states.model import States, Write
from tests.truth.states.worlds import LivedWorld
from tests.unit.service.test_explaining import Ask, asking

LINES = 1_000
"""More lines than any page of a small world has, so that nothing is cut."""


def states_of(world: LivedWorld) -> States:
    """The model of the present moment of a world, given its log."""
    return States(
        [
            (
                (event.key.resource, event.key.namespace, event.key.name),
                Write(
                    event.revision,
                    event.stamp.actor.user,
                    event.stamp.time,
                    None if event.type == "ObjectDeleted" else event.object,
                ),
            )
            for event in world.cluster.line.events
            if event.is_about_object
        ]
    )


def text_of(answer: ObjectExplanation) -> str:
    """The page of an answer as one line of words."""
    head = f"{answer.subject}: {answer.outcome}, {answer.text}"
    lines = page(head, answer.reason.children, lines_max=LINES)
    return " ".join(re.sub(r"^[│├└─ ]+", "", line).strip() for line in lines)


async def world_differences(seed: int) -> list[str]:
    """The differences between `why` and the model in one world."""
    world = LivedWorld(seed)
    states = states_of(world)
    async with asking(world.cluster) as ask:
        return [one async for one in _judged(states, ask)]


async def _judged(states: States, ask: Ask) -> AsyncIterator[str]:
    for name in (place.removeprefix("default/") for place in states.facts.pods):
        if comparing.is_judged(states, name):
            answer = await ask("pod", name)
            for one in comparing.of_pod(states, name, answer.to_json(), text_of(answer)):
                yield f"pod {name}: {one}"
    for place in states.facts.claims:
        answer = await ask("resourceclaim", place.removeprefix("default/"))
        for one in comparing.of_claim(states, place, answer.to_json(), text_of(answer)):
            yield f"claim {place}: {one}"
