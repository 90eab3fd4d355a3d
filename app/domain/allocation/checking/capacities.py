"""The capacity of devices: what a request consumes, and whether a device has room for it.

Parity: allocator.md 8.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from app.domain.allocation.checking import amounts
from app.domain.allocation.checking.claim_requests import Ask
from app.domain.allocation.checking.stock import Holding, Piece
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView


class Capacities:
    """The rules of consumable capacity, applied to what `holding` has left.

    With `grows` checking may change requested amounts (quirk q20).
    """

    def __init__(self, slices: Sequence[JsonView], holding: Holding, *, grows: bool) -> None:
        self._holding = holding
        # The names that have a request policy on some device that can be shared.
        self._with_policy = {
            name
            for tree in slices
            for device in json_tree.objects(tree, "spec", "devices")
            if grows and device.get("allowMultipleAllocations") is True
            for name, capacity in json_tree.mapping(device, "capacity").items()
            if json_tree.mapping(capacity, "requestPolicy")
        }

    def consumption(self, ask: Ask, piece: Piece) -> dict[str, Fraction]:
        """The amount of each capacity of a device that the request consumes."""
        return {
            name: amounts.consumed(capacity, ask.capacity.get(name))
            for name, capacity in json_tree.mapping(piece.tree, "capacity").items()
        }

    def shortage(
        self,
        ask: Ask,
        piece: Piece,
        mine: Mapping[str, Fraction],
        unknown: Collection[str] = (),
    ) -> str:
        """The reason why the device lacks capacity, given the amounts `mine` of this call.

        The amounts of the `unknown` capacities are not judged.
        """
        capacities = json_tree.mapping(piece.tree, "capacity")
        for name in ask.capacity:
            if name not in capacities:
                return f"does not define capacity {name}"
        held = self._holding.consumed.get(piece.key, {})
        for name, amount in self.consumption(ask, piece).items():
            if name in unknown:
                continue
            if amounts.breaks_policy(capacities[name], amount):
                return f"capacity {name} breaks its request policy"
            total = amount + held.get(name, Fraction(0)) + mine.get(name, Fraction(0))
            if total > amounts.read(capacities[name].get("value")):
                return f"capacity {name} is overdrawn"
        return ""

    def growing(self, ask: Ask) -> list[str]:
        """The capacities of which checking may change the requested amount (quirk q20)."""
        return [
            name
            for name, amount in ask.capacity.items()
            if name in self._with_policy and amounts.is_long(amount)
        ]

    def explain_list(self, ask: Ask, selectable: Sequence[Piece], listed: Sequence[Piece]) -> bool:
        """Whether quirk q20 explains a list of mode All.

        Before this node was tried, the request may have got an amount for which exactly the listed
        ones of the selectable devices have room.
        """
        names = self.growing(ask)
        able = [piece for piece in selectable if not self.shortage(ask, piece, {}, names)]
        if not (names and listed) or [piece for piece in able if piece in listed] != list(listed):
            return False
        most: dict[str, Fraction] = {}
        for name in names:
            rooms = [self._room(piece, name) for piece in listed]
            known = [room for room in rooms if room is not None]
            if len(known) < len(rooms):
                return False
            most[name] = min(known)
        return not any(
            all(
                (room := self._room(piece, name)) is not None and room >= amount
                for name, amount in most.items()
            )
            for piece in able
            if piece not in listed
        )

    def _room(self, piece: Piece, name: str) -> Fraction | None:
        held = self._holding.consumed.get(piece.key, {}).get(name, Fraction(0))
        return amounts.most(json_tree.mapping(piece.tree, "capacity", name), held)
