"""Compares `why` of all pods in use and all claims of a namespace with what the lines say."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace

from tests.adversary.log import Json, Log
from tests.truth.altered.asking import Asked
from tests.truth.altered.lines import writes
from tests.truth.states import comparing
from tests.truth.states.judging import text_of
from tests.truth.states.model import States

_FRACTION = re.compile(r"(\d\d:\d\d:\d\d)\.\d+Z")


def states_of(log: Log, namespace: str) -> States:
    """The model of a namespace, which it calls `default`, and of what belongs to none."""
    return States(
        [
            ((resource, "default" if space else "", name), replace(write, time=_second(write.time)))
            for (resource, space, name), write in writes(log.lines)
            if space in ("", namespace)
        ]
    )


async def differences(asked: Asked, states: States, namespace: str) -> AsyncIterator[str]:
    """One line for each sentence that is not as counted.

    Where the lines show no pod of the namespace, nothing is said about who uses a claim.

    Instants are compared by their seconds: a line is dated when it was answered, and the lines of
    one history are put into one order.
    """
    for place in states.facts.pods:
        name = place.removeprefix("default/")
        if comparing.is_judged(states, name):
            answer = await asked.why("pod", namespace, name)
            for one in comparing.of_pod(
                states, name, _whole(answer.to_json()), _cut(text_of(answer))
            ):
                yield f"pod {name}: {one}"
    for place in states.facts.claims if states.facts.pods else ():
        name = place.removeprefix("default/")
        answer = await asked.why("resourceclaim", namespace, name)
        for one in comparing.of_claim(
            states, place, _whole(answer.to_json()), _cut(text_of(answer))
        ):
            yield f"claim {name}: {one}"


def _second(micros: int) -> int:
    return micros - micros % 1_000_000


def _cut(text: str) -> str:
    return _FRACTION.sub(r"\1Z", text)


def _whole(body: Json) -> Json:
    def walk(node: Json) -> Json:
        children = [walk(child) for child in node.get("children", ())]
        return {**node, "text": _cut(node["text"]), "children": children}

    return {**body, "reasons": walk(body["reasons"])}
