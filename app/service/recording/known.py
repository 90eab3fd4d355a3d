"""The recorded objects of a kind, and the changes that a listed or watched object implies.

A watch shows each change once and in order. A change that does not follow from the known objects (a
change of an object that was never created, a creation of an existing one) proves that a change was
lost. A list shows the present objects: differences from the known objects are changes that were not
seen when they happened.
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
        """Take in a recorded change."""
        name = record.namespace, record.name
        if record.op is Op.DELETED:
            self.objects.pop(name, None)
        else:
            self.objects[name] = record.uid, record.resource_version

    def contradiction(self, record: Record) -> str:
        """The reason why a watched change does not follow from the known objects, or empty."""
        known = self.objects.get((record.namespace, record.name))
        if record.op is Op.ADDED:
            return "" if known is None else f"{record.key} was created, but it already existed"
        if known is None:
            what = "deleted" if record.op is Op.DELETED else "changed"
            return f"{record.key} was {what}, but it was never created"
        if known[0] != record.uid:
            return f"{record.key} is a new object, but the one before it was never deleted"
        return ""

    def difference(self, record: Record) -> tuple[bool, Record | None]:
        """Whether a listed object replaced another with its name, and the change it implies."""
        known = self.objects.get((record.namespace, record.name))
        if known == (record.uid, record.resource_version):
            return False, None
        is_other = known is not None and known[0] != record.uid
        op = Op.ADDED if known is None or is_other else Op.MODIFIED
        return is_other, replace(
            record, op=op, losses=join_losses(record.losses, (Loss.COLLAPSED,))
        )

    def unlisted(self, listed: set[Name]) -> Iterator[Name]:
        """The names of known objects that a list did not contain, in order."""
        yield from sorted(name for name in self.objects if name not in listed)


@dataclass(slots=True, kw_only=True)
class Start:
    """The start of following a kind.

    `position` is the version from which the watch continues. When it is empty, the existing objects
    must be listed, and the gap names the `reason`. The first list of a kind that was never listed
    (not `is_listed`) is its baseline, without a gap unless it expires between its pages.
    `is_denied` means that the log already says that the kind is denied. `shares_counter` means that
    the versions of the kind are those of the common counter.
    """

    known: KnownObjects
    position: str = ""
    reason: str = ""
    is_denied: bool = False
    is_listed: bool = True
    shares_counter: bool = True


def deletion(key: ObjectKey, last: Record, position: str, now: Instant) -> Record:
    """The deletion of an object that is no longer listed, with its last known state."""
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
