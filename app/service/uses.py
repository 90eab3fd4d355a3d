"""The use of an open history, so that a history without use can be closed."""

from dataclasses import dataclass, field

import anyio

from app.domain.log import Revision


@dataclass(slots=True, kw_only=True)
class Use:
    """The time of the last use of a history, and the revision that was seen then.

    `scope` ends the history's task; `ended` is set when the task has ended.
    """

    last: float
    revision: Revision = Revision(0)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
