"""The script of a replay: the recorded events still to be shown, in order, up to an end."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.domain.log import Event, EventType, HistoryInfo, ObjectKey, Revision
from app.domain.log.records import BASELINE_VERB
from app.domain.values import api_resources
from app.domain.values.fields import core, dra
from app.domain.values.json_tree import JsonView
from app.ports import EventLog
from app.service.pacing.stage import StageTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSpan:
    """The part of the recording that is played: from where to where."""

    begin: StageTarget
    end: StageTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """The event after which to pause: the next one, the next of an object, or a decision.

    A decision is one that redra recorded. The recording of another cluster has none; there it is
    what such a decision does: a pod gets a node, or a claim gets or loses its devices.
    """

    object: ObjectKey | None = None
    is_decision: bool = False

    def is_wanted(self, event: Event) -> bool:
        """Whether the step pauses after this event, whatever was before."""
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
        known: dict[ObjectKey, str] = {}
        while events := await self._page(after):
            for event in events:
                if step.is_wanted(event) or (
                    step.is_decision and await self._is_outcome(event, known)
                ):
                    return event
            after = events[-1].revision
        return None

    async def _is_outcome(self, event: Event, known: dict[ObjectKey, str]) -> bool:
        """Whether an event of another cluster shows what a scheduler decided.

        `known` has the outcomes of the objects that have been met.
        """
        read = _OUTCOMES.get(event.key[:2])
        if read is None or event.stamp.origin is None or not event.is_about_object:
            return False
        is_gone = event.type is EventType.OBJECT_DELETED
        now = "" if is_gone else read(event.object)
        before = known.get(event.key)
        if before is None:
            earlier = await self._log.read_object(
                self.parent.id, event.key, until=Revision(event.revision - 1), limit=1
            )
            is_new = not earlier or earlier[0].type is EventType.OBJECT_DELETED
            before = "" if is_new else read(earlier[0].object)
        known[event.key] = now
        if event.key[:2] == api_resources.PODS and event.type is not EventType.OBJECT_UPDATED:
            # Nobody places a pod that is made with its node, and none that ends.
            return False
        return now != before and event.stamp.verb != BASELINE_VERB

    async def _page(self, after: Revision) -> list[Event]:
        end = self.span.end.revision
        return await self._log.read(self.parent.id, after=after, until=end, limit=self._page_max)


def _allocation(tree: JsonView) -> str:
    return " ".join(dra.device_names(dra.allocation(tree) or {}))


_OUTCOMES: Mapping[tuple[str, str], Callable[[JsonView], str]] = {
    api_resources.PODS: core.node_name,
    api_resources.RESOURCE_CLAIMS: _allocation,
}
"""The decision of a scheduler about an object, by its kind; empty while nothing is decided."""
