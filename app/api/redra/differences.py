"""`/redra/v1/histories/<history>/diff` and `…/again`: different decisions of two histories.

The second is the history itself, decided again. A long comparison, and each decide replay, takes
seconds to minutes of a processor, so another process does the work.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
import msgspec

from app.analysis.diff import answers
from app.analysis.diff.answers import DiffForm
from app.analysis.diff.forks import ComparedFork, ForkReport
from app.api.access.authorization import Gate
from app.api.redra.jobs import JobsApi
from app.api.redra.rehearsals import RELEASE_MAX, switches
from app.api.redra.server_parts import Beside
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, HistoryOpening, NotFound, PlainSecrets, RevisionTooLarge
from app.domain.log import Actor, HistoryInfo
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from app.ports import EventLog
from app.service import diffing
from app.service.answering.jobs import JobKind, JobSource, JobWish, ReportProgress, report_nothing
from app.service.diffing import Comparison, ComparisonAspect, ComparisonPlan, Ending
from app.service.forking import MadeFork
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime

_WITHIN_MAX = 86_400.0


class DiffApi:
    """Answers diff questions, a bounded number at a time; the others wait for their turn."""

    def __init__(self, histories: Histories, limits: ApiLimits, gate: Gate, beside: Beside) -> None:
        self._histories = histories
        self._worker = beside.worker
        self._gate = gate
        self._limits = limits
        self._turns = anyio.CapacityLimiter(limits.diffs_at_once_max)

    async def of_fork(self, parent: HistoryRuntime, made: MadeFork) -> ForkReport | None:
        """The outcome of recorded inputs in a fork; None when the fork has none."""
        comparison = self._comparison(ComparisonAspect.DECISIONS, parent, 1.0)
        sides = (parent.info, made.info)

        async def compared(planned: ComparisonPlan) -> ComparedFork:
            answer = await self._carried_out(parent.log, sides, planned, comparison, DiffForm.FORK)
            return msgspec.convert(answer, ComparedFork)

        async with self._turns:
            return await diffing.report_of_fork(parent.log, parent.info, made, comparison, compared)

    def _comparison(
        self, by: ComparisonAspect, runtime: HistoryRuntime, within_seconds: float
    ) -> Comparison:
        return Comparison(
            by=by,
            schemas=runtime.rules.schemas,
            bounds=replace(self._limits.diff, within=int(within_seconds * SECOND)),
            events_max=self._limits.diff_events_max,
        )

    async def answer(
        self,
        request: HttpRequest,
        runtime: HistoryRuntime,
        check: Callable[[HistoryRuntime, str], Awaitable[None]],
        moment: str,
        actor: Actor,
        form: DiffForm,
        report_progress: ReportProgress = report_nothing,
    ) -> JsonObject:
        """The comparison of two histories; `check` raises when the reader may not read one of them.

        `report_progress` is called with the progress of a long one. Raises Rejected.
        """
        other_name = request.parameter("with")
        if not other_name:
            raise BadRequest("the parameter with is missing")
        by = aspect_of(request)
        try:
            other = await self._histories.open(other_name)
        except HistoryOpening as opening:
            await self._gate.check_reads_unopened(opening.name, actor)
            raise
        moment = runtime.absolute(moment)
        other_moment = request.parameter("withAt")
        is_to_end = other_moment == END
        if is_to_end:
            other_moment = ""
        other_moment = other.absolute(other_moment)
        try:
            if not other_moment and not is_to_end:
                other_moment = await diffing.same_moment(
                    runtime.log, moment, runtime.info, other.info
                )
        except RevisionTooLarge as problem:
            raise NotFound(str(problem), resource="revisions") from problem
        await check(runtime, moment)
        await check(other, other_moment)
        sides = (
            Ending(history=runtime.info, moment=moment),
            Ending(history=other.info, moment=other_moment),
        )
        comparison = self._comparison(by, runtime, within_of(request))
        async with self._turns:
            try:
                planned = await diffing.plan(
                    runtime.log, *sides, comparison.by, events_max=comparison.events_max
                )
                infos = (runtime.info, other.info)
                return await self._carried_out(
                    runtime.log, infos, planned, comparison, form, report_progress
                )
            except RevisionTooLarge as problem:
                raise NotFound(str(problem), resource="revisions") from problem

    async def _carried_out(
        self,
        log: EventLog,
        sides: tuple[HistoryInfo, HistoryInfo],
        planned: ComparisonPlan,
        comparison: Comparison,
        form: DiffForm,
        report_progress: ReportProgress = report_nothing,
    ) -> JsonObject:
        """The answer of a plan, from this process, or from another one if there is much to do."""
        if self._worker is None or planned.events <= self._limits.diff_at_once_events_max:
            return answers.of(await diffing.carry_out(log, planned, comparison), form)
        parameters: JsonObject = {
            "plan": msgspec.to_builtins(planned),
            "by": comparison.by.value,
            "withinSeconds": comparison.bounds.within / SECOND,
            "form": form.value,
        }
        sources = [
            JobSource(name=each.name, info=each, until=(await self._histories.head(each)).revision)
            for each in sides
        ]
        wish = JobWish(kind=JobKind.DIFF, parameters=parameters, sources=sources)
        try:
            outcome = await self._worker(log, wish, report_progress)
        except PlainSecrets:
            # They leave in no bundle, so the work stays here.
            return answers.of(await diffing.carry_out(log, planned, comparison), form)
        answer: JsonObject = msgspec.convert(outcome.result, JsonObject)
        return answer


class AgainApi:
    """Answers what redra decides otherwise, a bounded number at a time; the others wait."""

    def __init__(self, limits: ApiLimits, beside: Beside, jobs_api: JobsApi) -> None:
        self._worker = beside.worker
        self._jobs = jobs_api
        self._turns = anyio.CapacityLimiter(limits.diffs_at_once_max)

    async def answer(
        self,
        request: HttpRequest,
        runtime: HistoryRuntime,
        moment: str,
        form: DiffForm,
        report_progress: ReportProgress = report_nothing,
    ) -> JsonObject:
        """The comparison of a history (A) with itself decided again (B), up to a moment.

        The caller checks the right to read all of the history. Raises BadRequest for invalid
        parameters, Rejected, InputError.
        """
        if self._worker is None:
            raise BadRequest("this server decides no history again: use redra diff --again")
        wish = await self._jobs.again(
            runtime,
            moment,
            request.parameter("profile")[:RELEASE_MAX],
            {"gates": switches(request, "gate"), "quirks": switches(request, "quirk")},
            {
                "by": aspect_of(request).value,
                "withinSeconds": within_of(request),
                "form": form.value,
            },
        )
        async with self._turns:
            outcome = await self._worker(runtime.log, wish, report_progress)
        answer: JsonObject = msgspec.convert(outcome.result, JsonObject)
        return answer


END = "end"
"""The value of `withAt` for the end of the other history; without one, both have one moment."""


def aspect_of(request: HttpRequest) -> ComparisonAspect:
    """The aspect that a request compares. Raises BadRequest."""
    by = request.parameter("by") or ComparisonAspect.DECISIONS.value
    if by not in list(ComparisonAspect):
        raise BadRequest(f'by must be one of {", ".join(ComparisonAspect)}, not "{by[:64]}"')
    return ComparisonAspect(by)


def within_of(request: HttpRequest) -> float:
    """The seconds by which the same decision may be earlier or later. Raises BadRequest."""
    text = request.parameter("within") or "1"
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _WITHIN_MAX:
        raise BadRequest(f'within must be a number of seconds, not "{text[:64]}"')
    return seconds
