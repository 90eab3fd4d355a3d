"""The conflicts of a paced replay with the writes of clients, as events of the log.

When a recorded event cannot be shown as it was recorded, a `ConflictObserved` event follows, at the
key `CONFLICTS` with the namespace and name of the object.
"""

from enum import StrEnum

import msgspec

from app.domain.log.event import Event, ObjectKey
from app.domain.values.identifiers import NO_UID, Uid

CONFLICTS = ObjectKey("redra", "conflicts", "", "")
"""The key of conflicts in the log; they have the namespace and name of the object."""


class ConflictReason(StrEnum):
    """The reason why a recorded event is not shown as it was recorded."""

    OTHER_OBJECT = "other-object"
    DELETED_HERE = "deleted-here"
    FIELDS = "fields"
    HELD = "held"


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the recording."""

    revision: int = 0
    type: str = ""


class ConflictBody(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of `ConflictObserved`: the object, the recorded event, and what is kept."""

    conflict: str = ""
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: Uid = NO_UID
    recorded: Recorded = Recorded()
    places: list[str] = []
    message: str = ""

    @property
    def subject(self) -> ObjectKey:
        """The object that is in conflict."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


_decoder = msgspec.json.Decoder(ConflictBody)


def conflict_of(event: Event) -> ConflictBody:
    """The payload of a `ConflictObserved`; only namespace and name when the body is unreadable."""
    try:
        return _decoder.decode(event.body)
    except msgspec.DecodeError:
        return ConflictBody(namespace=event.key.namespace, name=event.key.name)
