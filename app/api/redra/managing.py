"""Management of histories below `/redra/v1`: create, rename, copy, fork, delete."""

from typing import TypeVar

import anyio
from pydantic import BaseModel

from app.analysis import edits
from app.analysis.diff.forks import ForkReport
from app.api.access.authorization import Authorizer, Gate
from app.api.redra import models
from app.api.server import reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    InputError,
    NotFound,
    RevisionTooLarge,
)
from app.domain.log import Actor, HistoryInfo, Revision, Tombstone
from app.domain.objects import profile as profiles
from app.domain.values import timestamps
from app.service import moments
from app.service.forking import ForkRequest, ForkSwitches, MadeFork
from app.service.histories import DEFAULT_HISTORY, Histories

_Body = TypeVar("_Body", bound=BaseModel)


class ManagingApi:
    """Creates, changes and deletes histories.

    The caller checks the rights first; only `fork` does so itself.
    """

    def __init__(
        self, histories: Histories, limits: ApiLimits, gate: Gate, authorizer: Authorizer
    ) -> None:
        self._histories = histories
        self._limits = limits
        self._gate = gate
        self._authorizer = authorizer
        self._turns = anyio.CapacityLimiter(limits.diffs_at_once_max)

    async def create(self, request: HttpRequest) -> HistoryInfo:
        """Create a cluster with the profile in the body. Raises Rejected."""
        wanted = await self._body(request, models.NewHistory)
        profile = profiles.Profile(
            version=wanted.profile or profiles.DEFAULT_VERSION, gates=wanted.gates
        )
        runtime = await self._histories.create_cluster(
            wanted.name, seed=wanted.seed, settings=profile.settings()
        )
        return runtime.info

    async def rename(self, request: HttpRequest, name: str) -> HistoryInfo:
        """Rename a history to the name in the body. Raises Rejected."""
        wanted = await self._body(request, models.NewName)
        _check_is_not_default(name)
        return await self._histories.rename(name, wanted.name)

    async def copy(self, request: HttpRequest, name: str) -> HistoryInfo:
        """Copy a history to the name in the body. Raises Rejected."""
        wanted = await self._body(request, models.NewCopy)
        try:
            return await self._histories.copy(name, wanted.name, wanted.at)
        except RevisionTooLarge as problem:
            raise NotFound(str(problem)) from problem

    async def check_may_repeat(self, name: str, actor: Actor) -> None:
        """Raise Forbidden unless a user may make a history that begins as another one.

        It holds the past, too, which may contain objects of any kind, and other rules may guard it:
        the user needs the right to create histories and to read everything in this one.
        """
        await self._gate.check_may_make(actor)
        if not self._authorizer.is_unlimited(actor):
            runtime = await self._histories.open(name)
            self._authorizer.check_sees_everything(actor, runtime, runtime)

    async def fork(self, wanted: models.NewFork, name: str, actor: Actor) -> MadeFork:
        """Fork a history on behalf of a user. Raises Rejected, InputError.

        Edits bypass the rules of the history: raises Forbidden for them unless the user may do
        everything.
        """
        await self.check_may_repeat(name, actor)
        may_edit = self._authorizer.is_unlimited(actor)
        if not may_edit and (wanted.apply or wanted.delete or wanted.patch):
            raise Forbidden(
                "apply, delete and patch need a user who may do everything; create the fork "
                "without them, and change the objects in the fork",
                resource="histories",
                name=name,
            )
        try:
            async with self._turns:
                return await self._histories.fork(
                    name,
                    wanted.name,
                    wanted.at,
                    wanted=await self._wanted(wanted, name),
                    actor=actor,
                )
        except RevisionTooLarge as problem:
            raise NotFound(str(problem), resource="revisions") from problem

    async def _wanted(self, wanted: models.NewFork, name: str) -> ForkRequest:
        """The fork that the body describes. Raises NotFound, RevisionTooLarge, InputError."""
        if wanted.until and wanted.inputs == "none":
            raise BadRequest("until applies to recorded inputs, and the fork has none")
        made: list[edits.Edit] = [edits.DeleteEdit(name=each) for each in wanted.delete]
        made += [edits.PatchEdit(name=place, body=body) for place, body in wanted.patch.items()]
        made += edits.read_manifests((f"apply[{n}]", each) for n, each in enumerate(wanted.apply))
        until = None
        if wanted.inputs == "recorded":
            until = await self._last_input(name, wanted.until)
        switches = ForkSwitches(
            profile=wanted.profile,
            gates=wanted.gates,
            quirks={quirk.lower(): is_on for quirk, is_on in wanted.quirks.items()},
        )
        return ForkRequest(switches=switches, edits=made, until=until)

    async def _last_input(self, name: str, until: str) -> Revision:
        """The revision at the field `until` of a fork. Raises RevisionTooLarge, InputError."""
        info = await self._histories.info(name)
        if not until:
            return (await self._histories.head(info)).revision
        runtime = await self._histories.open(name)
        try:
            moment = runtime.absolute(until)
            await moments.check_inside(runtime.log, info, moment)
            return await self._histories.revision(info, moment)
        except RevisionTooLarge as problem:
            raise RevisionTooLarge(f"until: {problem}") from problem
        except InputError as problem:
            raise InputError(problem.problem, place="until", cure=problem.cure) from problem

    async def delete(self, name: str, actor: Actor) -> models.DeletedHistory:
        """Delete a history on behalf of a user. Raises Rejected."""
        _check_is_not_default(name)
        return _shown(await self._histories.delete(name, by=actor.user))

    async def deleted(self) -> models.DeletedHistoryList:
        """The records of deleted histories."""
        tombstones = await self._histories.tombstones()
        return models.DeletedHistoryList(items=[_shown(each) for each in tombstones])

    async def _body(self, request: HttpRequest, model: type[_Body]) -> _Body:
        return await reading.body(request, model, self._limits)


def forked(
    history: models.History, made: MadeFork, report: ForkReport | None
) -> models.ForkedHistory:
    """The facts about a finished fork, with its notes and the report of its recorded inputs."""
    return models.ForkedHistory(
        **history.model_dump(),
        notes=list(made.notes),
        report=None if report is None else report.to_json(),
        text=[] if report is None else list(report.lines()),
    )


def _check_is_not_default(name: str) -> None:
    """Raise Conflict for the history served at `/`, which a running server must have."""
    if name == DEFAULT_HISTORY:
        raise Conflict(
            f'history "{name}" is served at / and stays while a server runs',
            resource="histories",
            name=name,
        )


def _shown(tombstone: Tombstone) -> models.DeletedHistory:
    return models.DeletedHistory(
        name=tombstone.name,
        revision=tombstone.revision,
        time=timestamps.micro_text(tombstone.time) if tombstone.revision else "",
        hash=tombstone.hash.hex(),
        created=timestamps.micro_text(tombstone.created),
        deleted=timestamps.micro_text(tombstone.deleted),
        deleted_by=tombstone.deleted_by,
    )
