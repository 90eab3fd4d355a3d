"""What proposed changes hit, counted from raw objects, beside what `blast` says."""

import random
from collections.abc import Awaitable, Callable, Iterator

from tests.truth.answers import differences
from tests.truth.facts import FINISHED, Facts, device_of, is_tolerated, reserved_for, results

Propose = Callable[[dict], Awaitable[dict]]
"""Asks what a proposal would do, at the moment of the facts."""


async def blasts(facts: Facts, propose: Propose, pick: random.Random) -> list[str]:
    """Differences for a rule on one device or driver, a drain, a cordon and a deleted node."""
    wrong: list[str] = []
    if facts.devices and facts.is_known:
        device = pick.choice(sorted(facts.devices))
        parts = dict(zip(("driver", "pool", "device"), device[: pick.choice((1, 3))], strict=False))
        wrong += _of_rule(facts, parts, await propose({"objects": [_rule(parts)]}))
    nodes = sorted(name for name, _ in facts.all("nodes"))
    if nodes:
        node = pick.choice(nodes)
        wrong += _of_drain(facts, node, await propose({"drain": [node]}))
        cordoned = await propose({"cordon": [node]})
        wrong += differences(f"pods of cordoned {node}", cordoned["pods"], [])
        deleted = await propose({"delete": [f"node/{node}"]})
        said = _pods(deleted, "orphaned")
        run = {
            p for p in facts.on_node(node) if facts.pods[p]["status"].get("phase") not in FINISHED
        }
        wrong += differences(f"orphans of {node}", said, run)
    return wrong


def _rule(parts: dict) -> dict:
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "proposed"},
        "spec": {"deviceSelector": parts, "taint": TAINT},
    }


TAINT = {"key": "example.com/proposed", "effect": "NoExecute"}


def _pods(answer: dict, *fates: str) -> set[str]:
    return {f"{one['namespace']}/{one['name']}" for one in answer["pods"] if one["fate"] in fates}


def _of_rule(facts: Facts, parts: dict, answer: dict) -> Iterator[str]:
    place = tuple(parts.values())
    tainted = [id for id in facts.devices if id[: len(place)] == place]
    said = {one["device"] for one in answer["devices"] if one["change"] == "tainted"}
    # A scheduler that doesn't see rules (C24) has no tainted devices, but pods are evicted.
    is_shown = {id for id in tainted if facts.with_rules and facts.pools[id[:2]].is_usable}
    counted = {"/".join(id) for id in is_shown}
    yield from differences(f"tainted by {place}", said, counted)
    claims, doomed = set(), set()
    for name, claim in facts.claims.items():
        hit = [one for one in results(claim) if device_of(one)[: len(place)] == place]
        if any(_is_evicting(one) for one in hit if device_of(one) in facts.devices):
            claims.add(name)
            doomed |= {f"{name.split('/')[0]}/{pod}" for pod in reserved_for(claim)}
    shown = {
        f"{one['namespace']}/{one['name']}"
        for one in answer["claims"]
        if any(trouble["kind"] == "tainted" for trouble in one["troubles"])
    }
    yield from differences(f"claims hit by {place}", shown, claims)
    alive = {pod for pod in doomed & facts.pods.keys() if facts.pods[pod]["spec"].get("nodeName")}
    # Parity: controllers.md 1.3; claims for extended resources are not evicted (C3).
    alive = {pod for pod in alive if facts.pods[pod]["spec"].get("resourceClaims")}
    going = {pod for pod in alive if "deletionTimestamp" in facts.pods[pod]["metadata"]}
    evicted = _pods(answer, "now", "later", "already")
    yield from differences(f"pods evicted by {place}", evicted, alive - going)


def _is_evicting(result: dict) -> bool:
    """Whether the pods of a result go, now or later (controllers.md 1.3, quirk C2)."""
    return not any(
        "tolerationSeconds" not in one
        for one in result.get("tolerations") or ()
        if one.get("effect") == TAINT["effect"] and is_tolerated(TAINT, [one])
    )


def _of_drain(facts: Facts, node: str, answer: dict) -> Iterator[str]:
    leaves = {
        name
        for name in facts.on_node(node)
        if not any(
            one["kind"] == "DaemonSet"
            for one in facts.pods[name]["metadata"].get("ownerReferences") or ()
        )
        and "kubernetes.io/config.mirror"
        not in (facts.pods[name]["metadata"].get("annotations") or {})
        and "deletionTimestamp" not in facts.pods[name]["metadata"]
    }
    said = _pods(answer, "drained", "protected", "now")
    yield from differences(f"drained from {node}", said, leaves)
