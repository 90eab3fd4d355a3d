"""What a paced replay notes in the log: conflicts with what clients write.

A recorded event that cannot be shown as it was recorded is followed by `ConflictObserved`, which
stands at `CONFLICTS` with the namespace and name of the object.
"""

from enum import StrEnum

import msgspec

from app.domain.log.event import Event, ObjectKey

CONFLICTS = ObjectKey("redra", "conflicts", "", "")
"""Where conflicts stand in the log; namespace and name are those of the object."""


class Conflict(StrEnum):
    """Why a recorded event is not shown as it was recorded."""

    OTHER_OBJECT = "other-object"
    DELETED_HERE = "deleted-here"
    FIELDS = "fields"
    HELD = "held"


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the recording."""

    revision: int = 0
    type: str = ""


class ConflictBody(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of `ConflictObserved`: the object, the recorded event, and what stays."""

    conflict: str = ""
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    recorded: Recorded = Recorded()
    places: list[str] = []
    message: str = ""

    @property
    def subject(self) -> ObjectKey:
        """The object that is in conflict."""
        return ObjectKey(self.group, self.resource, self.namespace, self.name)


_decoder = msgspec.json.Decoder(ConflictBody)


def conflict_of(event: Event) -> ConflictBody:
    """What a `ConflictObserved` says; of a body that cannot be read the key alone."""
    try:
        return _decoder.decode(event.body)
    except msgspec.DecodeError:
        return ConflictBody(namespace=event.key.namespace, name=event.key.name)
