"""`/redra/v1/histories/<history>/rehearsal`: a history's inputs under another release."""

import anyio
import msgspec

from app.analysis.rehearse.defects import titles
from app.analysis.rehearse.report import Rehearsal
from app.api.redra import relative
from app.api.redra.beside import Gallery
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest, Response
from app.domain.errors import BadRequest, NotFound, RevisionTooLarge
from app.service import moments
from app.service.histories import Histories
from app.service.rehearsing import worlds
from app.service.rehearsing.worlds import RehearsalRequest
from app.service.runtime import HistoryRuntime

_STATES = {"true": True, "on": True, "false": False, "off": False}


class RehearsalApi:
    """Answers rehearsal questions, a bounded number at a time; the others wait for their turn."""

    def __init__(self, histories: Histories, limits: ApiLimits, gallery: Gallery | None) -> None:
        self._histories = histories
        self._gallery = gallery
        self._limits = limits
        self._turns = anyio.CapacityLimiter(limits.diffs_at_once_max)

    async def answer(self, request: HttpRequest, runtime: HistoryRuntime) -> Response:
        """The report at the moment of a request, see `report`."""
        moment = request.parameter("at")
        report = await self.report(request, runtime, moment)
        return relative.named(runtime, moment, Response(msgspec.json.encode(report.to_json())))

    async def report(self, request: HttpRequest, runtime: HistoryRuntime, moment: str) -> Rehearsal:
        """The rehearsal of a history up to a moment; the caller checks the right to read all of it.

        Raises BadRequest for invalid parameters, InputError, NotFound.
        """
        release = request.parameter("to")
        if not release:
            raise BadRequest("the parameter to is missing: a release such as 1.37")
        planes = self._histories.planes
        assert planes is not None, "a server makes forks with recorded inputs"
        gates, quirks = (_switches(request, name) for name in ("gate", "quirk"))
        try:
            head = await self._histories.head(runtime.info)
            until = head.revision
            if moment:
                moment = runtime.absolute(moment)
                await moments.check_inside(runtime.log, runtime.info, moment)
                until = await self._histories.revision(runtime.info, moment)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem)) from problem
        wanted = RehearsalRequest(
            release=release,
            until=until,
            gates=gates,
            quirks={name.lower(): is_on for name, is_on in quirks.items()},
            exhibits=self._titles(),
            bounds=self._limits.diff,
            events_max=self._limits.diff_events_max,
            runs_max=self._limits.rehearse_runs_max,
            trial_events_max=self._limits.rehearse_events_max,
        )
        async with self._turns:
            return await worlds.rehearse(runtime.log, runtime.info, wanted, planes)

    def _titles(self) -> dict[str, tuple[str, str]]:
        """Number and title of each incident of the gallery; empty without one."""
        if self._gallery is None:
            return {}
        return titles(map(self._gallery.read, self._gallery.names()))


def _switches(request: HttpRequest, name: str) -> dict[str, bool]:
    """The switches in a parameter: `NAME=true` and the like, separated by commas."""
    switches = {}
    for part in filter(None, (part.strip() for part in request.parameter(name).split(","))):
        switch, _, state = part.partition("=")
        if not switch or state.lower() not in _STATES:
            raise BadRequest(f'{name} must be NAME=true or NAME=false, not "{part[:64]}"')
        switches[switch.strip()] = _STATES[state.lower()]
    return switches
