"""The judgement of allocated devices by the selectors of their requests, where no node is known.

An allocation can be decided again only on its node. But a device has to match the selectors of its
class and request on any node. Parity: allocator.md 5.1. The judge reads slices, classes and claims
as they were published, and evaluates selectors as the checker does, one device at a time: it shares
neither compiled devices nor the search with the allocator.

It is silent where a write that was not recorded, or one in the seconds before the allocation, may
have changed the slice or the class.
"""

from collections.abc import Iterator, Sequence

from app.analysis.verify.allocation_index import AllocationIndex, is_placed
from app.analysis.verify.unseen_writes import UnseenWrites
from app.analysis.views import LiveViews
from app.domain.allocation.checking.claim_requests import Ask, asks_of
from app.domain.allocation.selections import Selections
from app.domain.log import Event, ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

_Span = tuple[Instant, Instant]


class SelectorJudge:
    """Judges allocations while a log is folded; the views stand before the allocation."""

    def __init__(
        self, index: AllocationIndex, views: LiveViews, unseen: UnseenWrites, window: int
    ) -> None:
        """`window` is how long before its write an allocation may be chosen, besides its wait."""
        self._index = index
        self._views = views
        self._unseen = unseen
        self._window = window
        self._selects = Selections()

    def refusal(self, event: Event, claim: JsonObject, allocation: JsonObject) -> str:
        """The reason why a result is certainly wrong: its device and selector; empty if none is."""
        if self._index.lacks_times or not is_placed(event):
            return ""
        patches = api_resources.RESOURCE_SLICE_PATCHES
        if self._views.objects.keys(*patches):
            return ""
        now = event.stamp.time
        chosen = self._index.chosen_from(event.revision)
        span = Instant(min(now - self._window, now if chosen is None else chosen)), now
        if not self._are_steady(patches, [""], span):
            return ""  # one has ended a moment ago
        for result in dra.results_of(allocation):
            device = self._device(result.id, span)
            ask = self._ask(claim, result.request, span)
            if device is None or ask is None:
                continue
            for expression in ask.expressions:
                if not self._refuses(expression, result.id, device):
                    continue
                if self._unseen.may_have_changed_devices(event, claim, allocation):
                    return ""
                return f"device {result.text} does not match the selector {expression}"
        return ""

    def _refuses(self, expression: str, id_: DeviceId, device: JsonView) -> bool:
        """Whether the selector is false for the device; one that fails proves nothing."""
        return self._selects.outcome(expression, id_[0], device) is False

    def _device(self, id_: DeviceId, span: _Span) -> JsonView | None:
        """The device, if its pool has one generation and has long been as it is.

        Before a slice was created, none of its devices could be chosen, unless another slice of the
        pool had them that is gone.
        """
        slices = self._views.inventory.slices_of(id_[:2])
        trees = [
            device
            for each in slices
            for device in dra.devices(each.tree)
            if device.get("name") == id_[2]
        ]
        is_one = len(trees) == 1 and len({each.generation for each in slices}) == 1
        names = ["", *(each.name for each in slices)]
        is_steady = self._are_steady(api_resources.RESOURCE_SLICES, names, span)
        return trees[0] if is_one and is_steady else None

    def _ask(self, claim: JsonObject, name: str, span: _Span) -> Ask | None:
        """The request of a result, with a class that was so long enough."""
        classes = {
            key.name: tree
            for key in self._classes_of(claim)
            if (tree := self._views.objects.get(key)) is not None
        }
        for alternatives in asks_of(claim, classes):
            for ask in alternatives:
                if ask.name == name:
                    class_name = meta.name(ask.device_class)
                    is_steady = self._are_steady(api_resources.DEVICE_CLASSES, [class_name], span)
                    return ask if is_steady else None
        return None

    def _classes_of(self, claim: JsonObject) -> Iterator[ObjectKey]:
        for request in dra.requests(claim):
            for each in (request.exactly, *request.first_available):
                if each is not None:
                    yield ObjectKey(*api_resources.DEVICE_CLASSES, "", each.device_class_name)

    def _are_steady(self, kind: tuple[str, str], names: Sequence[str], span: _Span) -> bool:
        """Whether none of the objects was changed in a time span."""
        return not any(
            self._index.is_changed_between(ObjectKey(*kind, "", name), *span) for name in names
        )
