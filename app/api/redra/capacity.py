"""`/redra/v1/histories/<history>/fit` and `/capacity`: how many more copies fit, now and over time.

States are frozen on the event loop, which is quick; answers are computed in a thread.
"""

from collections.abc import Callable, Sequence

import anyio
import anyio.to_thread

from app.analysis.blast import prospects, world
from app.analysis.blast.world import Frozen
from app.analysis.capacity import fitting, sampling, subjects
from app.analysis.capacity.answers import CapacityCourse, CapacityMoment, FitAnswer
from app.analysis.capacity.sampling import DeviceCourse
from app.analysis.capacity.subjects import CapacitySubject
from app.analysis.views import compiler_of
from app.api.access.readers import EVERYTHING, WORKED_OUT_FROM
from app.api.redra import models
from app.api.redra.answers import Answers
from app.api.redra.inquiries import Inquiry, integer
from app.api.server import abandoning, reading
from app.api.server.limits import ApiLimits
from app.domain.controllers import registry
from app.domain.errors import BadRequest
from app.domain.log import ObjectKey, Revision, doubts
from app.domain.values import api_groups, api_resources, timestamps
from app.domain.values.bounded import Bounded
from app.service import recorded_doubts
from app.service.histories import Histories
from app.service.moments import time_of
from app.service.runtime import HistoryRuntime

FIT_FROM = (
    *WORKED_OUT_FROM,
    api_resources.RESOURCE_CLAIM_TEMPLATES,
    api_resources.RESOURCE_QUOTAS,
)
"""The kinds that an answer about copies names; messages of quotas name the use of a namespace."""

_DEVICES_FROM = ((api_groups.RESOURCE, None), api_resources.NODES)
"""The group and the kind that the devices of a moment depend on."""


