"""The statements of the event log, by name.

All statements are prepared once per connection. `$1` is the history in all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from app.adapters.postgres import columns
from app.domain.log import HistoryId, Revision


class Range(NamedTuple):
    """A range of revisions of a history, (`after`, `until`], and the history that stores them."""

    history: HistoryId
    after: Revision
    until: Revision


CREATE_HISTORY = """
WITH made AS (
    INSERT INTO histories (name, seed, settings, created, parent, parent_revision, beginning)
    VALUES ($1, $2, $3, $4, $5, $6, $8)
    ON CONFLICT (name) DO NOTHING
    RETURNING history
)
INSERT INTO log_heads (history, revision, epoch, hash, time)
SELECT history, 0, 0, $7, timestamptz 'epoch' FROM made
RETURNING history
"""
"""A new history with an empty head; no row when the name is taken. ($1 is the name here.)"""

FORK_HISTORY = """
WITH made AS (
    INSERT INTO histories (name, seed, settings, created, parent, parent_revision, beginning,
                           is_fork)
    VALUES ($1, $2, $3, $4, $5, $6, $9, true)
    ON CONFLICT (name) DO NOTHING
    RETURNING history
)
INSERT INTO log_heads (history, revision, epoch, hash, time)
SELECT history, $6, 0, $7, $8 FROM made
RETURNING history
"""
"""A new history that continues another at revision $6. ($1 is the name here.)"""

FORKS = "SELECT name FROM histories WHERE parent = $1 AND is_fork ORDER BY name"
"""The names of the forks of a history."""

LINE = """
WITH RECURSIVE line (history, until, parent, parent_revision, is_fork) AS (
    SELECT history, NULL::bigint, parent, parent_revision, is_fork
    FROM histories WHERE history = $1
    UNION ALL
    SELECT above.history, least(line.until, line.parent_revision), above.parent,
           above.parent_revision, above.is_fork
    FROM line JOIN histories AS above ON above.history = line.parent
    WHERE line.is_fork AND above.history < line.history
)
SELECT history, until FROM line
"""
"""A history and those with whose events it begins, the nearest first, each up to a revision.

A history continues an older one. A row that says otherwise was altered, and has no parent here.
"""

_READABLE = "greatest(least({0}, '9999-12-31 23:59:59.999999+00'), '0001-01-01 00:00:00+00') AS {0}"
"""A column's time, or the nearest one that a program can read: tables can hold further times."""

_CREATED, _TIME = _READABLE.format("created"), _READABLE.format("time")

_HISTORY = f"""SELECT history, name, seed, settings, {_CREATED}, parent, parent_revision,
beginning, is_fork FROM histories WHERE name"""  # noqa: S608 (constants only)

HISTORIES = f"{_HISTORY} NOT LIKE '~%' ORDER BY name"
"""All histories, except those that are still being created."""

UNFINISHED = f"{_HISTORY} LIKE '~%' ORDER BY name"
"""The histories that are still being created."""

HISTORY_BY_NAME = f"{_HISTORY} = $1"
"""One history. ($1 is the name here.)"""

RENAME = "UPDATE histories SET name = $2 WHERE history = $1 RETURNING history"
"""Rename a history; no row when it does not exist."""

REFER = "SELECT history FROM histories WHERE history = $1 FOR KEY SHARE"
"""Lock a history as a reference to it does; no row when it does not exist."""

TOUCH = f"{REFER} NOWAIT"
"""The same; an error when that would have to wait."""

NAME = "SELECT name FROM histories WHERE history = $1"
"""The name of a history."""

HOLD_NAMES = (
    "SELECT name FROM histories WHERE history = $1 OR name = $2 ORDER BY history FOR UPDATE"
)
"""The names of a history and of the one that has the name $2, locked in the order of numbers.

An update that finds the name in a row that is being renamed or deleted waits for its transaction
with the renamed row locked.
"""

HOLD = "SELECT revision FROM log_heads WHERE history = $1 FOR UPDATE"
"""The revision of the head, locked until the end of the transaction."""

HOLD_NAME = "SELECT name FROM histories WHERE history = $1 FOR UPDATE"
"""The row of a history, locked so that no row can refer to it until the transaction ends."""

