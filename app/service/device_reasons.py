"""Claims and rules as reasons: which devices they have or hit, and who uses them."""

from collections.abc import Iterable, Sequence

from app.domain.controllers.resources import CLAIMS
from app.domain.devices import taints
from app.domain.devices.model import Taint
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.pod_reasons import Steps
from app.service.reason_tallies import common_prefix
from app.service.reasons import Reason, listed
from app.service.views import LiveViews

STEP_MAX = 256
"""Objects looked at before others may run."""

Place = tuple[str, str, str]


def results_of(claim: JsonView) -> list[JsonObject]:
    """The allocation results of a claim."""
    return json_tree.objects(claim, "status", "allocation", "devices", "results")


def place_of(result: JsonView) -> Place:
    """Driver, pool and device of a result."""
    return (
        json_tree.text(result, "driver"),
        json_tree.text(result, "pool"),
        json_tree.text(result, "device"),
    )


def devices_text(places: Iterable[Place], *, all_names: bool = False) -> str:
    """The devices, what their names begin with told once: `gpu-0, gpu-1 of driver/pool`."""
    names = ["/".join(place) for place in places]
    prefix = common_prefix(names)
    shown = [name.removeprefix(prefix) for name in names]
    text = ", ".join(shown) if all_names else listed(shown, len(shown))
    return f"{text} of {prefix.rstrip('/')}" if prefix else text


def allocated(results: Sequence[JsonObject]) -> list[Reason]:
    """What a claim has, one line a request."""
    requests: dict[str, list[JsonObject]] = {}
    for result in results:
        requests.setdefault(json_tree.text(result, "request"), []).append(result)
    return [_request(name, found) for name, found in requests.items()]


def claims_of(views: LiveViews, pod: JsonObject) -> Steps[list[Reason]]:
    """The claims that are reserved for a pod, with their devices."""
    uid = json_tree.text(pod, "metadata", "uid")
    namespace = json_tree.text(pod, "metadata", "namespace")
    found: list[Reason] = []
    for number, key in enumerate(list(views.objects.keys(*CLAIMS, namespace))):
        if number % STEP_MAX == 0:
            yield
        tree = views.objects.get(key) or {}
        consumers = json_tree.objects(tree, "status", "reservedFor")
        if any(consumer.get("uid") == uid for consumer in consumers):
            children = tuple(allocated(results_of(tree)))
            found.append(Reason(text=f"claim {key.name}", children=children))
    return found


def evicting(views: LiveViews, pod: JsonObject) -> Steps[list[Reason]]:
    """The NoExecute taints of the pod's devices that its claims do not tolerate now."""
    held: dict[Place, tuple[str, JsonObject]] = {}
    uid = json_tree.text(pod, "metadata", "uid")
    for key in list(views.objects.keys(*CLAIMS, json_tree.text(pod, "metadata", "namespace"))):
        tree = views.objects.get(key) or {}
        consumers = json_tree.objects(tree, "status", "reservedFor")
        if any(consumer.get("uid") == uid for consumer in consumers):
            held.update({place_of(result): (key.name, result) for result in results_of(tree)})
    found: list[Reason] = []
    for number, item in enumerate(list(views.inventory.slices())):
        if number % STEP_MAX == 0:
            yield
        for device in item.devices:
            if device.id not in held:
                continue
            name, result = held[device.id]
            tolerations = [
                taints.toleration_of(one) for one in json_tree.objects(result, "tolerations")
            ]
            for taint in device.taints:
                if taint.effect != "NoExecute":
                    continue
                if taints.untolerated((taint,), tolerations) is None:
                    continue
                origin = f"rule {taint.rule}" if taint.rule else f"the driver, slice {item.key}"
                what = f"tainted {taint_text(taint)} by {origin}"
                found.append(Reason(text=f"claim {name} has {device.text}, {what}"))
    return found


def rule(
    views: LiveViews, tree: JsonObject
) -> Steps[tuple[tuple[Reason, ...], list[str], list[str]]]:
    """What a DeviceTaintRule does: the reasons, all devices it selects, all claims it hits."""
    selector = json_tree.get(tree, "spec", "deviceSelector")
    effect = json_tree.text(tree, "spec", "taint", "effect")
    matched: list[Place] = []
    for number, item in enumerate(list(views.inventory.slices())):
        if number % STEP_MAX == 0:
            yield
        matched += [device.id for device in item.devices if _selects(selector, device.id)]
    claims = yield from _claims_hit(views, selector)
    said = tuple(
        Reason(
            text=f"{json_tree.text(item, 'reason')}: {json_tree.text(item, 'message')}".rstrip(": ")
        )
        for item in json_tree.objects(tree, "status", "conditions")
    )
    taint = taints.taint_of(json_tree.mapping(tree, "spec", "taint"))
    text = f"taint {taint_text(taint)} on {_count(len(matched), 'published device')}"
    if selector is None:
        text += "; a rule without deviceSelector selects nothing"
    elif matched:
        text += f": {devices_text(matched)}"
    claim_text = f"{_count(len(claims), 'allocated claim')} on them"
    if claims and effect != "NoExecute":
        claim_text += f"; their pods go on, the effect is {effect}"
    reasons = (
        *said,
        Reason(text=text, count=len(matched)),
        Reason(
            text=claim_text,
            count=len(claims),
            children=tuple(Reason(text=one) for one in claims),
        ),
    )
    return reasons, ["/".join(place) for place in matched], claims


def taint_text(taint: Taint) -> str:
    """`key=value:effect`, without the sign where there is no value, as kubectl writes taints."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _request(name: str, found: Sequence[JsonObject]) -> Reason:
    consumed = [json_tree.mapping(result, "consumedCapacity") for result in found]
    if not any(consumed):
        places = [place_of(result) for result in found]
        text = f"request {name} has {devices_text(places, all_names=True)}"
        return Reason(text=text, count=len(found))
    lines = tuple(
        Reason(
            text="/".join(place_of(result))
            + (" with " + ", ".join(f"{key} {amount}" for key, amount in sorted(used.items())))
        )
        for result, used in zip(found, consumed, strict=True)
    )
    if len(lines) == 1:
        return Reason(text=f"request {name} has {lines[0].text}")
    text = f"request {name} has {len(lines)} shares"
    return Reason(text=text, children=lines, count=len(lines))


def _claims_hit(views: LiveViews, selector: object) -> Steps[list[str]]:
    found: list[str] = []
    for number, key in enumerate(list(views.objects.keys(*CLAIMS))):
        if number % STEP_MAX == 0:
            yield
        tree = views.objects.get(key) or {}
        hit = [place_of(result) for result in results_of(tree)]
        hit = [place for place in hit if _selects(selector, place)]
        if not hit:
            continue
        consumers = json_tree.objects(tree, "status", "reservedFor")
        pods = ", ".join(json_tree.text(consumer, "name") for consumer in consumers)
        owner = f"of pod {pods}" if pods else "of no pod"
        devices = devices_text(hit, all_names=True)
        found.append(f"claim {key.namespace}/{key.name} {owner}: {devices}")
    return found


def _selects(selector: object, place: Place) -> bool:
    """As eviction reads a selector: an absent one selects nothing (controllers.md C1)."""
    if not isinstance(selector, dict):
        return False
    wanted = zip(("driver", "pool", "device"), place, strict=True)
    return all(selector.get(name) in (None, part) for name, part in wanted)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
