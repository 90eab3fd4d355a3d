"""Forks: histories whose first events are those of another.

    parent   1 ── 2 ── 3 ── 4 ── 5 ── 6
                       │
    fork     1 ── 2 ── 3 ── 4' ── 5'

Revisions and hashes go on from the event after which the fork was made. Its first own event (4')
holds the settings that apply from there on, so that they are in the chain as those of any history.
"""

from collections.abc import Mapping, Sequence

import msgspec

from app.domain.errors import Conflict
from app.domain.log.event import (
    Actor,
    Draft,
    EventType,
    Head,
    HistoryInfo,
    ObjectKey,
    Revision,
    Stamp,
)
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject

FORK = ObjectKey("redra", "histories", "", "")
"""Where the first event of a fork stands."""

INPUTS_END: Mapping[str, str] = {"history": "fork"}
"""The payload of the `ClockAdvanced` with which the recorded inputs of a fork end."""


class Forked(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The payload of `HistoryForked`: where the fork comes from, and what it is decided with.

    `hash` is that of the last event of the parent, in hexadecimal; `seed` a number as text.
    """

    parent: str
    revision: Revision
    hash: str
    seed: str
    settings: JsonObject
    created: str


def first_draft(info: HistoryInfo, parent: HistoryInfo, end: Head, actor: Actor) -> Draft:
    """The first event of a fork. It has the time of the event before it."""
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
        uid="",
        tree=msgspec.to_builtins(payload),
        stamp=Stamp(time=end.time, actor=actor, verb="fork"),
    )


def problem_of(info: HistoryInfo, tree: JsonObject) -> str:
    """What is wrong with the first event of a fork; empty when it says what the store says."""
    try:
        fork = msgspec.convert(tree, Forked)
    except msgspec.ValidationError as problem:
        return f"its first event cannot be read: {problem}"
    if (fork.seed, fork.settings) != (str(info.seed), info.settings):
        return "its settings or its seed are not those of its first event: they were changed"
    return ""


def has_forks(name: str, forks: Sequence[str]) -> Conflict:
    """What to say when a history is to be deleted whose events others read."""
    return Conflict(
        f'history "{name}" cannot be deleted: the events of {", ".join(sorted(forks))} begin with '
        "its own; delete these first",
        resource="histories",
        name=name,
    )
