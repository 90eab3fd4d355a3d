"""Errors of selectors: their expressions, and what the device has instead of what is read."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from app.analysis.explain.nearby import keys
from app.analysis.explain.node_reasons import NodeReason
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.devices.pools import newest
from app.domain.log import ObjectKey
from app.domain.values import api_resources, identifiers
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonView

_FAILED = re.compile(r"\b(class|claim) (\S+): selector #(\d+)\b")
"""The part of an error that names a selector."""

_MISSING = re.compile(
    r"selector #\d+ on device ([^\s:]+): .*?no such key: ([\w.-]*[\w-])", re.DOTALL
)
"""The part of an error that names a device and what it does not have."""


class _Selector(NamedTuple):
    """The selector that an error names, by its number in a class or a claim."""

    kind: str
    name: str
    number: int


def is_of_selector(refusal: str) -> bool:
    """Whether a refusal is the error of a selector."""
    return _FAILED.search(refusal) is not None


def failing(views: LiveViews, nodes: Sequence[NodeReason]) -> Iterator[Reason]:
    """The expressions of the selectors that failed with an error; the error gives their numbers."""
    failed: dict[_Selector, dict[tuple[str, str], None]] = {}
    errors: dict[_Selector, str] = {}
    for reason in nodes:
        if reason.is_error and (selector := _selector_of(reason.text)) is not None:
            names = () if reason.explained is None else reason.explained.failing
            failed.setdefault(selector, {}).update(dict.fromkeys(names))
            errors.setdefault(selector, reason.text)
    lines: dict[str, str] = {}
    for selector, requests in failed.items():
        for owner, expression in _expressions(views, selector, requests):
            text = f"selector #{selector.number} of {owner}: {expression}"
            lines[text] = _instead(views, errors[selector], expression)
    for text, instead in list(lines.items())[:NAMES_MAX]:
        children = (Reason(text=instead, is_kept=True),) if instead else ()
        yield Reason(text=text, children=children, is_kept=True)


def corrections(views: LiveViews, refusal: str) -> Iterator[Reason]:
    """The places that the device of an error has instead of what the selector reads."""
    if (selector := _selector_of(refusal)) is None:
        return
    lines = {
        _instead(views, refusal, expression): None
        for _, expression in _expressions(views, selector, None)
    }
    for text in list(filter(None, lines))[:NAMES_MAX]:
        yield Reason(text=text, is_kept=True)


def _selector_of(text: str) -> _Selector | None:
    match = _FAILED.search(text)
    return None if match is None else _Selector(match[1], match[2], int(match[3]))


def _expressions(
    views: LiveViews, selector: _Selector, requests: Collection[tuple[str, str]] | None
) -> Iterator[tuple[str, str]]:
    """The expressions that an error may be about, each with its owner as text.

    `requests` are the claims and requests for which it was evaluated; None for any. Without a name
    it is one that asks for all devices.
    """
    if selector.kind == "class":
        key = ObjectKey(*api_resources.DEVICE_CLASSES, "", selector.name)
        tree = views.objects.get(key) or {}
        owners = [(f"class {selector.name}", tuple(dra.class_selectors(tree)))]
    else:
        namespace, _, short = selector.name.rpartition("/")
        claim = views.objects.get(claim_key(namespace, short)) or {}
        owners = [
            (f"request {called} of claim {short}", tuple(wish.selectors))
            for called, wish in _wishes(claim)
            if requests is None
            or ((selector.name, called) in requests if requests else wish.allocation_mode == "All")
        ]
    for owner, selectors in owners:
        if selector.number < len(selectors):
            yield owner, dra.selector_expression(selectors[selector.number])


def _wishes(claim: JsonView) -> Iterator[tuple[str, dra.RequestDetails]]:
    """The requests of a claim, and the alternatives as results name them: `REQUEST/ALTERNATIVE`."""
    for request in dra.requests(claim):
        if request.exactly is not None:
            yield request.name, request.exactly
        for wish in request.first_available:
            yield f"{request.name}/{wish.name}", wish


def _instead(views: LiveViews, text: str, expression: str) -> str:
    """The places that the device of an error has instead of one that is read; empty if unknown."""
    if (match := _MISSING.search(text)) is None:
        return ""
    wanted = identifiers.parse_device(match[1])
    slices = newest(views.inventory.slices_of(wanted[:2]))
    own = (one.cel_input for each in slices for one in each.devices if one.id == wanted)
    if (device := next(own, None)) is None:
        return ""
    if not device.attributes and not device.capacity:
        return f"device {match[1]} has no attributes and no capacity"
    # The error of a missing domain names that, and the error of a missing name this.
    read = [one for one in keys.keys_in(expression) if match[2] in (one.domain, one.name)]
    for key in read:
        if text := keys.meant(views, key, device):
            return f"no device has {key.path}; {text}"
    if read and not device.attributes and read[0].field == "attributes":
        names = sorted(one.name for one in keys.keys_of(device))
        return f"device {match[1]} has no attributes, but capacity {listed(names, len(names))}"
    return ""
