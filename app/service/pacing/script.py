"""The script of a replay: the recorded events still to be shown, in order, up to an end."""

from collections import deque
from dataclasses import dataclass

from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.ports import EventLog
from app.service.pacing.stage import StageTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSpan:
    """The part of the recording that is played: from where to where."""

    begin: StageTarget
    end: StageTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """The event after which to pause: the next one, the next of an object, or a decision."""

    object: ObjectKey | None = None
    is_decision: bool = False

    def is_wanted(self, event: Event) -> bool:
        """Whether the step pauses after this event."""
        if self.is_decision:
            return event.type is EventType.DECISION_RECORDED
        if self.object is not None:
            return event.is_about_object and event.key == self.object
        return event.is_about_object


class Script:
    """The recorded events after `revision`, up to the end of the span."""

    def __init__(
        self, log: EventLog, parent: HistoryInfo, span: PlayedSpan, *, page_max: int
    ) -> None:
        self.parent = parent
        self.span = span
        self.revision = span.begin.revision
        self.ahead: deque[Event] = deque()
        self._log = log
        self._page_max = page_max

    @property
    def is_over(self) -> bool:
        """Whether everything has been shown."""
        return self.revision >= self.span.end.revision

    async def read(self) -> deque[Event]:
        """A number of next events; empty at the end."""
        if not self.ahead and not self.is_over:
            self.ahead.extend(await self._page(self.revision))
        return self.ahead

    def drop(self, count: int) -> None:
        """Note that the next `count` events have been shown."""
        for _ in range(count):
            self.revision = self.ahead.popleft().revision

    def go_to(self, revision: Revision) -> None:
        """Continue after another revision."""
        self.revision = revision
        self.ahead.clear()

    async def find(self, step: StopRule) -> Event | None:
        """The next event that a step asks for; None when there is none before the end."""
        after = self.revision
        while events := await self._page(after):
            for event in events:
                if step.is_wanted(event):
                    return event
            after = events[-1].revision
        return None

    async def _page(self, after: Revision) -> list[Event]:
        end = self.span.end.revision
        return await self._log.read(self.parent.id, after=after, until=end, limit=self._page_max)
