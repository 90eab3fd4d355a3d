"""Compares what `why` says of the extended resources of a pod with what the model counts."""

import re
from collections.abc import Iterator

from tests.truth.waiting import extended
from tests.truth.waiting.model import Model

NAMED_MAX = 3
"""The nodes of which each is described in a sentence."""

_STANDS = r"(\S+) stands for devices of class (\S+?)(?: and not of class(?:es)? (.*?): (.*))?$"
_PLUGIN = (
    r"nodes? (.*) (?:has|have) (\S+) of a device plugin \((\d+) allocatable\), "
    r"so devices of class (\S+) do not count there"
)
_HAS = (
    r"node (\S+) has (\d+) ([^\s,;]+/[^\s,;]+)"
    r"(?:, of which its (?:\d+ )?pods? requests? (\d+))?; this pod requests (\d+)"
)
_NOTHING = r"nodes? (.*) offers? no ([^\s;]+/[^\s;]+); this pod requests (\d+)"


def differences(model: Model, answer: dict) -> Iterator[str]:
    """One line for each statement about extended resources that is not as counted."""
    lines = [one["text"] for one in answer["reasons"]["children"]]
    lacking = _lacking(model, answer)
    yield from _classes(model, answer, lines)
    yield from _plugins(model, lines, lacking)
    yield from _amounts(model, lines, lacking)
    unserved = {one for one in lacking if not _class(model, one)}
    said = {one[1]: one[2] for line in lines if (one := _unserved(line))}
    if said.keys() != unserved:
        yield f"said that no class stands for {sorted(said)}, counted {sorted(unserved)}"
    for resource, rest in said.items():
        name = resource.removeprefix(extended.IMPLICIT)
        if name != resource and f"DeviceClass {name} does not exist" not in rest:
            yield f"no word of the missing class {name}: {rest!r}"


def _class(model: Model, resource: str) -> str:
    return extended.class_of(model.facts, resource)


def _node(model: Model, name: str) -> dict:
    return model.facts.state["nodes", "", name]


def _offered(model: Model, node: str, resource: str) -> int:
    return extended.offered(_node(model, node), resource)


def _unserved(line: str) -> re.Match | None:
    return re.match(r"no DeviceClass stands for ([^\s:;]+)(.*)", line)


def _lacking(model: Model, answer: dict) -> dict[str, list[str]]:
    """The nodes that lack each resource, by the causes that the answer gives."""
    lacking: dict[str, list[str]] = {}
    for one in answer["nodes"]:
        for resource in re.findall(r"Insufficient ([^\s,]+/[^\s,]+)", one["text"]):
            lacking.setdefault(resource, []).append(one["node"])
    return lacking


def _classes(model: Model, answer: dict, lines: list[str]) -> Iterator[str]:
    said = {match[1]: match for line in lines if (match := re.match(_STANDS, line))}
    if any(one["text"] and one.get("claims") for one in answer["nodes"]):
        wanted = {one for one in extended.resources(model.pod) if _class(model, one)}
        if said.keys() != wanted:
            yield f"said what {sorted(said)} stand for, counted {sorted(wanted)}"
    for resource, match in said.items():
        chosen, others = _class(model, resource), _others(model, resource)
        named = set(re.findall(r"[\w-]+", match[3] or ""))
        if match[2] != chosen or named != others.keys():
            yield f"{match[0]!r}, counted {chosen} and not {sorted(others)}"
            continue
        age = model.facts.state["deviceclasses", "", chosen]["metadata"]["creationTimestamp"]
        reasons = {"newest": bool(others), "first by name": age in others.values()}
        for words, is_reason in reasons.items():
            if (words in (match[4] or "")) != is_reason:
                yield f"{match[0]!r}, counted {others} beside {age}"


def _others(model: Model, resource: str) -> dict[str, str]:
    """The classes that have the name of a resource and do not count, with their creation."""
    return {
        name: tree["metadata"]["creationTimestamp"]
        for name, tree in model.facts.all("deviceclasses")
        if tree["spec"].get("extendedResourceName") == resource and name != _class(model, resource)
    }


def _plugins(model: Model, lines: list[str], lacking: dict[str, list[str]]) -> Iterator[str]:
    said = {match[2]: match for line in lines if (match := re.match(_PLUGIN, line))}
    for resource, names in lacking.items():
        chosen = _class(model, resource)
        offering = {one: _offered(model, one, resource) for one in names}
        offering = {one: amount for one, amount in offering.items() if amount}
        match = said.pop(resource, None)
        if not chosen or not offering:
            if match:
                yield f"{match[0]!r}, counted {chosen!r}, {offering}"
        elif not match or match[4] != chosen or int(match[3]) not in offering.values():
            yield f"{match and match[0]!r}, counted {chosen!r}, {offering}"
        elif set(re.findall(r"[\w-]+", match[1].partition(" and ")[0])) - offering.keys():
            yield f"{match[0]!r}, counted {offering}"
    if said:
        yield f"nobody lacks {sorted(said)}"


def _amounts(model: Model, lines: list[str], lacking: dict[str, list[str]]) -> Iterator[str]:
    described = set()
    for match in (match for line in lines if (match := re.match(_HAS, line))):
        node, resource = match[1], match[3]
        described.add(node)
        amounts = tuple(int(one or 0) for one in (match[2], match[4], match[5]))
        counted = (
            _offered(model, node, resource),
            extended.used(model.facts, _node(model, node), resource),
            extended.asks(model.pod, resource),
        )
        if amounts != counted or node not in lacking.get(resource, ()):
            yield f"{match[0]!r}, counted {counted}"
    having = {one for name, nodes in lacking.items() for one in nodes if _offered(model, one, name)}
    if described - having or len(described) < min(len(having), NAMED_MAX):
        yield f"described {sorted(described)} of {sorted(having)}"
    nothing = {match[2]: match for line in lines if (match := re.match(_NOTHING, line))}
    for resource, nodes in lacking.items():
        without = {one for one in nodes if not _offered(model, one, resource)}
        match = nothing.pop(resource, None)
        if bool(match) != bool(without):
            yield f"{match and match[0]!r}, counted {sorted(without)} without {resource}"
        elif match and int(match[3]) != extended.asks(model.pod, resource):
            yield f"{match[0]!r}, counted {extended.asks(model.pod, resource)}"
        elif match and _number(match[1]) != len(without):
            yield f"{match[0]!r}, counted {sorted(without)}"
    if nothing:
        yield f"nobody lacks {sorted(nothing)}"


def _number(text: str) -> int:
    """How many names a list has, with those that it only counts."""
    shown, _, rest = text.partition(" and ")
    more = re.match(r"(\d+) more", rest)
    return len(re.findall(r"[\w-]+", shown)) + (int(more[1]) if more else bool(rest))
