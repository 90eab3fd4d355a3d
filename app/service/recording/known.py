"""Which objects of a kind are recorded as there, and what a sighting says beside that.

A watch shows each change once and in order, so what does not follow from what is known (a change of
an object that was never created, a creation of one that is there) proves that something was lost.
A list shows what is there now: the differences are changes that were not seen as they happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Record, TimeQuality, join_losses
from app.domain.values.timestamps import Instant

Name = tuple[str, str]
"""Namespace and name."""


@dataclass(slots=True, kw_only=True)
class KnownObjects:
    """Uid and resource version of each recorded object of one kind."""

    objects: dict[Name, tuple[str, str]] = field(default_factory=dict)

    def note(self, record: Record) -> None:
        """Take over what was recorded."""
        name = record.namespace, record.name
        if record.op is Op.DELETED:
            self.objects.pop(name, None)
        else:
            self.objects[name] = record.uid, record.resource_version

    def contradiction(self, record: Record) -> str:
        """Why a change that a watch shows does not follow from what is known, or empty."""
        known = self.objects.get((record.namespace, record.name))
        if record.op is Op.ADDED:
            return "" if known is None else f"{record.key} was created, and it was there already"
        if known is None:
            what = "deleted" if record.op is Op.DELETED else "changed"
            return f"{record.key} was {what}, and it was never created"
        if known[0] != record.uid:
            return f"{record.key} is another object than before, and nobody deleted the other"
        return ""

    def difference(self, record: Record) -> tuple[bool, Record | None]:
        """What a listed object means: whether another of its name went away, and the change."""
        known = self.objects.get((record.namespace, record.name))
        if known == (record.uid, record.resource_version):
            return False, None
        is_other = known is not None and known[0] != record.uid
        op = Op.ADDED if known is None or is_other else Op.MODIFIED
        return is_other, replace(
            record, op=op, losses=join_losses(record.losses, (Loss.COLLAPSED,))
        )

    def unlisted(self, listed: set[Name]) -> Iterator[Name]:
        """What is known and was not in a list, in order."""
        yield from sorted(name for name in self.objects if name not in listed)


def deletion(key: ObjectKey, last: Record, position: str, now: Instant) -> Record:
    """The deletion of an object that a list has no more, as it was known last."""
    return replace(
        last,
        op=Op.DELETED,
        group=key.group,
        resource=key.resource,
        position=position,
        resource_version="",
        observed_at=now,
        time_quality=TimeQuality.EXACT,
        losses=(Loss.NO_ACTOR, Loss.NO_RV, Loss.SYNTHETIC_DELETE),
        actor=None,
        verb="",
    )
