"""The preconditions of allocator defects in a history; a defect without them is not tried."""

from collections.abc import Iterator, Mapping, Sequence

from app.domain.devices.model import Slice
from app.domain.values.fields import dra
from app.domain.values.json_tree import JsonView

COUNTERS, ADMIN, ALTERNATIVES, ALL, MATCHING, PARTS, SHARED, FAILING = (
    "counters",
    "admin",
    "alternatives",
    "all",
    "matching",
    "parts",
    "shared",
    "failing",
)

FITS_WITHOUT: Mapping[str, tuple[str, frozenset[str]]] = {
    "q1": ("counters-stay-booked", frozenset((COUNTERS,))),
    "q3": ("counters-by-pool-name", frozenset((COUNTERS,))),
    "q4": ("counter-below-zero", frozenset((COUNTERS,))),
    "q5": ("common-values-stay-narrow", frozenset((MATCHING,))),
    "q9": ("admin-access-takes-the-device", frozenset((ADMIN,))),
    "q10": ("all-mode-constraint-ends-all", frozenset((ALL,))),
    "q11": ("alternative-that-is-never-reached", frozenset((ALL, ALTERNATIVES))),
    "q16": ("selector-fails-on-a-broken-device", frozenset((FAILING,))),
    "q17": ("share-without-capacity", frozenset((COUNTERS, SHARED))),
    "q18": ("alternatives-leave-traces", frozenset((ALTERNATIVES,))),
}
"""Defects without which a refused pod may be placed: the incident, and its preconditions."""


def of_slice(tree: JsonView) -> Iterator[str]:
    """The preconditions that a slice fulfils."""
    if dra.pool(tree).resource_slice_count > 1:
        yield PARTS
    for device in dra.devices(tree):
        if device.get("consumesCounters"):
            yield COUNTERS
        if device.get("allowMultipleAllocations"):
            yield SHARED


def of_pool(slices: Sequence[Slice]) -> Iterator[str]:
    """The preconditions that a pool fulfils: it has parts, whatever number its slices announce."""
    if len(slices) > 1:
        yield PARTS


def of_claim(tree: JsonView) -> Iterator[str]:
    """The preconditions that a claim fulfils."""
    if any(each.match_attribute for each in dra.constraints(tree)):
        yield MATCHING
    for request in dra.requests(tree):
        if request.first_available:
            yield ALTERNATIVES
        for ask in (request.exactly, *request.first_available):
            if ask is not None and ask.allocation_mode == "All":
                yield ALL
            if ask is not None and ask.admin_access:
                yield ADMIN