HOLD_COPIES = "SELECT FROM histories WHERE parent = $1 ORDER BY history FOR NO KEY UPDATE"
"""Lock the copies of a history, which a deletion of the history changes, as names are locked."""

HOLD_VIEWS = "SELECT FROM histories WHERE history = $1 FOR NO KEY UPDATE"
"""Let no other transaction begin, remove or delete views of a history, whose rows others read."""

TOMBSTONES = f"""
SELECT name, seed, settings, {_CREATED}, revision, hash, {_TIME},
       {_READABLE.format("deleted")}, deleted_by
FROM tombstones WHERE name NOT LIKE '~%' ORDER BY tombstones.deleted, history
"""  # noqa: S608 (constants only)
"""The deleted histories."""

KEEP_HEAD = """
INSERT INTO signed_heads (history, revision, key, head) VALUES ($1, $2, $3, $4)
ON CONFLICT (history, revision, key) DO NOTHING
"""
"""Store a signed head."""

KEPT_HEADS = """
SELECT revision, key, head FROM signed_heads WHERE history = $1 ORDER BY revision, key
"""
"""The signed heads of a history."""

HEAD = f"SELECT revision, epoch, hash, {_TIME} FROM log_heads WHERE history = $1"  # noqa: S608
"""The committed head of a history."""

_ADVANCE = """
held AS MATERIALIZED (
    SELECT 1 FROM leases
    JOIN unnest($7::text[], $8::bigint[]) AS wanted (name, epoch) USING (name, epoch)
    WHERE leases.history = $1
    ORDER BY leases.name
    FOR KEY SHARE OF leases
),
head AS (
    UPDATE log_heads
    SET revision = $4, hash = $5, time = greatest(time, $6)
    WHERE history = $1 AND revision = $2 AND hash = $3
      AND (SELECT count(*) FROM held) = cardinality($7::text[])
    RETURNING revision, epoch, hash, time
)
"""
# Leases are locked before the head, by name; a take-over and a deletion lock in the same order, and
# a new lease as well as a deletion first lock the history, so none of them can deadlock.
# A key-share lock keeps take-overs out until the commit, but lets the holder renew the lease. After
# a wait for the head row, PostgreSQL checks the condition again against the committed row: then no
# row is advanced and nothing is inserted.
# Rows that a trigger of the database's owner keeps out undo the append: the division by zero.

_COLUMNS = (
    ("time", "timestamptz"), ("clock", "timestamptz"), ("type", "text"), ("group", "text"),
    ("resource", "text"), ("namespace", "text"), ("name", "text"), ("uid", "text"),
    ("stamp", "json"), ("object", "json"), ("hash", "bytea"),
)  # fmt: skip
"""The columns of an event that an append is given, from $9 on, and their types."""


def _append(rows: str, *, hash: str = "new.hash") -> str:
    """The statement that appends the rows of a FROM item `new`."""
    return f"""
WITH {_ADVANCE},
before AS (SELECT time FROM log_heads WHERE history = $1),
appended AS (
    INSERT INTO log_events (history, revision, time, clock, type, "group", resource, namespace,
                            name, uid, stamp, object, format, hash)
    SELECT $1, $2 + new.place, new.time, greatest(new.clock, before.time), new.type, new.group,
           new.resource, new.namespace, new.name, new.uid, new.stamp, new.object, $20, {hash}
    FROM head, before, {rows}
    RETURNING 1
)
SELECT revision, epoch, hash, time, pg_notify($21, revision::text),
       1 / ((SELECT count(*) FROM appended) = revision - $2)::int
FROM head
"""  # noqa: S608 (constants only)


def _one_row() -> str:
    names = ", ".join(f'"{name}"' for name, _ in _COLUMNS)
    parameters = ", ".join(f"${place}::{kind}" for place, (_, kind) in enumerate(_COLUMNS, 9))
    return f"(SELECT {parameters}, 1) AS new ({names}, place)"


def _joined_rows() -> str:
    """Short texts come joined. Bodies come as an array, which the server copies less often."""
    *texts, _body, _hash = _COLUMNS
    names = ", ".join(f'"{name}"' for name, _ in texts)
    parameters = ", ".join(
        columns.split(f"${place}", kind) for place, (_, kind) in enumerate(texts, 9)
    )
    body = f"${9 + len(texts)}::json[]"
    return f"unnest({parameters}, {body}) WITH ORDINALITY AS new ({names}, object, place)"


