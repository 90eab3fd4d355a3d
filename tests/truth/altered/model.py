"""What keeps a pod of a recording waiting, counted from the objects that its lines show."""

import re
from collections.abc import Iterator
from functools import cached_property

from tests.truth.facts import Facts, Published, amount
from tests.truth.waiting.model import Model, Selector, Unknown, Wish, own_attribute, wishes


def _equal(name: str, value: object) -> Selector:
    def selects(device: Published) -> bool:
        own = own_attribute(device, name)
        if own is None:
            raise Unknown
        return own == value

    return selects


def _at_least(name: str, least: int) -> Selector:
    def selects(device: Published) -> bool:
        own = own_attribute(device, name)
        if own is None:
            raise Unknown
        return isinstance(own, int) and own >= least

    return selects


def _of_capacity(name: str, value: str) -> Selector:
    def selects(device: Published) -> bool:
        capacity = (device.tree.get("capacity") or {}).get(name)
        if capacity is None:
            raise Unknown
        return amount(capacity["value"]) == amount(value)

    return selects


def _of_driver(driver: str) -> Selector:
    return lambda device: device.id[0] == driver


_FORMS = (
    (r"device\.driver == '([\w.]+)'", _of_driver),
    (r"device\.attributes\['[\w.]+'\]\.(\w+) == '([^']+)'", _equal),
    (
        r"device\.attributes\['[\w.]+'\]\.(\w+) == (\d+)",
        lambda name, value: _equal(name, int(value)),
    ),
    (
        r"device\.attributes\['[\w.]+'\]\.(\w+) >= (\d+)",
        lambda name, value: _at_least(name, int(value)),
    ),
    (r'device\.capacity\["[\w.]+"\]\.(\w+) == quantity\("(\d+)"\)', _of_capacity),
)
"""The forms of which the selectors of the recordings are made, joined by `&&`."""


def _term(text: str) -> Selector:
    for form, make in _FORMS:
        if match := re.fullmatch(form, text.strip()):
            selector: Selector = make(*match.groups())
            return selector
    raise ValueError(f"a selector of another form: {text}")


def selects(expression: str, device: Published) -> bool:
    """The verdict of a selector; raises `Unknown` for an attribute that a device leaves out."""
    return all(_term(part)(device) for part in expression.split("&&"))


class RecordedModel(Model):
    """The pod of a recording at the moment of the facts, and each node's answer to it."""

    @cached_property
    def named(self) -> list[tuple[str, str]]:
        """The entries of the pod's claims, each with the name of its claim, empty if not made."""
        status = self.pod.get("status") or {}
        made = {one["name"]: one for one in status.get("resourceClaimStatuses") or ()}
        return [
            (
                one["name"],
                one.get("resourceClaimName")
                or made.get(one["name"], {}).get("resourceClaimName", ""),
            )
            for one in self.pod["spec"].get("resourceClaims") or ()
        ]

    @cached_property
    def unasked(self) -> str:
        """The name of the first thing without which no node is asked; empty where all is there."""
        for entry, name in self.named:
            claim = self.facts.claims.get(f"{self.namespace}/{name}")
            if claim is None or "deletionTimestamp" in claim["metadata"]:
                return name or entry
        for wish in self.wished():
            if ("deviceclasses", "", wish.tree["deviceClassName"]) not in self.facts.state:
                return str(wish.tree["deviceClassName"])
        return ""

    def wished(self) -> Iterator[Wish]:
        """The requests for which the pod has no devices yet."""
        for claim in self.unallocated:
            for either in wishes(claim):
                yield from either

    @cached_property
    def claims(self) -> list[dict]:
        """The claims of the pod, in its order."""
        places = [f"{self.namespace}/{name}" for _, name in self.named]
        return [self.facts.claims[place] for place in places if place in self.facts.claims]

    def devices(self, node: str) -> list[Published]:
        """The devices of the slices that are for a node, in usable pools."""
        return [one for one in super().devices(node) if self._is_for(one.spec, node)]

    def selected(self, wish: Wish, device: Published, node: str) -> str:
        """selector, selector-error or other-node; empty for a device that may be taken."""
        tree = self.facts.state["deviceclasses", "", wish.tree["deviceClassName"]]
        for one in (*(tree["spec"].get("selectors") or ()), *(wish.tree.get("selectors") or ())):
            try:
                if not selects(one["cel"]["expression"], device):
                    return "selector"
            except Unknown:
                return "selector-error"
        per_device = device.spec.get("perDeviceNodeSelection")
        return "other-node" if per_device and not self._selects(device.tree, node) else ""


def model_of(facts: Facts, pod: str) -> RecordedModel:
    """The model of a pod, named by namespace and name."""
    return RecordedModel(facts, pod)
