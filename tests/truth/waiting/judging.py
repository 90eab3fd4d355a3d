"""Asks about the pod of a small world, in JSON and as a page, and compares with the model."""

import itertools

from app.analysis.explain.pages import page
from tests.truth import raw
from tests.truth.facts import Facts
from tests.truth.waiting import comparing, remedies
from tests.truth.waiting.carrying_out import carry_out
from tests.truth.waiting.model import Model
from tests.truth.waiting.worlds import SmallWorld
from tests.unit.service.test_explaining import asking

PAIRS_MAX = 300
"""Pairs of changes that are tried where nothing was said to help."""

_NOT_ENUMERATED = ("set attribute", "put alternative")
"""Changes that the model applies where they are proposed, and does not look for."""


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


async def judge(seed: int, made: type[SmallWorld] = SmallWorld) -> list[str]:
    """The differences between `why` and the model in one world of a kind."""
    world = made(seed)
    return list(comparing.differences(model_of(world), *await asked(world)))


async def judge_helps(
    seed: int, made: type[SmallWorld] = SmallWorld, *, lived_max: int = 2
) -> list[str]:
    """What is wrong with the changes that are said to help the pod of one world.

    Each must help by the model, none may need more changes than the fewest that help by it, and the
    first `lived_max` are carried out in twins, where the pod must then run.
    """
    world = made(seed)
    model = model_of(world)
    if model.state != "waiting":
        return []
    async with asking(world.cluster) as ask:
        answer = (await ask("pod", "p", help=True)).to_json()
    helps = answer["helps"]
    state = model.facts.state
    wrong = []
    is_known = _is_known(model, answer)
    for number, one in enumerate(helps):
        after = state
        for sentence in one["changes"]:
            after = remedies.changed(after, sentence)
        if is_known and not remedies.fits(after, one["node"]):
            wrong.append(f"{one['changes']} does not help on {one['node']}")
        # Who releases a claim is gone, and this pod may want to run beside it.
        if number < lived_max and "podAffinity" not in model.pod["spec"].get("affinity", {}):
            twin = made(seed)
            carry_out(twin.cluster, state, after)
            if "nodeName" not in twin.cluster.must("pods", "p")["spec"]:
                wrong.append(f"{one['changes']} was done, and the pod waits")
    if not is_known or not all(one["text"] for one in answer["nodes"]):
        return wrong
    singles = list(remedies.single_helps(model))
    if singles and min((len(one["changes"]) for one in helps), default=9) > 1:
        wrong.append(f"one change helps: {singles[:3]}, said {helps[:3]}")
    if not singles and not helps:
        pairs = list(itertools.islice(remedies.pairs_help(model, tries_max=PAIRS_MAX), 3))
        wrong += [f"two changes help: {one}, said that none do" for one in pairs]
    tried = [one for one in helps if not one["changes"][0].startswith(_NOT_ENUMERATED)]
    if not singles and any(len(one["changes"]) == 1 for one in tried):
        wrong.append(f"no single change helps, said {helps[:3]}")
    return wrong


def _is_known(model: Model, answer: dict) -> bool:
    """Whether defects of upstream, which the model has not, can take no part in the answers.

    Errors of selectors depend on the order of the search, and of the values of one request a
    constraint for distinct ones remembers the last (known issue Q6).
    """
    constraints = str([one["spec"]["devices"].get("constraints") for one in model.unallocated])
    return (
        not any(one.get("quirks") for one in answer["nodes"])
        and not any("CEL runtime error" in one["text"] for one in answer["nodes"])
        and "distinctAttribute" not in constraints
    )