_SIZE = columns.HASH_BYTES

APPEND = _append(
    _joined_rows(),
    hash=f"substr($19::bytea, (new.place * {_SIZE} - {_SIZE - 1})::int, {_SIZE})",
)
"""Compare and advance the head, check leases, insert, notify: all or nothing, one round trip."""

APPEND_ONE = _append(_one_row())
"""The same for one event."""


ADVANCE = f"""
WITH {_ADVANCE}
SELECT head.revision, head.epoch, head.hash, head.time, log_heads.time AS before
FROM head JOIN log_heads ON log_heads.history = $1
"""  # noqa: S608 (constants only)
"""The same as APPEND without the events, which follow by COPY in the same transaction.

`before` is the earlier time of the head: the statement sees the old row beside the new one.
"""

NOTIFY = "SELECT pg_notify($1, $2)"
"""Notify the listeners of channel $1 that the history is at revision $2."""

STALE_LEASE = """
SELECT wanted.name, wanted.epoch
FROM unnest($2::text[], $3::bigint[]) AS wanted (name, epoch)
WHERE NOT EXISTS (
    SELECT 1 FROM leases
    WHERE leases.history = $1 AND leases.name = wanted.name AND leases.epoch = wanted.epoch
)
LIMIT 1
"""
"""The first of the given leases that is no longer held."""

_EVENT = """
format, revision, type, "group", resource, namespace, name, uid, stamp, object, hash
"""

_IN_ORDER = """
FROM log_events WHERE history = $1 AND revision > $2 AND revision <= $3 ORDER BY revision LIMIT $4
"""

READ = f"SELECT {_EVENT} {_IN_ORDER}"
"""A page of events in order."""

CHANGES = f"""
SELECT format, revision, type, "group", resource, namespace, name, uid {_IN_ORDER}
"""
"""A page of events without their content."""

READ_STORED = f"""
SELECT {_EVENT}, extract(epoch FROM time) * 1000000, extract(epoch FROM clock) * 1000000 {_IN_ORDER}
"""  # noqa: S608 (constants only)
"""A page of events with their time columns in microseconds, whatever values these hold."""

READ_OBJECTS = f"""
SELECT events.* FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
  AS wanted ("group", resource, namespace, name)
CROSS JOIN LATERAL (
  SELECT {_EVENT} FROM log_events
  WHERE history = $1 AND "group" = wanted."group" AND resource = wanted.resource
    AND namespace = wanted.namespace AND name = wanted.name AND revision <= $6
  ORDER BY revision DESC LIMIT $7
) AS events
ORDER BY revision DESC
"""  # noqa: S608 (constants only)
"""The newest events of each key."""

_OF_KEY = """
FROM log_events
WHERE history = $1 AND "group" = wanted."group" AND resource = wanted.resource
  AND namespace = wanted.namespace AND name = wanted.name AND revision <= least(wanted.last, $2)
"""

CREATIONS = f"""
SELECT wanted.place, broken.at IS NOT NULL AS is_whole, life.first
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[])
  AS wanted ("group", resource, namespace, name, uid, last, place)
LEFT JOIN LATERAL (
  SELECT revision AS at {_OF_KEY}
    AND (type = 'ObjectDeleted' OR type IN ('ObjectCreated', 'ObjectUpdated') AND uid <> wanted.uid)
  ORDER BY revision DESC LIMIT 1
) AS broken ON true
LEFT JOIN LATERAL (
  SELECT revision AS first {_OF_KEY}
    AND type IN ('ObjectCreated', 'ObjectUpdated') AND revision > coalesce(broken.at, 0)
  ORDER BY revision LIMIT 1
) AS life ON true
"""  # noqa: S608 (constants only)
"""The first events of the lives of objects, and whether earlier lives ended in this part."""


_PLACES = """
WITH RECURSIVE places AS (
    (SELECT namespace FROM log_events
     WHERE history = $1 AND "group" = $4 AND resource = $5 ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT following.namespace FROM places CROSS JOIN LATERAL (
        SELECT namespace FROM log_events
        WHERE history = $1 AND "group" = $4 AND resource = $5 AND namespace > places.namespace
        ORDER BY namespace LIMIT 1
    ) AS following
)
SELECT $4, $5, places.namespace, keys.name, keys.last FROM places
"""
"""The namespaces of a kind, read one by one along the index."""

