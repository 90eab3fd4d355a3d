"""The pages that all audits of a recorder may list a minute.

An audit lists the names and versions of all objects of a kind, so what audits cost the cluster
grows with the cluster. The budget puts audits off instead: the larger the cluster, the longer the
time between two audits of a kind. The pages of one audit are listed without a pause, because the
cluster may forget the version of a list that takes long.
"""

import math
from dataclasses import dataclass

import anyio

from app.domain.values.timestamps import SECOND
from app.ports import Clock

_MINUTE = 60 * SECOND


@dataclass(slots=True, kw_only=True)
class AuditBudget:
    """The budget of all kinds. An audit waits until the pages of the audits before it are due."""

    pages_per_minute: float
    clock: Clock
    _free_from: float = -math.inf

    async def wait(self, pages: int) -> None:
        """Reserve the pages that an audit is expected to list, and wait until it may begin."""
        now = self.clock.steady()
        begin = max(self._free_from, now)
        self._free_from = begin + self._share(pages)
        await anyio.sleep((begin - now) / SECOND)

    def settle(self, pages: int, *, expected: int) -> None:
        """Count the pages that an audit listed instead of the expected ones."""
        self._free_from += self._share(pages - expected)

    def _share(self, pages: int) -> float:
        return pages * _MINUTE / self.pages_per_minute
