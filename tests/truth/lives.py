"""The lives of devices, counted from the raw events of a log: holders, taints, generations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.truth.answers import Ask, differences, sentences
from tests.truth.facts import Device, device_of, results

SHOWN_MAX = 10
_SPAN = re.compile(
    r"(claim \S+|tainted \S+ by (?:rule \S+|the driver))"
    r"(?: as a share| with administrative access)?"
    r" from (\S+?)(?:, still at .*| to (\S+) \(.*?\), ended by revision (\d+).*)$"
)  # fmt: skip


@dataclass(slots=True)
class Stay:
    """A claim's hold on a device, or a rule's taint, with the revisions of its begin and end."""

    text: str
    uid: str
    begin: int
    end: int | None = None


def holders(lines: list[dict], device: Device) -> list[Stay]:
    """Who held a device, in the order of the beginnings."""
    stays: list[Stay] = []
    open: dict[str, Stay] = {}
    for line in lines:
        if line["resource"] != "resourceclaims" or not line["type"].startswith("Object"):
            continue
        is_gone = line["type"] == "ObjectDeleted"
        holds = not is_gone and device in map(device_of, results(line["object"]))
        uid = line["uid"]
        if holds and uid not in open:
            stay = Stay(f"claim {line['namespace']}/{line['name']}", uid, line["revision"])
            open[uid] = stay
            stays.append(stay)
        elif not holds and uid in open:
            open.pop(uid).end = line["revision"]
    return stays


def rules(lines: list[dict], device: Device) -> list[Stay]:
    """Which rules tainted a device, in the order of the beginnings."""
    stays: list[Stay] = []
    open: dict[str, Stay] = {}
    for line in lines:
        if line["resource"] != "devicetaintrules" or not line["type"].startswith("Object"):
            continue
        name, spec = line["name"], line["object"]["spec"]
        wanted = spec.get("deviceSelector") or {}
        parts = [wanted.get(one) or own for one, own in zip(_PARTS, device, strict=True)]
        text = ""
        if line["type"] != "ObjectDeleted" and tuple(parts) == device:
            taint = spec["taint"]
            value = f"={taint['value']}" if taint.get("value") else ""
            text = f"tainted {taint['key']}{value}:{taint['effect']} by rule {name}"
        if name in open and open[name].text != text:
            open.pop(name).end = line["revision"]
        if text and name not in open:
            open[name] = Stay(text, name, line["revision"])
            stays.append(open[name])
    return stays


_PARTS = ("driver", "pool", "device")


def generation(lines: list[dict], device: Device) -> int | None:
    """The newest generation of the slices that name a device at the end; None without one."""
    last: dict[str, int] = {}
    for line in lines:
        if line["resource"] != "resourceslices" or not line["type"].startswith("Object"):
            continue
        spec = line["object"]["spec"]
        last.pop(line["name"], None)
        is_named = device in (
            (spec["driver"], spec["pool"]["name"], one["name"]) for one in spec.get("devices") or ()
        )
        if is_named and line["type"] != "ObjectDeleted":
            last[line["name"]] = spec["pool"]["generation"]
    return max(last.values(), default=None)


async def life(lines: list[dict], ask: Ask, device: Device) -> list[str]:
    """Differences in the life of a device as `why` shows it, up to the last of the lines."""
    answer = await ask("why", kind="device", namespace="", name="/".join(device))
    said = list(sentences(answer["reasons"]))
    return [f"life of {'/'.join(device)}: {one}" for one in _judged(lines, device, said)]


def _judged(lines: list[dict], device: Device, said: list[str]) -> Iterator[str]:
    stays = holders(lines, device)
    count = next((one for line in said if (one := re.search(r"(\d+) claims? held it", line))), None)
    yield from differences("claims", int(count[1]) if count else 0, len({one.uid for one in stays}))
    spans = [one for line in said if (one := _SPAN.match(line)) and one[1].startswith("claim ")]
    shown = [(one[1], int(one[4]) if one[4] else None) for one in spans]
    counted = [(one.text, one.end) for one in stays[-SHOWN_MAX:]]
    yield from differences("holders", shown, counted)
    spans = [one for line in said if (one := _SPAN.match(line)) and " by rule " in one[1]]
    shown = [(one[1], int(one[4]) if one[4] else None) for one in spans]
    tainted = [(one.text, one.end) for one in rules(lines, device)]
    if len(tainted) < SHOWN_MAX and not any("by the driver" in line for line in said):
        yield from differences("rules", shown, tainted)
    published = [
        int(one[1])
        for line in said
        if (one := re.match(r"published in slice \S+ of pool generation (\d+)", line))
    ]
    newest = generation(lines, device)
    yield from differences("generation", max(published, default=None), newest)
