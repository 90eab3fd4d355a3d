"""Where a replay begins that does not begin with the first event: the objects of a moment."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.log import Event, Head, Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The state of a history at `head`, which stands for that of a recording `after` a revision.

    `state` is a snapshot of its objects, `objects` their last events in the order of the log, which
    controllers see as upstream's see a list when they start.
    """

    head: Head
    after: Revision
    state: bytes
    objects: Sequence[Event]
