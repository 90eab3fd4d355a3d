"""The comparison of the kept part of a stretch with that of a chronicle that was folded anew."""

import zlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from app.analysis.keeping import forms
from app.analysis.keeping.forms import KeptChanges, KeptEntries
from app.analysis.keeping.graphs import UnknownForm
from app.analysis.keeping.span_changes import SpanChange
from app.analysis.keeping.topics import DeviceHold
from projections.packed import Block, PackedList
from projections.timeline import Entry

T = TypeVar("T")


def are_same_entries(kept: bytes, made: KeptEntries) -> bool:
    """Whether kept entries are those that the log gives, however they are compressed."""
    try:
        return _entries_of(forms.entries_of(kept)) == _entries_of(made)
    except (UnknownForm, zlib.error, msgspec.MsgspecError):
        return False


def are_same_changes(kept: bytes, made: KeptChanges) -> bool:
    """Whether kept changes of states over time are those that the log gives, with their topics."""
    try:
        return _changes_of(forms.changes_of(kept)) == _changes_of(made)
    except (UnknownForm, zlib.error, msgspec.MsgspecError):
        return False


def _entries_of(kept: KeptEntries) -> object:
    return (
        (kept.after, kept.count, _items(Entry, kept.entries), kept.subjects),
        forms.unpacked("q", kept.revisions),
        forms.unpacked("q", kept.times),
        {kind: forms.unpacked("I", numbers) for kind, numbers in kept.kinds.items()},
    )


def _changes_of(kept: KeptChanges) -> object:
    topics = msgspec.structs.replace(kept.topics, holds=[])
    return (
        kept.after,
        _items(SpanChange, kept.changes),
        topics,
        _items(DeviceHold, kept.topics.holds),
    )


def _items(form: type[T], blocks: Sequence[Block]) -> list[T]:
    items = PackedList(form, 0)
    items.extend_packed(blocks)
    return [*items]