_PLACE = """
SELECT $4, $5, places.namespace, keys.name, keys.last
FROM (VALUES ($10::text)) AS places (namespace)
"""
"""The one namespace that is selected."""


def keys(*, by_namespace: bool, newest_first: bool) -> str:
    """The keys of a kind in events up to $2 and above $9, at most $3, with their last revisions.

    The kind is $4 and $5; names are from $6 to $7 and begin with $8; the namespace is $10, if it is
    selected. A statement has one plan for all its parameters, so only a condition that stands in it
    can be one on the index: of each namespace the events with these names are read.
    """
    places = _PLACE if by_namespace else _PLACES
    # Namespaces and names come in order, so without an order the first keys end the statement.
    order = "ORDER BY keys.last DESC" if newest_first else ""
    return f"""
    {places} CROSS JOIN LATERAL (
        SELECT name, max(revision) AS last FROM log_events
        WHERE history = $1 AND "group" = $4 AND resource = $5 AND namespace = places.namespace
          AND name >= $6 AND name <= $7 AND starts_with(name, $8)
          AND revision <= $2 AND revision > $9
        GROUP BY name ORDER BY name
    ) AS keys
    {order} LIMIT $3
    """  # noqa: S608 (constants only)


WARNINGS = """
WITH warning AS MATERIALIZED (SELECT "group", resource, namespace, name, revision FROM log_events
    WHERE history = $1 AND revision <= $2 AND log_warned(object::text) COLLATE "C" IN ($4, '')
    AND resource = 'events' AND type = 'ObjectCreated' AND strpos(object::text, '"Warning"') > 0)
SELECT "group", resource, namespace, name, max(revision) AS last FROM warning
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT $3
"""
"""Keys of Event objects up to $2, at most $3, that warn about an object of name $4, or may do so.

The conditions are those of `log_events_warned`; an order in them would lead to another index.
"""

KEY_SPANS = (16, 64, 256)
"""How many events, for each wanted key, are looked through for the keys with the latest events.

All events of the kind are read only where these hold too few keys, and where names are wanted,
which an index finds.
"""


def ways_to_keys(
    by_namespace: bool, newest_first: bool, spans: Sequence[int], until: int
) -> Iterator[tuple[str, int, bool]]:
    """The statements to try for keys, each with its $9, and when its keys are all that are wanted.

    That is when they are fewer than $3 (true), or when they are as many (false); those of the last
    statement are in any case. `spans` are numbers of events that are looked through. Before, names
    are read in their order: a kind that has few is known then.
    """
    if spans:
        yield keys(by_namespace=by_namespace, newest_first=False), 0, True
    for span in spans:
        if span < until:
            yield _latest_keys(by_namespace=by_namespace), until - span, False
    yield keys(by_namespace=by_namespace, newest_first=newest_first), 0, False


def _latest_keys(*, by_namespace: bool) -> str:
    """The keys that `keys` gives newest first, with the same parameters.

    The events are read in their order, whatever the planner takes for faster: its plan is for all
    parameters.
    """
    condition = " AND namespace = $10" if by_namespace else ""
    return f"""
    WITH latest AS MATERIALIZED (
        SELECT "group", resource, namespace, name, revision FROM log_events
        WHERE history = $1 AND revision <= $2 AND revision > $9
    )
    SELECT "group", resource, namespace, name, max(revision) AS last FROM latest
    WHERE "group" = $4 AND resource = $5{condition}
      AND name >= $6 AND name <= $7 AND starts_with(name, $8)
    GROUP BY "group", resource, namespace, name ORDER BY last DESC LIMIT $3
    """  # noqa: S608 (constants only)


