"""The page of a history's jobs, and the form that cancels or removes one.

A page shows the jobs that `GET …/jobs` lists for its user, and the pages that may take minutes and
are worked out for this user; the form does what `DELETE` does.
"""

from collections.abc import Iterator, Mapping

from app.analysis import profiles
from app.api.redra import experiment_models as models
from app.api.redra.answers import Answers
from app.api.redra.inquiries import Inquiry
from app.api.redra.jobs import JobsApi
from app.api.redra.server_parts import Reader
from app.api.server.limits import ApiLimits
from app.api.server.messages import Response
from app.api.ui import forms, framing, origins
from app.api.ui.responses import HEADERS, HTML
from app.api.ui.unready import JOBS, LongPage, UnreadyPages
from app.domain.errors import NotFound
from app.domain.log import HistoryInfo
from app.domain.values import counts
from app.domain.values.json_tree import JsonObject
from app.service.answering.jobs import Job, JobKind, JobState
from app.service.runtime import HistoryRuntime
from app.web.links import Links
from app.web.pages import jobs, rehearsal
from app.web.pages.jobs import ShownJob

JOB = "job"
"""The parameter for one job, whose result is a page."""


class JobPages:
    """The pages of the jobs that belong to a history."""

    def __init__(
        self, api: JobsApi, answers: Answers, limits: ApiLimits, unready: UnreadyPages
    ) -> None:
        self._api = api
        self._unready = unready
        self._answers = answers
        self._limits = limits
        api.pages = self

    def listed(self, runtime: HistoryRuntime, reader: Reader) -> list[models.JobStatus]:
        """The pages of a user that may take minutes, as jobs; the result is the page's address."""
        return [_status(one, runtime.info) for one in self._of(runtime, reader)]

    async def waited(
        self, runtime: HistoryRuntime, reader: Reader, name: str, seconds: float
    ) -> models.JobStatus | None:
        """One of these jobs, ended or after this time; None if there is none of this id."""
        for one in self._of(runtime, reader):
            if one.id == name:
                await one.wait_ended(seconds)
                return _status(one, runtime.info)
        return None

    async def cancelled(
        self, runtime: HistoryRuntime, reader: Reader, name: str
    ) -> models.JobStatus | None:
        """One of these jobs as it is cancelled or removed; None if there is none of this id."""
        for one in self._of(runtime, reader):
            if one.id == name:
                has_ended = one.is_ended
                await self._unready.cancel(one)
                ended = _status(one, runtime.info)
                state = ended.state if has_ended else JobState.CANCELLED.value
                return ended.model_copy(update={"state": state, "problem": None})
        return None

    def _of(self, runtime: HistoryRuntime, reader: Reader) -> list[LongPage]:
        return self._unready.of_reader(runtime.life, *reader)

    async def page(self, inquiry: Inquiry) -> bytes:
        """The list of the jobs, or the result of the rehearsal that the address names.

        Raises NotFound, Forbidden.
        """
        runtime, name = inquiry.runtime, inquiry.request.parameter(JOB)
        place = runtime.info
        if name:
            job = await self._api.find(name, runtime, place, inquiry.actor)
            return await self._rehearsed(inquiry, job)
        seen = await self._api.seen(runtime, place, inquiry.actor)
        frame = await framing.frame(self._answers, inquiry, JOBS)
        pages = [shown_page(one) for one in reversed(self._unready.of(inquiry))]
        return jobs.page(frame, [*pages, *(shown_job(job, place) for job in reversed(seen))])

    async def _rehearsed(self, inquiry: Inquiry, job: Job) -> bytes:
        """The page of a rehearsal that is done."""
        result = None if job.outcome is None else job.outcome.result
        if job.wish.kind is not JobKind.REHEARSE or not isinstance(result, dict):
            raise NotFound(f'job "{job.id}" has no page', resource=JOBS, name=job.id)
        wanted = job.wish.parameters
        parameters = {
            "to": str(wanted["to"]),
            "gate": ",".join(wanted["gates"]),
            "quirk": ",".join(wanted["quirks"]),
        }
        frame = await framing.frame(self._answers, inquiry, JOBS, {JOB: job.id})
        return rehearsal.page(frame, profiles.names(), parameters, result["page"])

    async def cancel(self, inquiry: Inquiry) -> Response:
        """Cancel or remove the job or page that a form names, and lead to the list.

        Raises Forbidden, NotFound, BadRequest.
        """
        runtime = inquiry.runtime
        origins.check_own(inquiry.request)
        name = await forms.cancelled(inquiry.request, self._limits)
        page = next((one for one in self._unready.of(inquiry) if one.id == name), None)
        if page is not None:
            await self._unready.cancel(page)
        else:
            job = await self._api.find(name, runtime, runtime.info, inquiry.actor)
            await self._api.remove(job)
        return to(Links(history=runtime.info.name).to(JOBS))


