"""The joining of manifests with each other and with the objects that other places show.

A report often has a manifest and, below it, the object that a server made of it; or a manifest
before and after a change. Both are one object, of which nobody says that it was deleted:

    I applied   kind: ResourceClaim  name: one              left out: the stored object is below
    and got     kind: ResourceClaim  name: one  uid: u-7    the object

Parity: history-formats.md 6.
"""

import msgspec

from app.adapters.history.formats import dumps
from app.adapters.history.joining.spool import Row, Spool
from app.adapters.history.reading import Notes
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Record, join_losses
from app.domain.values.fields import meta

STORED = "manifests of objects that another place shows as they are stored, left out"
REPEATED = "manifests that repeat another, left out"
GUESSED = "manifests without a namespace, taken to be in the namespace default, a guess"
ANOTHER = "another file has a manifest of this object, and nothing tells which of them was applied"

_STORED_STATES = (
    "SELECT DISTINCT key FROM record LEFT JOIN manifest USING (row) WHERE manifest.row IS NULL "
    "AND body IS NOT NULL AND op IN ('ADDED', 'BASELINE', 'MODIFIED')"
)


class AppliedManifests:
    """The manifests of an import, by the keys and rows under which `spool` has them.

    A manifest without a namespace is that of the stored object of its kind and name in one other
    namespace, if there is one, and else taken to be in `default`, which `notes` count as a guess.
    """

    def __init__(self, spool: Spool, notes: Notes) -> None:
        self._spool = spool
        self._notes = notes
        self._rows: dict[ObjectKey, list[int]] = {}
        self._unplaced: set[int] = set()
        self._dropped: set[int] = set()

    def note(self, read: Record, kept: Record, row: int) -> None:
        """Remember a record as it was read and as it is kept, if it is of a manifest."""
        if read.op is not Op.ADDED or read.uid != dumps.derived_uid(read):
            return
        self._rows.setdefault(kept.key, []).append(row)
        if (read.source, read.position) in self._notes.unplaced:
            self._unplaced.add(row)

    def settle(self) -> None:
        """Leave out what is shown elsewhere, and make one object of the manifests of one."""
        if not self._rows:
            return
        stored = self._stored()
        homes: dict[tuple[str, str, str], int] = {}
        for key in stored if self._unplaced else ():
            kind = key.group, key.resource, key.name
            homes[kind] = homes.get(kind, 0) + 1
        for key, rows in self._rows.items():
            kind = key.group, key.resource, key.name
            unplaced = [row for row in rows if row in self._unplaced and homes.get(kind) == 1]
            shown = rows if key in stored else unplaced
            for row in shown:
                self._drop(row)
            if shown:
                self._notes.count(STORED, len(shown))
            kept = [row for row in rows if row not in shown]
            if any(row in self._unplaced for row in kept):
                self._notes.count(GUESSED)
            if len(kept) > 1:
                self._unite([self._spool.row(row) for row in kept])
        self._put_before_logs()

    def _put_before_logs(self) -> None:
        """Place the manifests before all else, where logs are ordered as they stand in the sources.

        A manifest has no time; what a log says of its object was said after it was applied.
        """
        self._spool.flush()
        (files, attempts) = self._spool.database.execute(
            "SELECT max(source) + 1, sum(op = 'CONTEXT') FROM record"
        ).fetchone()
        if not attempts:
            return
        numbers = {row for rows in self._rows.values() for row in rows} - self._dropped
        for number in sorted(numbers):
            row = self._spool.row(number)
            epoch, version, sub, source, position = row.record.order_key
            order_key = (epoch, version, sub, source - files, position)
            record = msgspec.structs.replace(row.record, object=row.tree(), order_key=order_key)
            self._spool.replace(row, record)

    def _stored(self) -> set[ObjectKey]:
        """The keys of which a record other than a manifest has an object."""
        self._spool.flush()
        database = self._spool.database
        database.execute("CREATE TEMP TABLE manifest (row INTEGER PRIMARY KEY)")
        rows = ((row,) for rows in self._rows.values() for row in rows)
        database.executemany("INSERT INTO manifest VALUES (?)", rows)
        texts = database.execute(_STORED_STATES).fetchall()
        database.execute("DROP TABLE manifest")
        return {ObjectKey(*text.split("\0")) for (text,) in texts}

    def _unite(self, rows: list[Row]) -> None:
        """Make the later manifests of one file changes of its first one."""
        first = rows[0]
        tree = first.tree()
        for row in rows[1:]:
            record = row.record
            after = row.tree() or {}
            after = {**after, "metadata": {**meta.metadata(after), "uid": first.record.uid}}
            if after == tree:
                self._notes.count(REPEATED)
                self._drop(row.row)
            elif record.source != first.record.source:
                self._notes.lose(InputError(ANOTHER, place=record.place))
                self._drop(row.row)
            else:
                losses = join_losses(record.losses, (Loss.COLLAPSED,))
                changed = msgspec.structs.replace(
                    record, op=Op.MODIFIED, uid=first.record.uid, object=after, losses=losses
                )
                self._spool.replace(row, changed)
                tree = after

    def _drop(self, row: int) -> None:
        self._dropped.add(row)
        self._spool.database.execute("DELETE FROM record WHERE row = ?", (row,))
