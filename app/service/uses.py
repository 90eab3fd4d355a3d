"""How a history that is open is used, so that one that nobody uses can be closed."""

from dataclasses import dataclass, field

import anyio

from app.domain.log import Revision


@dataclass(slots=True, kw_only=True)
class Use:
    """When a history was used last, and the revision that was seen then.

    `scope` ends it, `ended` tells when it has.
    """

    last: float
    revision: Revision = Revision(0)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
