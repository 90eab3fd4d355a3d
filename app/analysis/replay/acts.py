"""The recorded acts of controllers, and their refused requests."""

from dataclasses import dataclass

from app.domain.log import Event, ObjectKey
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One recorded write that shows a controller at work; `known` is when others could see it.

    `user` is the name of its author, recorded or derived from the write; `is_guessed` is True when
    the recording does not identify the author.
    """

    event: Event
    before: JsonObject | None
    known: Instant
    user: str
    is_guessed: bool

    @property
    def requested(self) -> Instant:
        """The instant of the controller's request, as far as recorded."""
        origin = self.event.stamp.origin
        requested = 0 if origin is None else origin.asked
        return Instant(min(requested, self.known) if requested else self.known)

    @property
    def answered(self) -> Instant:
        """The instant of the answer, as far as recorded; others may have seen the write before."""
        origin = self.event.stamp.origin
        return Instant(max(self.known, 0 if origin is None else origin.answered))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRequest:
    """A request without a write: its user, its instant and its object.

    The name of the object is empty where the server would have generated it.
    """

    user: str
    at: Instant
    key: ObjectKey
