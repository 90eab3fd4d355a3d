"""`/redra/v1/histories/<history>/blast`: the effects of a proposed change or an existing rule.

The state is frozen on the event loop, which is quick; the answer is computed in a thread.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

import anyio
import msgspec

from app.analysis.blast import compare, sight, world
from app.analysis.blast.compare import NAMESPACED, Change, Put
from app.analysis.blast.radius import BlastRadius
from app.analysis.blast.world import Frozen
from app.analysis.explain import questions
from app.analysis.views import LiveViews
from app.api.access.readers import EVERYTHING, HistoryReader
from app.api.kubernetes.timelines import views_at
from app.api.redra import models
from app.api.server import abandoning, reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.service import moments, recorded_doubts
from app.service.chronicles import Chronicles
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime


class BlastApi:
    """Answers blast questions, a bounded number at a time; the others wait for their turn."""

    def __init__(self, histories: Histories, chronicles: Chronicles, limits: ApiLimits) -> None:
        self._histories = histories
        self._chronicles = chronicles
        self._limits = limits
        self._turns = anyio.CapacityLimiter(limits.blasts_at_once_max)

    async def of_rule(
        self, request: HttpRequest, runtime: HistoryRuntime, moment: str, reader: HistoryReader
    ) -> BlastRadius:
        """The effects of an existing DeviceTaintRule. Raises NotFound, BadRequest."""
        kind, name = request.parameter("kind"), request.parameter("name")
        if kind.lower() not in ("devicetaintrule", "devicetaintrules") or not name:
            named = f'kind "{kind[:64]}"' if name else f'kind "{kind[:64]}" without a name'
            raise BadRequest(
                f"give kind=devicetaintrule and the name of an existing rule, not {named}"
            )
        bounds = self._limits.blast
        return await self._answer(
            request,
            runtime,
            moment,
            reader,
            lambda frozen: compare.blast_of_rule(frozen, name, bounds),
        )

    async def of_proposal(
        self, request: HttpRequest, runtime: HistoryRuntime, reader: HistoryReader
    ) -> BlastRadius:
        """The effects of the changes in the body. Raises Rejected as their write would."""
        wanted = await reading.body(request, models.Proposal, self._limits)
        placed = zip_longest(wanted.places[: len(wanted.objects)], wanted.objects, fillvalue="")
        changes = compare.read_changes(list(placed), wanted.delete, wanted.cordon, wanted.drain)
        return await self.of_changes(request, runtime, request.parameter("at"), changes, reader)

    async def of_changes(
        self,
        request: HttpRequest,
        runtime: HistoryRuntime,
        moment: str,
        changes: Sequence[Change],
        reader: HistoryReader,
    ) -> BlastRadius:
        """The effects of changes at a moment. Raises Rejected as their write would.

        Only readers of everything get the messages of admission policies. Whether there is a
        namespace to write in is an answer for those who may read that namespace.
        """
        for change in changes:
            if isinstance(change, Put) and meta.kind(change.tree) in NAMESPACED:
                namespace = meta.namespace(change.tree) or "default"
                reader.check(ObjectKey(*api_resources.NAMESPACES, "", namespace))
        bounds = self._limits.blast
        quotes = reader.sees_all(EVERYTHING)

        def answer(frozen: Frozen) -> BlastRadius:
            return compare.blast(replace(frozen, quotes_policies=quotes), changes, bounds)

        keys = [*compare.existing_keys(changes[: bounds.changes_max])]
        return await self._answer(request, runtime, moment, reader, answer, keys)

    async def _elsewhen(
        self, runtime: HistoryRuntime, views: LiveViews, keys: Iterable[ObjectKey]
    ) -> dict[ObjectKey, str]:
        """The hints to objects that are not there at a moment, and came later or went before."""
        hints: dict[ObjectKey, str] = {}
        until = Revision(runtime.views.revision)
        for key in keys:
            if views.objects.get(key) is None:
                events = await runtime.log.read_object(
                    runtime.info.id, key, until=until, limit=self._limits.explain.cause_changes_max
                )
                hints[key] = questions.elsewhen(events, views.revision)
        return hints

    async def _frozen(self, runtime: HistoryRuntime, moment: str) -> tuple[LiveViews, Frozen]:
        views = await views_at(self._histories, runtime, moment)
        if moment and not moments.is_revision(moment):
            # A change may be planned: unlike other answers, this one may be about a later instant.
            now = moments.parse_instant(moment, runtime.end.instant)
        else:
            now = await runtime.time_of(views.revision, moment)
        info = await runtime.as_of(views.revision)
        return views, world.freeze(views, info, self._histories.rules(info), now)

    async def _answer(
        self,
        request: HttpRequest,
        runtime: HistoryRuntime,
        moment: str,
        reader: HistoryReader,
        question: Callable[[Frozen], BlastRadius],
        keys: Iterable[ObjectKey] = (),
    ) -> BlastRadius:
        """The answer from the objects that the reader may read: quotas and templates take part."""
        sees_all = reader.sees_all(EVERYTHING)

        def work(frozen: Frozen, goes_on: Callable[[], bool]) -> BlastRadius:
            if sees_all:
                return question(replace(frozen, goes_on=goes_on))
            part = question(replace(sight.as_seen(frozen, reader.sees), goes_on=goes_on))
            return msgspec.structs.replace(part, notes=(*part.notes, sight.UNSEEN))

        # Waiting questions hold no state: it is frozen when their turn comes.
        async with self._turns:
            views, frozen = await self._frozen(runtime, moment)
            seen = [key for key in keys if reader.sees(key)]
            frozen = replace(frozen, elsewhen=await self._elsewhen(runtime, views, seen))
            answer = await abandoning.in_thread(request, work, frozen)
        doubts = await self._chronicles.doubts(runtime, views)
        return recorded_doubts.doubted(answer, doubts)
