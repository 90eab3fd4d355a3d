"""`/redra/v1/histories/<history>/rehearsal`: a history's inputs under another release.

A short history is rehearsed while its request waits. A longer one takes minutes of a processor, so
another process does the work: as a job, which further requests for the same answer find, or for a
page.
"""

import anyio
import anyio.to_thread
import msgspec

from app.analysis.rehearse import text
from app.analysis.rehearse.defects import titles
from app.api.redra import experiment_models as models
from app.api.redra import inquiries, jobs
from app.api.redra.jobs import JobsApi
from app.api.redra.server_parts import Beside
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response
from app.domain.errors import BadRequest, NotFound, Rejected, RevisionTooLarge
from app.domain.log import Actor, Revision
from app.domain.values.json_tree import JsonObject
from app.domain.values.moments import AS_OF
from app.service import moments
from app.service.answering.jobs import Job, JobState, ReportProgress, report_nothing
from app.service.histories import Histories
from app.service.rehearsing import worlds
from app.service.rehearsing.worlds import RehearsalRequest
from app.service.runtime import HistoryRuntime

RELEASE_MAX = 64
"""The characters of a release that are read; no release has as many."""
_STATES = {"true": True, "on": True, "false": False, "off": False}


class RehearsalApi:
    """Answers rehearsal questions, a bounded number at a time; the others wait for their turn."""

    def __init__(
        self, histories: Histories, limits: ApiLimits, beside: Beside, jobs_api: JobsApi
    ) -> None:
        self._histories = histories
        self._gallery = beside.gallery
        self._worker = beside.worker
        self._jobs = jobs_api
        self._limits = limits
        self._turns = anyio.CapacityLimiter(limits.diffs_at_once_max)

    async def answer(self, request: HttpRequest, runtime: HistoryRuntime, actor: Actor) -> Response:
        """The report at the moment of a request, or 202 with the job that makes it.

        The caller checks the right to read all of the history. Raises as `report` and Rejected.
        """
        moment = request.parameter("at")
        wish = _wish(request, moment)
        if await self._is_done_here(runtime):
            shown = await self._here(wish, runtime, await self._until(runtime, moment))
        else:
            seconds = self._jobs.wait_seconds(request, self._limits.waits.seconds)
            job = await self._jobs.rehearsed(runtime, wish, actor, seconds)
            if job.state not in (JobState.DONE, JobState.FAILED):
                return jobs.under_way(job, runtime.info)
            shown = _result(job)
        report = {name: part for name, part in shown["report"].items() if name != AS_OF}
        body = await anyio.to_thread.run_sync(msgspec.json.encode, report)
        return inquiries.with_meaning(runtime, moment, Response(body))

    async def report(
        self,
        request: HttpRequest,
        runtime: HistoryRuntime,
        moment: str,
        report_progress: ReportProgress = report_nothing,
    ) -> JsonObject:
        """The rehearsal of a history up to a moment as JSON (`report`), and its `page`.

        `report_progress` is called with the progress of a long one. The caller checks the right to
        read all of the history. Raises BadRequest for invalid parameters, InputError, NotFound.
        """
        wish = _wish(request, moment)
        if self._worker is None or await self._is_done_here(runtime):
            return await self._here(wish, runtime, await self._until(runtime, moment))
        wanted = await self._jobs.rehearsal(runtime, wish)
        async with self._turns:
            outcome = await self._worker(runtime.log, wanted, report_progress)
        shown: JsonObject = msgspec.convert(outcome.result, JsonObject)
        return shown

    async def _is_done_here(self, runtime: HistoryRuntime) -> bool:
        """Whether this process answers; the whole history counts, because all of it is read."""
        if self._worker is None:
            return True
        head = (await self._histories.head(runtime.info)).revision
        return head <= self._limits.rehearse_at_once_events_max

    async def _until(self, runtime: HistoryRuntime, moment: str) -> Revision:
        """The revision of a moment. Raises InputError, NotFound."""
        if not moment:
            return (await self._histories.head(runtime.info)).revision
        try:
            moment = runtime.absolute(moment)
            await moments.check_inside(runtime.log, runtime.info, moment)
            return await self._histories.revision(runtime.info, moment)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem)) from problem

    async def _here(
        self, wish: models.RehearsalWish, runtime: HistoryRuntime, until: Revision
    ) -> JsonObject:
        planes = self._histories.planes
        assert planes is not None, "a server makes forks with recorded inputs"
        wanted = RehearsalRequest(
            release=wish.to,
            until=until,
            gates=wish.gates,
            quirks=wish.quirks,
            exhibits=self._titles(),
            bounds=self._limits.diff,
            events_max=self._limits.diff_events_max,
            runs_max=self._limits.rehearse_runs_max,
            trial_events_max=self._limits.rehearse_events_max,
        )
        async with self._turns:
            report = await worlds.rehearse(runtime.log, runtime.info, wanted, planes)
        return {"report": report.to_json(), "page": text.page_json(report)}

    def _titles(self) -> dict[str, tuple[str, str]]:
        """Number and title of each incident of the gallery; empty without one."""
        if self._gallery is None:
            return {}
        return titles(map(self._gallery.read, self._gallery.names()))


def _wish(request: HttpRequest, moment: str) -> models.RehearsalWish:
    """The wanted rehearsal. Raises BadRequest."""
    release = request.parameter("to")
    if not release:
        raise BadRequest("the parameter to is missing: a release such as 1.37")
    gates, quirks = (switches(request, name) for name in ("gate", "quirk"))
    return models.RehearsalWish(
        to=release[:RELEASE_MAX],
        at=moment,
        gates=gates,
        quirks=quirks,
    )


def _result(job: Job) -> JsonObject:
    """The result of a job that has ended. Raises its error."""
    if job.error is not None:
        raise job.error
    if job.outcome is None:
        raise Rejected(job.problem["message"])
    shown: JsonObject = msgspec.convert(job.outcome.result, JsonObject)
    return shown


def switches(request: HttpRequest, name: str) -> dict[str, bool]:
    """The switches in a parameter, as in `read_switches`. Raises BadRequest."""
    return read_switches(request.parameter(name), name)


def read_switches(text: str, name: str) -> dict[str, bool]:
    """The switches in a text: `NAME=true` and the like, separated by commas.

    Quirks have lower-case names. Raises BadRequest.
    """
    states: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        switch, _, state = part.partition("=")
        if not switch or state.lower() not in _STATES:
            raise BadRequest(f'{name} must be NAME=true or NAME=false, not "{part[:64]}"')
        is_on = _STATES[state.lower()]
        if states.setdefault(switch.strip(), is_on) is not is_on:
            raise BadRequest(f"{name}: {switch.strip()[:64]} is switched both on and off")
    return states
