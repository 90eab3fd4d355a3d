"""The pages of sweeps: `/ui/jobs` lists them, `/ui/jobs/JOB` shows one, `/ui/sweep` starts one.

They are authorized as the answers of `/redra/v1/jobs` and `/redra/v1/sweep` that they show.
"""

from app.api.redra import experiment_models as models
from app.api.redra.routes import RedraApi
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response
from app.api.ui import forms, origins
from app.api.ui.jobs import shown_job, to
from app.api.ui.responses import shown
from app.domain.errors import BadRequest, Forbidden, InputError, MethodNotAllowed, Rejected
from app.domain.log import Actor
from app.web import links
from app.web.pages import sweeps
from app.web.pages.sweeps import TypedPlan

BESIDE = ("/redra/v1/jobs", "/redra/v1/sweep")
"""The paths of answers that belong to no history, and have these pages."""

_FROM = "from"
_DIGITS_MAX = 9


class SweepPages:
    """The pages of the jobs that belong to no history."""

    def __init__(self, api: RedraApi, limits: ApiLimits) -> None:
        self._api = api
        self._limits = limits

    async def answer(self, request: HttpRequest, path: str, actor: Actor) -> Response:
        """The page of a path in `BESIDE` or below. Raises Rejected, InputError."""
        name = path.removeprefix(BESIDE[0]).strip("/")
        if path == BESIDE[1]:
            if request.method == "POST":
                return await self._begin(request, actor)
            return to(sweeps.JOBS)
        if request.method == "POST" and name:
            return await self._cancel(request, name, actor)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("this page is read-only")
        for parameter in request.query:
            if parameter != _FROM or not name:
                raise BadRequest(f'this page has no parameter "{parameter[:64]}"')
        if not name:
            return shown(await self._list(actor, TypedPlan()))
        job = await self._api.jobs.find(name, await self._api.jobs.own(), None, actor)
        return shown(sweeps.page(shown_job(job, None), _first(request)))

    async def _begin(self, request: HttpRequest, actor: Actor) -> Response:
        """Start the sweep of a form, and lead to its page."""
        origins.check_own(request)
        typed = await forms.plan(request, self._limits)
        jobs = self._api.jobs
        try:
            wish = models.SweepWish(plan=forms.plan_tree(typed), name=typed.name[:200])
            job = await jobs.sweep(await jobs.own(), wish, actor)
        except Forbidden:
            raise
        except (Rejected, InputError) as refusal:
            problem = getattr(refusal, "message", "") or str(refusal)
            return shown(await self._list(actor, typed, problem))
        return to(links.job(job.id))

    async def _cancel(self, request: HttpRequest, name: str, actor: Actor) -> Response:
        """Cancel or remove the job of a page, and lead to the list."""
        origins.check_own(request)
        if await forms.cancelled(request, self._limits) != name:
            raise BadRequest(f"the form is not about the job {name[:64]}")
        jobs = self._api.jobs
        await jobs.remove(await jobs.find(name, await jobs.own(), None, actor))
        return to(sweeps.JOBS)

    async def _list(self, actor: Actor, typed: TypedPlan, problem: str = "") -> bytes:
        seen = await self._api.jobs.seen(await self._api.jobs.own(), None, actor)
        histories = [one.name for one in await self._api.histories(actor)]
        return sweeps.listed(
            [shown_job(job, None) for job in reversed(seen)], histories, typed, problem
        )


def _first(request: HttpRequest) -> int:
    text = request.parameter(_FROM)
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_MAX:
        raise BadRequest(f'{_FROM} must be the number of a run, not "{text[:64]}"')
    return int(text)
