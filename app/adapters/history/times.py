"""The times in the fields of an object, and the tolerated clock skew."""

from typing import Any

from app.domain.objects.write import intake
from app.domain.values import json_tree, timestamps
from app.domain.values.fields import core, dra, meta
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant, TimestampError

CLOCK_SKEW = 1 * timestamps.SECOND
"""The tolerated difference between the clocks of API servers, in microseconds."""


def creation(tree: JsonView) -> Instant | None:
    """The creation time of an object, in whole seconds; None without one."""
    return _parse(meta.metadata(tree).get("creationTimestamp"))


def deletion(tree: JsonView) -> Instant | None:
    """The time of the request to delete an object, in whole seconds; None without one.

    That is its `deletionTimestamp` without the grace period.
    """
    ends = _parse(meta.deletion_timestamp(tree))
    grace = meta.deletion_grace(tree) or 0
    return None if ends is None else Instant(ends - grace * timestamps.SECOND)


def is_allocated_before_creation(tree: JsonView) -> bool:
    """True if a claim was allocated before it was created, by more than the clock skew."""
    allocated = _allocated(tree)
    created = None if allocated is None else creation(tree)
    return allocated is not None and created is not None and allocated < created - CLOCK_SKEW


def is_allocated_after(tree: JsonView, answered: Instant) -> bool:
    """True if a claim was allocated after it was answered so, by more than the clock skew."""
    allocated = _allocated(tree)
    return allocated is not None and allocated > answered + CLOCK_SKEW


def contradict_writes(tree: JsonView) -> bool:
    """True if an object was created, or a claim allocated, after the last write that it shows.

    A server dates the fields of each write, that of the creation included, with its clock. By more
    than the clock skew, and the second that all these times are cut to.
    """
    written = _newest(_writes(tree))
    if written is None:
        return False
    latest = written + CLOCK_SKEW + timestamps.SECOND
    return any(made is not None and made > latest for made in (creation(tree), _allocated(tree)))


def _allocated(tree: JsonView) -> Instant | None:
    allocation = json_tree.mapping(tree, "status", "allocation")
    return _parse(allocation.get("allocationTimestamp")) if allocation else None


def derive(tree: JsonView) -> Instant | None:
    """The newest time in the fields of an object; None without one.

    Considered are creation, deletion (the time of the request: deletionTimestamp minus the grace
    period), managed fields, conditions, allocation, taints. Parity: history-formats.md 5.
    """
    texts = _writes(tree)
    _take(texts, meta.metadata(tree), "creationTimestamp")
    for condition in meta.condition_trees(tree):
        _take(texts, condition, "lastTransitionTime")
    _take(texts, json_tree.mapping(tree, "status", "allocation"), "allocationTimestamp")
    _take(texts, dra.taint(tree), "timeAdded")
    for name in ("acquireTime", "renewTime"):
        _take(texts, meta.spec(tree), name)
    for taint in core.taints(tree):
        _take(texts, taint, "timeAdded")
    for name in ("eventTime", "lastTimestamp", "firstTimestamp"):
        _take(texts, tree, name)
    _take(texts, json_tree.mapping(tree, "series"), "lastObservedTime")
    for device in dra.devices(tree):
        for taint in dra.device_taints(device):
            _take(texts, taint, "timeAdded")
    newest = _newest(texts)
    deleted = deletion(tree)
    if deleted is not None and _is_of_a_log(deleted):
        newest = deleted if newest is None else max(newest, deleted)
    return newest


def _writes(tree: JsonView) -> list[str]:
    """The times of the last write of each manager."""
    texts: list[str] = []
    for entry in json_tree.objects(meta.metadata(tree), "managedFields"):
        _take(texts, entry, "time")
    return texts


def _newest(texts: list[str]) -> Instant | None:
    """The newest of the times; times outside the range of a log are ignored."""
    # Texts of whole seconds in UTC sort like their instants; at worst, a fraction is ignored.
    for text in sorted(texts, reverse=True):
        instant = _parse(text)
        if instant is not None and _is_of_a_log(instant):
            return instant
    return None


def _is_of_a_log(instant: Instant) -> bool:
    return intake.TIME_MIN <= instant < intake.TIME_MAX


def _take(texts: list[str], tree: JsonView, name: str) -> None:
    text = tree.get(name)
    if isinstance(text, str):
        texts.append(text)


def _parse(text: Any) -> Instant | None:
    if not isinstance(text, str):
        return None
    try:
        return timestamps.parse(text)
    except TimestampError:
        return None
