"""Forks: histories that begin with the events of another history.

    parent   1 ── 2 ── 3 ── 4 ── 5 ── 6
                       │
    fork     1 ── 2 ── 3 ── 4' ── 5'

Revisions and hashes continue from the event at which the fork was made. The first event of the fork
itself (4') holds the settings that apply from there on, so the chain covers them.
"""

from collections.abc import Mapping, Sequence

import msgspec

from app.domain.errors import Conflict
from app.domain.log.event import (
    Actor,
    Draft,
    Event,
    EventType,
    Head,
    HistoryInfo,
    ObjectKey,
    Revision,
    Stamp,
)
from app.domain.values import timestamps
from app.domain.values.identifiers import NO_UID
from app.domain.values.json_tree import JsonObject

FORK = ObjectKey("redra", "histories", "", "")
"""The key of the first event of a fork."""

INPUTS_END: Mapping[str, str] = {"history": "fork"}
"""The payload of the `ClockAdvanced` event that ends the recorded inputs of a fork."""


class Forked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The payload of `HistoryForked`: the source of the fork, and its seed and settings.

    `hash` is the hash of the parent's last event, in hexadecimal; `seed` is a number as text.
    """

    parent: str
    revision: Revision
    hash: str
    seed: str
    settings: JsonObject
    created: str


def first_draft(info: HistoryInfo, parent: HistoryInfo, end: Head, actor: Actor) -> Draft:
    """The first event of a fork. It has the time at which the fork begins."""
    payload = Forked(
        parent=parent.name,
        revision=end.revision,
        hash=end.hash.hex(),
        seed=str(info.seed),
        settings=info.settings,
        created=timestamps.micro_text(info.created),
    )
    return Draft(
        type=EventType.HISTORY_FORKED,
        key=FORK,
        uid=NO_UID,
        tree=msgspec.to_builtins(payload),
        stamp=Stamp(time=end.time, actor=actor, verb="fork"),
    )


def problem_of(info: HistoryInfo, tree: JsonObject, revision: Revision, hash: bytes) -> str:
    """The problem with the first event of a fork; empty when it agrees with the store.

    `revision` and `hash` are those of the event before it, the last one of the parent.
    """
    try:
        fork = msgspec.convert(tree, Forked)
    except msgspec.ValidationError as problem:
        return f"its first event cannot be read: {problem}"
    here = (str(info.seed), info.settings, timestamps.micro_text(info.created))
    if (fork.seed, fork.settings, fork.created) != here:
        return (
            "its settings, seed or creation time are not those of its first event: they were "
            "changed"
        )
    if (fork.revision, fork.hash) != (revision, hash.hex()):
        return f"it begins a fork after revision {fork.revision}, and stands after {revision}"
    if info.is_fork and info.parent_revision != revision:
        return f"it begins the fork, which begins after revision {info.parent_revision}"
    return ""


def as_of(info: HistoryInfo, forked: Event | None) -> HistoryInfo:
    """The history as it was before it was forked: with the settings in force then.

    `forked` is the last event up to then that begins a fork; None if the line was not forked yet.
    The history is its own then, and no fork, because no other history ends where it does.
    """
    if info.beginning is None:
        return info
    whole = msgspec.structs.replace(info, parent=None, parent_revision=Revision(0), is_fork=False)
    if forked is None:
        begun = info.beginning
        return msgspec.structs.replace(
            whole, seed=begun.seed, settings=begun.settings, created=begun.created, beginning=None
        )
    try:
        fork = msgspec.convert(forked.object, Forked)
        seed, created = int(fork.seed), timestamps.parse(fork.created)
    except (msgspec.ValidationError, ValueError):
        return info  # an altered log, which verification names
    return msgspec.structs.replace(whole, seed=seed, settings=fork.settings, created=created)


def has_forks(name: str, forks: Sequence[str]) -> Conflict:
    """The error for deleting a history whose events its forks still read."""
    return Conflict(
        f'history "{name}" cannot be deleted: the events of {", ".join(sorted(forks))} begin with '
        "its own; delete these first",
        resource="histories",
        name=name,
    )