class CapacityApi:
    """Answers capacity questions, a bounded number at a time; the others wait for their turn."""

    def __init__(self, histories: Histories, answers: Answers, limits: ApiLimits) -> None:
        self._histories = histories
        self._answers = answers
        self._limits = limits
        self._turns = anyio.CapacityLimiter(limits.blasts_at_once_max)
        kept_max = limits.capacity.kept_max
        self._kept: Bounded[tuple[int, Revision], CapacityMoment] = Bounded(kept_max)

    async def fit(self, inquiry: Inquiry) -> FitAnswer:
        """The number of copies that fit: of the named class or template, or of all existing ones.

        Raises BadRequest, NotFound.
        """
        inquiry.reader().check_all(FIT_FROM)
        request = inquiry.request
        class_name, template = request.parameter("class"), request.parameter("template")
        namespace = request.parameter("namespace")
        count = integer(request, "count", 1)
        if class_name and template:
            raise BadRequest("give a class or a template, not both")
        if count < 1 or (count > 1 and not class_name):
            raise BadRequest("count is a number of devices of a class, at least 1")

        def chosen(frozen: Frozen) -> Sequence[CapacitySubject]:
            if class_name:
                subjects.check_class(world.World(frozen).objects, class_name)
                return [subjects.of_class(class_name, namespace, count)]
            if template:
                place = api_resources.RESOURCE_CLAIM_TEMPLATES
                key = ObjectKey(*place, namespace or "default", template)
                subjects.check_template(world.World(frozen).objects, key)
                return [subjects.of_template(key)]
            return subjects.of_cluster(world.World(frozen).objects, namespace)

        return await self._of_subjects(inquiry, chosen)

    async def fit_of_documents(self, inquiry: Inquiry) -> FitAnswer:
        """The number of copies of posted objects that fit. Raises Rejected as a create would."""
        inquiry.reader().check_all(FIT_FROM)
        wanted = await reading.body(inquiry.request, models.Wanted, self._limits)
        documents = [(f"objects[{n}]", tree) for n, tree in enumerate(wanted.objects)]
        named = subjects.of_documents(documents, inquiry.request.parameter("namespace"))
        return await self.fit_of(inquiry, named)

    async def fit_of(self, inquiry: Inquiry, named: Sequence[CapacitySubject]) -> FitAnswer:
        """The number of copies of the subjects that fit. Raises Rejected as a create would."""
        inquiry.reader().check_all(FIT_FROM)
        return await self._of_subjects(inquiry, lambda _: named)

    async def _of_subjects(
        self, inquiry: Inquiry, chosen: Callable[[Frozen], Sequence[CapacitySubject]]
    ) -> FitAnswer:
        """The number of copies that fit of subjects chosen from the state at the moment."""
        bounds = self._limits.fit

        def answer(frozen: Frozen, goes_on: Callable[[], bool]) -> FitAnswer:
            wanted = chosen(frozen)
            fits = (
                (fitting.fit(frozen, wanted[0], bounds, goes_on),)
                if len(wanted) == 1
                else fitting.fit_all(frozen, wanted, bounds, goes_on)
            )
            return FitAnswer(
                history=runtime.info.name,
                revision=frozen.revision,
                time=timestamps.micro_text(frozen.now),
                items=fits,
                together=fitting.fit_together(frozen, wanted, bounds, goes_on),
                waiting=len(
                    prospects.waiting_pods(world.World(frozen).objects, info.scheduler_profiles)
                ),
                omitted=len(wanted) - len(fits),
            )

        runtime = inquiry.runtime
        # Waiting questions hold no state: it is frozen when their turn comes.
        async with self._turns:
            views = await self._answers.views(inquiry)
            now = await self._answers.time(inquiry, views)
            quotes = inquiry.reader().sees_all(EVERYTHING)
            info = await runtime.as_of(views.revision)
            rules = self._histories.rules(info)
            frozen = world.freeze(views, info, rules, now, quotes_policies=quotes)
            fits = await abandoning.in_thread(inquiry.request, answer, frozen)
        recorded = await self._answers.chronicles.doubts(runtime, views)
        return recorded_doubts.doubted(fits, recorded)

    async def capacity(self, inquiry: Inquiry, seconds: float | None = None) -> CapacityCourse:
        """The capacity at the moment, and at moments before it.

        One question computes a bounded number of moments, the last one first; later questions
        compute the moments that are `missing`. With a time, all moments are computed, and those
        are `missing` that are not known in this time; the last one is waited for.
        """
        inquiry.reader().check_all(WORKED_OUT_FROM)
        runtime, bounds = inquiry.runtime, self._limits.capacity
        views = await self._answers.views(inquiry)
        until = views.revision
        revisions = sampling.sampled(until, bounds.moments_max)
        if seconds is None or not await self._begin(runtime, revisions, seconds):
            await self._compute_some(runtime, revisions)
        known = [self._kept.recent((runtime.life, one)) for one in revisions]
        recorded = await self._answers.chronicles.doubts(runtime, views)
        shown = tuple(one for one in known if one is not None)
        return CapacityCourse(
            history=runtime.info.name,
            revision=until,
            time=shown[-1].time,
            moments=shown,
            missing=len(revisions) - len(shown),
            certainty=doubts.certainty(recorded),
            doubts=recorded,
        )

    async def _begin(
        self, runtime: HistoryRuntime, revisions: Sequence[Revision], seconds: float
    ) -> bool:
        """Have all moments computed; whether the last one is known when the time is over."""

        async def compute_all() -> None:
            courses: dict[str, DeviceCourse] = {}
            for revision in _spread(revisions):
                # Other questions have their turns in between.
                async with self._turns:
                    if (runtime.life, revision) not in self._kept:
                        await self._compute(runtime, revision, courses)

        errand = runtime.errands.begin(("capacity", *revisions), compute_all)
        if errand is not None and await errand.wait_ended(seconds):
            errand.outcome()
        return (runtime.life, revisions[-1]) in self._kept

    async def _compute_some(self, runtime: HistoryRuntime, revisions: Sequence[Revision]) -> None:
        """Compute the next moments that are not known, as many as one question may."""
        # An answer that another request computes in the meantime is not computed again.
        async with self._turns:
            lacking = [one for one in revisions if (runtime.life, one) not in self._kept]
            courses: dict[str, DeviceCourse] = {}
            for revision in sorted(_spread(lacking)[: self._limits.capacity.at_once_max]):
                await self._compute(runtime, revision, courses)

    async def _compute(
        self, runtime: HistoryRuntime, revision: Revision, courses: dict[str, DeviceCourse]
    ) -> None:
        """Computes and keeps the capacity at a moment; there is a course for each release."""
        info = await runtime.as_of(revision)
        profile = self._histories.rules(info).profile
        course = courses.setdefault(repr(info.settings), DeviceCourse(profile))
        quirks = registry.allocator_quirks_of(profile, registry.options_from(info.settings))
        compiler = compiler_of(profile)
        steps_max = self._limits.capacity.steps_max
        events, created = await self._histories.past.objects_of(
            info, revision, _DEVICES_FROM, runtime.views.objects.total
        )
        now = await time_of(runtime.log, info, revision)

        def moment() -> CapacityMoment:
            devices = course.move(events, created)
            return sampling.of(revision, now, devices, compiler, quirks, steps_max)

        self._kept[runtime.life, revision] = await anyio.to_thread.run_sync(moment)


def _spread(revisions: Sequence[Revision]) -> list[Revision]:
    """Order the last revision first, then from coarse to fine, so that a part shows the course.

    Example: 1 2 3 4 5 6 7 becomes 7, then 1 5, 3, then the rest.
    """
    ordered: dict[Revision, None] = dict.fromkeys(revisions[-1:])
    step = 1
    while step * 2 < len(revisions):
        step *= 2
    while step:
        ordered |= dict.fromkeys(revisions[::step])
        step //= 2
    return list(ordered)
