"""A forger with the owner's rights: raw SQL with the guards off, and hashes of its own making.

Shares no code with what it tries to deceive: the hashes are computed here from the columns as
docs/explanation/proof.md describes them.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

Row = dict[str, object]

COLUMNS = (
    "history", "revision", "time", "clock", "type", "group", "resource", "namespace", "name", "uid",
    "stamp", "object", "format", "hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Forger:
    """A connection whose statements no trigger refuses, and the number of the victim."""

    connection: asyncpg.Connection
    history: int
    other: int

    async def run(self, statement: str, *values: object) -> None:
        """Say it of the victim: `$1` is its number."""
        await self.connection.execute(statement, self.history, *values)

    async def rows(self, after: int = 0) -> list[Row]:
        """The events of the victim after a revision."""
        found = await self.connection.fetch(
            "SELECT * FROM log_events WHERE history = $1 AND revision > $2 ORDER BY revision",
            self.history,
            after,
        )
        return [dict(row) for row in found]

    async def put(self, rows: list[Row], *, history: int | None = None) -> None:
        """Insert rows."""
        columns = ", ".join(f'"{name}"' for name in COLUMNS)
        places = ", ".join(f"${number}" for number in range(1, len(COLUMNS) + 1))
        await self.connection.executemany(
            f"INSERT INTO log_events ({columns}) VALUES ({places})",
            [[history or self.history, *(row[name] for name in COLUMNS[1:])] for row in rows],
        )

    async def replace(self, rows: list[Row], after: int) -> None:
        """Delete the events after a revision and put others there."""
        await self.run("DELETE FROM log_events WHERE history = $1 AND revision > $2", after)
        await self.put(rows)

    async def hash_at(self, revision: int) -> bytes:
        """The stored hash of an event."""
        found: bytes = await self.connection.fetchval(
            "SELECT hash FROM log_events WHERE history = $1 AND revision = $2",
            self.history,
            revision,
        )
        return found

    async def set_head(self, row: Row) -> None:
        """Let the head name an event."""
        await self.run(
            "UPDATE log_heads SET revision = $2, hash = $3, time = $4 WHERE history = $1",
            row["revision"],
            row["hash"],
            row["clock"],
        )


Tampering = Callable[[Forger], Awaitable[None]]


def hash_of(row: Row, previous: bytes) -> bytes:
    """SHA-256 of the hash before and of the canonical JSON of the event."""
    stamp = json.loads(str(row["stamp"]))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=stamp["time"])
    stamp["time"] = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    payload = ",".join(
        (
            f'"format":{row["format"]}',
            *(f'"{name}":{_json(row[name])}' for name in ("group", "name", "namespace")),
            f'"object":{row["object"]}',
            *(f'"{name}":{_json(row[name])}' for name in ("resource", "uid")),
        )
    )
    text = (
        f'{{"payload":{{{payload}}},"revision":{row["revision"]},'
        f'"stamp":{_json(stamp)},"type":{_json(row["type"])}}}'
    )
    return hashlib.sha256(previous + text.encode()).digest()


def renumbered(rows: list[Row], first: int) -> list[Row]:
    """The rows with revisions from `first` on, and with these in the objects."""
    changed = []
    for revision, row in enumerate(rows, start=first):
        tree = json.loads(str(row["object"]))
        if "metadata" in tree:
            tree["metadata"]["resourceVersion"] = str(revision)
        changed.append({**row, "revision": revision, "object": _json(tree)})
    return changed


def rehashed(rows: list[Row], previous: bytes) -> list[Row]:
    """The rows with hashes that follow `previous`."""
    changed = []
    for row in rows:
        previous = hash_of(row, previous)
        changed.append({**row, "hash": previous})
    return changed


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
