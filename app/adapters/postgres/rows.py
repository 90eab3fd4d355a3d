"""The rows of the log's tables as values of the domain."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

import asyncpg
import msgspec

from app.adapters.postgres.statements import Range
from app.domain.log import (
    ChainStart,
    Event,
    Head,
    HistoryId,
    HistoryInfo,
    ObjectKey,
    Revision,
    Tombstone,
    chain,
    heads,
    upcasting,
)
from app.domain.log.event import LoggedChange
from app.domain.log.heads import SignedHead
from app.domain.log.upcasting import StoredEvent, StoredRow, from_stored
from app.domain.values import timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


def head_of(row: asyncpg.Record) -> Head:
    """The head of a history."""
    return Head(
        revision=Revision(row["revision"]),
        epoch=row["epoch"],
        hash=row["hash"],
        time=timestamps.from_datetime(row["time"]),
    )


def event(row: asyncpg.Record) -> Event:
    """The event in a row of a reading statement, whose columns are in the order of `stored`."""
    return from_stored(stored(row))


def change(row: asyncpg.Record) -> LoggedChange:
    """The event in a row without content."""
    key = ObjectKey(row[3], row[4], row[5], row[6])
    return LoggedChange(Revision(row[1]), upcasting.type_of(row[2], row[1]), key, Uid(row[7]))


def stored_row(row: asyncpg.Record) -> StoredRow:
    """The event in its stored form, with the times of its row."""
    return StoredRow(event=stored(row), time=instant(row[11]), clock=instant(row[12]))


def stored(row: asyncpg.Record) -> StoredEvent:
    """The event in its stored form, even when it cannot be decoded."""
    return StoredEvent(
        format=row[0],
        revision=row[1],
        type=row[2],
        key=ObjectKey(row[3], row[4], row[5], row[6]),
        uid=row[7],
        stamp=row[8],
        object=row[9],
        hash=row[10],
    )


def instant(micros: Decimal) -> Instant | None:
    """The instant; None for an infinite value."""
    return Instant(int(micros)) if micros.is_finite() else None


def line(rows: Sequence[asyncpg.Record], last: Revision) -> tuple[Range, ...]:
    """The parts of a history in order, from its own row and those of the histories before it."""
    ends = [last, *(row["until"] for row in rows[1:])]
    return tuple(
        Range(HistoryId(row["history"]), Revision(after), Revision(until))
        for row, after, until in zip(rows, [*ends[1:], 0], ends, strict=True)
    )[::-1]


def history_info(row: asyncpg.Record) -> HistoryInfo:
    """The stored facts about a history.

    When the settings or the beginning cannot be read or name something twice, or the parent is no
    older history, the settings name no profile. The history then cannot be served, while the other
    histories are listed and served. A parent that is no older one is left out: following it might
    never end. Without a parent, as in a copy whose source was deleted, no revision of one counts.
    """
    parent, is_fork = row["parent"], row["is_fork"]
    settings, beginning = _settings(row["settings"]), _beginning(row["beginning"])
    if settings is None or (beginning is None and row["beginning"] is not None):
        settings = {"profile": None}
    if parent is not None and parent >= row["history"]:
        settings, parent, is_fork = {"profile": None}, None, False
    return HistoryInfo(
        id=HistoryId(row["history"]),
        name=row["name"],
        seed=int(row["seed"]),
        settings=settings,
        created=timestamps.from_datetime(row["created"]),
        parent=None if parent is None else HistoryId(parent),
        parent_revision=Revision(row["parent_revision"] if parent is not None else 0),
        beginning=beginning,
        is_fork=is_fork,
    )


def _settings(text: str) -> JsonObject | None:
    tree = msgspec.json.decode(text)
    return tree if isinstance(tree, dict) and chain.names_once(text) else None


def _beginning(text: str | None) -> ChainStart | None:
    if text is None:
        return None
    try:
        beginning = msgspec.json.decode(text, type=ChainStart)
    except msgspec.ValidationError:
        return None
    return beginning if chain.names_once(text) else None


def tombstone(row: asyncpg.Record) -> Tombstone:
    """The record of a deleted history."""
    return Tombstone(
        name=row["name"],
        seed=int(row["seed"]),
        settings=_settings(row["settings"]) or {},
        created=timestamps.from_datetime(row["created"]),
        revision=Revision(row["revision"]),
        hash=row["hash"],
        time=timestamps.from_datetime(row["time"]),
        deleted=timestamps.from_datetime(row["deleted"]),
        deleted_by=row["deleted_by"],
    )


def keys(rows: Sequence[asyncpg.Record], *, newest_first: bool) -> list[ObjectKey]:
    """The keys in rows with their last revisions, sorted by name or by revision."""
    last: dict[ObjectKey, int] = {}
    for group, resource, namespace, name, revision in rows:
        key = ObjectKey(group, resource, namespace, name)
        last[key] = max(revision, last.get(key, 0))
    return sorted(last, key=lambda key: -last[key]) if newest_first else sorted(last)


def signed_heads(rows: Iterable[asyncpg.Record]) -> list[SignedHead]:
    """The kept heads in rows.

    A row has no signature if it was altered beyond recognition, or if its columns are not those of
    the signed text.
    """
    read = []
    for row in rows:
        revision = Revision(row["revision"])
        try:
            (head,) = heads.from_text(row["head"])
        except ValueError:
            head = SignedHead(history="", revision=revision, hash="", time="", key="")
        if (head.revision, head.key) != (revision, row["key"]):
            head = msgspec.structs.replace(head, revision=revision, signature="")
        read.append(head)
    return read
