"""Asks about the pod of a small world, in JSON and as a page, and compares with the model."""

import functools
import itertools
import re
from collections.abc import Iterator

from app.analysis.explain.pages import page
from tests.cluster import Cluster
from tests.truth import raw
from tests.truth.facts import Facts
from tests.truth.raw import State
from tests.truth.waiting import comparing, remedies
from tests.truth.waiting.carrying_out import carry_out
from tests.truth.waiting.model import Model, wishes
from tests.truth.waiting.worlds import SmallWorld
from tests.unit.service.test_explaining import asking

PAIRS_MAX = 300
"""Pairs of changes that are tried where nothing was said to help."""

TRIES_MAX = 300
"""Changes that `why` tries on each node."""

_OF_SPECS = ("label node", "tolerate", "drop", "request", "set whenUnsatisfiable")
_NOT_ENUMERATED = ("set attribute", "put alternative", "give DeviceClass", *_OF_SPECS)
"""Changes that the model applies where they are proposed, and does not look for."""


def changes_of(cluster: Cluster) -> list[raw.Change]:
    """All versions of all objects of a cluster."""
    return [
        raw.Change(event.revision, (event.key.resource, event.key.namespace, event.key.name), tree)
        for event in cluster.line.events
        if event.is_about_object
        for tree in [None if event.type == "ObjectDeleted" else event.object]
    ]


def model_of(world: SmallWorld) -> Model:
    """The model of the present moment of a world."""
    history = raw.RawHistory(changes_of(world.cluster))
    return Model(Facts(history.at(world.cluster.line.events[-1].revision)))


async def asked(world: SmallWorld) -> tuple[dict, str]:
    """What `why` says of the pod, as JSON and as a page."""
    async with asking(world.cluster) as ask:
        answer = await ask("pod", "p")
    head = f"{answer.subject}: {answer.outcome}, {answer.text}"
    return answer.to_json(), "\n".join(page(head, answer.reason.children))


async def world_differences(seed: int, made: type[SmallWorld] = SmallWorld) -> list[str]:
    """The differences between `why` and the model in one world of a kind."""
    world = made(seed)
    return list(comparing.differences(model_of(world), *await asked(world)))


async def help_differences(
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
    async with asking(world.cluster, tries_max=TRIES_MAX) as ask:
        answer = (await ask("pod", "p", help=True)).to_json()
    helps = answer["helps"]
    state = model.facts.state
    wrong = list(_counts(answer))
    is_known = _is_known(model, answer)
    for number, one in enumerate(helps):
        after = state
        for sentence in one["changes"]:
            after = remedies.changed(after, sentence)
        if is_known and not remedies.fits(after, one["node"]):
            wrong.append(f"{one['changes']} does not help on {one['node']}")
        # Who releases a claim is gone, and this pod may want to run beside it.
        is_lived = number < lived_max and "podAffinity" not in model.pod["spec"].get("affinity", {})
        if is_lived and not comes_true(made(seed), state, after):
            wrong.append(f"{one['changes']} was done, and the pod waits")
    if not is_known or not all(one["text"] for one in answer["nodes"]):
        return wrong
    singles = list(remedies.single_helps(model))

    def helps_indeed(changes: tuple[str, ...]) -> bool:
        after = functools.reduce(remedies.changed, changes, state)
        # Its own looks may keep devices from the pod (known issue Q9), and a search may meet an
        # error before it comes to devices that would do: then it is tried.
        is_certain = not _looks_beside_others(model) and not remedies.has_errors(after)
        return is_certain or comes_true(made(seed), state, after)

    is_missed = min((len(one["changes"]) for one in helps), default=9) > 1
    if is_missed and any(helps_indeed((sentence,)) for _, sentence in singles):
        wrong.append(f"one change helps: {singles[:3]}, said {helps[:3]}")
    if not singles and not helps:
        pairs = remedies.pairs_help(model, tries_max=PAIRS_MAX)
        missed = itertools.islice((one for one in pairs if helps_indeed(one[1:])), 3)
        wrong += [f"two changes help: {one}, said that none do" for one in missed]
    tried = [one for one in helps if not one["changes"][0].startswith(_NOT_ENUMERATED)]
    if not singles and any(len(one["changes"]) == 1 for one in tried):
        wrong.append(f"no single change helps, said {helps[:3]}")
    return wrong


def _counts(answer: dict) -> Iterator[str]:
    """What is wrong with the numbers of nodes on which changes were tried."""
    refusing = sum(bool(one["text"]) for one in answer["nodes"])
    for tried, count in re.findall(r"tried on (\d+) of (\d+) nodes?\b", str(answer["reasons"])):
        if not int(tried) <= int(count) <= refusing:
            yield f"tried on {tried} of {count} nodes, {refusing} refuse the pod"


def comes_true(twin: SmallWorld, before: State, after: State) -> bool:
    """Whether the pod runs in a twin of the world once the changes are made."""
    carry_out(twin.cluster, before, after)
    return "nodeName" in twin.cluster.must("pods", "p")["spec"]


def _looks_beside_others(model: Model) -> bool:
    """Whether the pod has requests for administrative access and others without it."""
    alike = {
        wish.only_looks
        for claim in model.unallocated
        for wish in itertools.chain.from_iterable(wishes(claim))
    }
    return len(alike) > 1


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
