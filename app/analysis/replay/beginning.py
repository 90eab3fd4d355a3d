"""The beginning of a replay that does not start with the first event: the objects at a moment."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.log import Event, Head, Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The state of a history at `head`, which equals that of a recording `after` a revision.

    `state` is a snapshot of its objects. `objects` are their last events in the order of the log;
    controllers see them as upstream's controllers see a list when they start.
    """

    head: Head
    after: Revision
    state: bytes
    objects: Sequence[Event]
