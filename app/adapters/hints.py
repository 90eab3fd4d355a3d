"""The listener's side of wake-ups: several hints between two waits count as one."""

from app.domain.log import Revision
from app.signals import Signal


class HintListener:
    """One subscription to the hints of one history."""

    def __init__(self) -> None:
        self._hinted = Signal()
        self._highest = Revision(0)
        self._is_vague = False
        self._named = Revision(0)

    @property
    def named(self) -> Revision:
        """The highest revision in the hints before the last `wait`; 0 when it is not known."""
        return self._named

    def hint(self, revision: Revision = Revision(0)) -> None:
        """Record that the history grew to `revision`; 0 when the revision is not known."""
        self._highest = max(self._highest, revision)
        self._is_vague = self._is_vague or revision == 0
        self._hinted.raise_()

    async def wait(self, timeout_seconds: float) -> bool:
        """True when a hint arrived since the last call, False after the timeout."""
        hinted = await self._hinted.wait_for(timeout_seconds)
        self._named = self._highest if hinted and not self._is_vague else Revision(0)
        self._highest, self._is_vague = Revision(0), False
        self._hinted.lower()
        return hinted
