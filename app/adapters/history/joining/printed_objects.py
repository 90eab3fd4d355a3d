"""The joining of objects from printed kubectl output with the other sources.

A table and a description may show the same object, and a dump may hold it completely. Printed
objects are therefore held back until all other sources are read. Those that no other source shows
become one record each, with the fields of all places that print them.
"""

import uuid
from collections.abc import Iterator

import msgspec

from app.adapters.history.formats.dumps import DERIVED_UIDS
from app.adapters.history.joining.spool import Spool
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Record, join_losses
from app.domain.values import patches
from app.domain.values.fields import meta


class PrintedObjects:
    """The printed objects, by key. `spool` holds the records of all other sources."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._records: dict[ObjectKey, Record] = {}

    def held_back(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records of other sources; records of printed objects are held back."""
        for record in records:
            if Loss.PRINTED not in record.losses:
                yield record
                continue
            known = self._records.get(record.key)
            self._records[record.key] = record if known is None else _joined(known, record)

    def alone(self) -> Iterator[Record]:
        """The records of printed objects that no other source shows.

        Call this after `held_back` is exhausted.
        """
        shown = self._spool.shown(self._records)
        for key, record in self._records.items():
            if key in shown:
                continue
            # Fields that the last place shows as absent are taken away.
            tree = patches.apply_merge({}, record.object or {})
            uid = meta.uid(tree) or str(uuid.uuid5(DERIVED_UIDS, "\0".join(key)))
            metadata = {**meta.metadata(tree), "uid": uid}
            yield msgspec.structs.replace(record, uid=uid, object={**tree, "metadata": metadata})


def _joined(known: Record, record: Record) -> Record:
    """One record with the fields of both places; the later place takes precedence."""
    tree = patches.apply_merge(known.object, record.object)
    missing = set(join_losses(known.losses, record.losses))
    if meta.uid(tree):
        missing.discard(Loss.NO_UID)
    if tree.get("status"):
        missing.discard(Loss.NO_STATUS)
    return msgspec.structs.replace(
        known, uid=meta.uid(tree), object=tree, losses=tuple(sorted(missing))
    )
