"""Asks about the pod of a small world, in JSON and as a page, and compares with the model."""

from app.analysis.explain.pages import page
from tests.truth import raw
from tests.truth.facts import Facts
from tests.truth.waiting import comparing
from tests.truth.waiting.model import Model
from tests.truth.waiting.worlds import SmallWorld
from tests.unit.service.test_explaining import asking


def model_of(world: SmallWorld) -> Model:
    """The model of the present moment of a world."""
    changes = [
        raw.Change(event.revision, (event.key.resource, event.key.namespace, event.key.name), tree)
        for event in world.cluster.line.events
        if event.is_about_object
        for tree in [None if event.type == "ObjectDeleted" else event.object]
    ]
    return Model(Facts(raw.RawHistory(changes).at(world.cluster.line.events[-1].revision)))


async def asked(world: SmallWorld) -> tuple[dict, str]:
    """What `why` says of the pod, as JSON and as a page."""
    async with asking(world.cluster) as ask:
        answer = await ask("pod", "p")
    head = f"{answer.subject}: {answer.outcome}, {answer.text}"
    return answer.to_json(), "\n".join(page(head, answer.reason.children))


async def judge(seed: int) -> list[str]:
    """The differences between `why` and the model in one world."""
    world = SmallWorld(seed)
    return list(comparing.differences(model_of(world), *await asked(world)))
