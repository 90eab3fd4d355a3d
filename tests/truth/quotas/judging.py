"""Asks about the pod of a quota world, compares with the model, and does what is proposed."""

import re
from dataclasses import dataclass

from tests.truth import raw
from tests.truth.facts import Facts
from tests.truth.quotas import model
from tests.truth.quotas.worlds import QuotaWorld
from tests.unit.service.test_explaining import asking

LONG = 1100
"""Seconds after which the claim controller has tried again, whatever its pauses are."""


@dataclass(frozen=True, slots=True)
class Moments:
    """The present, the moment of the last refusal, the wanted claim and the message about it."""

    now: Facts
    before: Facts
    wish: dict
    refusal: str

    def differences(self, answer: dict) -> list[str]:
        """What an answer says otherwise than the model counts."""
        return list(model.differences(self.now, self.before, self.wish, answer, self.refusal))


async def world_differences(seed: int) -> list[str]:
    """The differences between `why` and the model in one world, or remedies that do not help."""
    answer, moments = await asked(QuotaWorld(seed))
    return moments.differences(answer) or (remedied(seed, answer) if moments.refusal else [])


async def asked(world: QuotaWorld) -> tuple[dict, Moments]:
    """What `why` says of the pod, and what the model needs."""
    async with asking(world.cluster) as ask:
        answer = (await ask("pod", "p", help=True)).to_json()
    events = world.cluster.line.events
    refused = [
        event
        for event in events
        if event.key.resource == "events"
        and event.object["reason"] == "FailedResourceClaimCreation"
        and event.object["involvedObject"]["name"] == "p"
    ]
    changes = [
        raw.Change(event.revision, (event.key.resource, event.key.namespace, event.key.name), tree)
        for event in events
        if event.is_about_object
        for tree in [None if event.type == "ObjectDeleted" else event.object]
    ]
    history = raw.RawHistory(changes)
    now = Facts(history.at(events[-1].revision))
    before = Facts(history.at(refused[-1].revision - 1)) if refused else now
    wish = now.state["resourceclaimtemplates", "default", "wish"]["spec"]
    is_refused = refused and not claims_for(world)
    refusal = refused[-1].object["message"] if is_refused else ""
    return answer, Moments(now, before, wish, refusal)


def nodes_of(answer: dict) -> list[dict]:
    """All nodes of the tree of an answer."""
    return list(model.nodes(answer["reasons"]))


def claims_for(world: QuotaWorld) -> list[str]:
    """The claims that were made for the pod."""
    status = world.cluster.must("pods", "p").get("status") or {}
    return [one["resourceClaimName"] for one in status.get("resourceClaimStatuses") or ()]


def remedied(seed: int, answer: dict) -> list[str]:
    """What does not come true when the quotas allow what `why` says; one less must not do."""
    changes = [change for one in answer.get("helps", ()) for change in one["changes"]]
    amounts = [match for one in changes if (match := re.match(model.REMEDY, one))]
    if not amounts:
        return []
    wrong = []
    for less in (0, 1):
        twin = QuotaWorld(seed)
        for match in amounts:
            quota, amount, name = match[1], int(match[2]) - less, match[3]
            twin.cluster.patch("resourcequotas", quota, {"spec": {"hard": {name: str(amount)}}})
        twin.cluster.wait(LONG)
        messages = [one for one in twin.cluster.messages("p") if "exceeded quota" in one]
        last = re.search(r"exceeded quota: ([^,]+)", messages[-1]) if messages else None
        is_refused = not claims_for(twin)
        of_another = is_refused and last is not None and last[1] not in {m[1] for m in amounts}
        if is_refused and not less and not of_another:
            wrong.append(f"{changes} was done, and the claim is refused")
        if less and not is_refused:
            wrong.append(f"one less than {changes} is enough")
    return wrong