def shown_job(job: Job, place: HistoryInfo | None) -> ShownJob:
    """A job for its page, with the rows of a sweep that is done."""
    status = models.job_status(job, place)
    result = status.result if isinstance(status.result, dict) else {}
    kind, is_done = job.wish.kind, job.state is JobState.DONE
    page = ""
    if place is not None and is_done and kind is JobKind.REHEARSE:
        page = Links(history=place.name).to(JOBS, job=job.id)
    return ShownJob(
        id=status.id,
        kind=status.kind,
        title=_title(job),
        state=status.state,
        seconds=status.seconds,
        progress=status.progress,
        problem="" if status.problem is None else status.problem.message,
        lines=tuple(_results(kind, result) if is_done else _progress(kind, status.progress)),
        rows=result.get("rows", ()),
        failed=result.get("failed", 0),
        files=[(file.name, file.bytes, file.path) for file in status.files],
        page=page,
        answer=status.path if is_done else "",
    )


def shown_page(one: LongPage) -> ShownJob:
    """A page that is worked out or waits for that, as a job whose result is the page."""
    kind, title = _PAGES[one.part]
    errand, state, problem = one.errand, JobState.RUNNING, ""
    progress = {} if errand is None else errand.progress
    if errand is None:
        state = JobState.CANCELLED if one.is_cancelled else JobState.WAITING
    elif errand.is_ended:
        state = JobState.DONE if errand.problem is None else JobState.FAILED
        problem = "" if errand.problem is None else str(errand.problem)
    return ShownJob(
        id=one.id,
        kind=kind.value,
        title=f"{title} {one.subject}",
        state=state.value,
        seconds=one.seconds,
        progress=progress,
        problem=problem,
        lines=() if one.is_ended else tuple(_progress(kind, progress)),
        page=one.address,
    )


def _status(one: LongPage, place: HistoryInfo) -> models.JobStatus:
    shown = shown_page(one)
    problem = models.JobProblem(message=shown.problem, place="", cure="") if shown.problem else None
    return models.JobStatus(
        id=one.id,
        kind=shown.kind,
        state=shown.state,
        path=models.job_path(one.id, place),
        seconds=round(one.seconds, 3),
        progress=dict(shown.progress),
        problem=problem,
        result={"page": one.address} if shown.state == JobState.DONE.value else None,
    )


_PAGES: Mapping[str, tuple[JobKind, str]] = {
    "again": (JobKind.AGAIN, "Decided again, compared by"),
    "compare": (JobKind.DIFF, "Comparison with"),
    "rehearsal": (JobKind.REHEARSE, "Rehearsal under"),
}
"""The kind and the beginning of the title of the pages that may take minutes."""


def to(path: str) -> Response:
    """The answer to a form that has been carried out: it leads to a page."""
    headers = ((b"location", path.encode()), *HEADERS)
    return Response(b"", status=303, content_type=HTML, headers=headers)


def _title(job: Job) -> str:
    """The purpose of a job, in a few words."""
    wanted = job.wish.parameters
    match job.wish.kind:
        case JobKind.MINIMISE:
            return f"Smallest history with {wanted['keep']}"
        case JobKind.REHEARSE:
            switches = [*wanted["gates"], *wanted["quirks"]]
            return " ".join((f"Rehearsal under {wanted['to']}", *switches))
        case JobKind.EXPORT:
            return f"Export as {wanted['form']}"
        case _:
            return str(wanted.get("title") or job.wish.kind.value)


def _progress(kind: JobKind, progress: Mapping[str, object]) -> Iterator[str]:
    """The progress of a job that has not ended."""
    doing = str(progress.get("doing") or "")
    match progress:
        case {"total": total, "done": done}:
            what = "events are written" if kind is JobKind.EXPORT else "runs are done"
            yield f"{done} of {total} {what}"
        case {"until": until, "revision": revision}:
            yield f"{doing}: revision {revision} of {until}"
        case {"steps": int(steps), "objects": int(objects), "trials": trials}:
            left = f"{counts.of(steps, 'input')} and {counts.of(objects, 'object')} left"
            yield f"{doing}: {left}, {trials} tried" if doing else f"{left}, {trials} tried"
        case {"events": int(events)}:
            yield f"reads {counts.of(events, 'event')}"


def _results(kind: JobKind, result: JsonObject) -> Iterator[str]:
    """The result of a finished job, in one or two lines."""
    match kind:
        case JobKind.MINIMISE:
            before = counts.of(result["eventsBefore"], "event")
            yield f"{result['events']} of {before} show it: {result['sighting']}"
            if not result["minimal"]:
                yield "The time ended before each part was tried."
        case JobKind.REHEARSE:
            yield f"{result['page']['subject']}: {result['page']['outcome']}"
        case JobKind.EXPORT:
            written, handed_over = result.get("written"), result.get("handedOver")
            if written:
                yield ", ".join(f"{name}: {count}" for name, count in written.items())
            if handed_over:
                inputs = counts.of(handed_over["inputs"], "write")
                decisions = counts.of(handed_over["decisions"], "decision")
                yield f"{inputs} from outside, {decisions}"
                if asserts := ", ".join(handed_over["asserts"]):
                    yield f"the test asserts {asserts}"
                if unasserted := ", ".join(handed_over["unasserted"]):
                    yield f"shown as recorded, not as decided here, so not asserted: {unasserted}"
        case _:
            return