def objects_at(*, by_group: bool, by_resource: bool) -> str:
    """The last event of each object that existed at $2, after key $3..$6, at most $7.

    $8 is the group and $9 the resource, if selected; without a group, $8 is the resource. The keys
    are read one by one along the index, each as the first key above its predecessor, so the cost of
    a page depends only on its number of keys, not on the planner's statistics or on the number of
    changes of the objects.
    """
    condition = ""
    if by_group:
        condition += ' AND "group" = $8'
    if by_resource:
        condition += f" AND resource = ${9 if by_group else 8}"
    above = f"""
        SELECT "group", resource, namespace, name FROM log_events
        WHERE history = $1{condition} AND ("group", resource, namespace, name) > ({{place}})
        ORDER BY "group", resource, namespace, name LIMIT 1
    """  # noqa: S608 (constants only)
    first = above.format(place="$3, $4, $5, $6")
    following = above.format(place="keys.group, keys.resource, keys.namespace, keys.name")
    return f"""
    WITH RECURSIVE keys AS (
        ({first})
        UNION ALL
        SELECT following.* FROM keys CROSS JOIN LATERAL ({following}) AS following
    )
    SELECT last.* FROM keys CROSS JOIN LATERAL (
        SELECT {_EVENT} FROM log_events
        WHERE history = $1 AND "group" = keys.group AND resource = keys.resource
          AND namespace = keys.namespace AND name = keys.name AND revision <= $2
          AND type IN ('ObjectCreated', 'ObjectUpdated', 'ObjectDeleted')
        ORDER BY revision DESC LIMIT 1
    ) AS last
    WHERE last.type <> 'ObjectDeleted' LIMIT $7
    """  # noqa: S608 (constants only)


def objects_of_line(parts: Sequence[Range], *, by_group: bool, by_resource: bool) -> str:
    """The statement of `objects_at` for a history whose events are stored in several histories.

    The revision is $1, the key $2..$5, the limit $6, the group $7 and the resource $8, if selected;
    without a group, $7 is the resource. Each step takes the least of the next keys of all parts.
    """
    condition = ""
    if by_group:
        condition += ' AND "group" = $7'
    if by_resource:
        condition += f" AND resource = ${8 if by_group else 7}"
    order = '"group", resource, namespace, name'
    of_each = [
        f"""
        (SELECT {order} FROM log_events
        WHERE history = {part.history} AND revision > {part.after} AND revision <= {part.until}
          {condition} AND ({order}) > ({{place}}) ORDER BY {order} LIMIT 1)
        """  # noqa: S608 (numbers and constants only)
        for part in parts
    ]
    above = f"SELECT * FROM ({' UNION ALL '.join(of_each)}) AS each ORDER BY {order} LIMIT 1"  # noqa: S608
    first = above.format(place="$2, $3, $4, $5")
    following = above.format(place="keys.group, keys.resource, keys.namespace, keys.name")
    newest = " UNION ALL ".join(
        f"""
        (SELECT {_EVENT} FROM log_events
        WHERE history = {part.history} AND "group" = keys.group AND resource = keys.resource
          AND namespace = keys.namespace AND name = keys.name
          AND revision > {part.after} AND revision <= least($1, {part.until})
          AND type IN ('ObjectCreated', 'ObjectUpdated', 'ObjectDeleted')
        ORDER BY revision DESC LIMIT 1)
        """  # noqa: S608 (numbers and constants only)
        for part in parts
    )
    return f"""
    WITH RECURSIVE keys AS (
        ({first})
        UNION ALL
        SELECT following.* FROM keys CROSS JOIN LATERAL ({following}) AS following
    )
    SELECT last.* FROM keys CROSS JOIN LATERAL (
        SELECT * FROM ({newest}) AS each ORDER BY revision DESC LIMIT 1
    ) AS last
    WHERE last.type <> 'ObjectDeleted' LIMIT $6
    """  # noqa: S608 (constants only)


REVISION_AT = """
WITH RECURSIVE search (low, high) AS (
    SELECT $3::bigint, least($4, (SELECT revision FROM log_heads WHERE history = $1))
    UNION ALL
    SELECT CASE WHEN log_events.clock <= $2 THEN middle ELSE low END,
           CASE WHEN log_events.clock <= $2 THEN high ELSE middle - 1 END
    FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM search WHERE low < high) AS span
    JOIN log_events ON log_events.history = $1 AND log_events.revision = span.middle
)
SELECT low FROM search WHERE low = high
"""
"""Binary search for the last event after $3, up to $4, whose clock is not after $2, else $3.

`clock` never decreases.
"""
