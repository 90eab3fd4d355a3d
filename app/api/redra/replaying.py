"""`/redra/v1/histories/<history>/replay`: the state of a paced replay, and changes of its pace."""

from collections.abc import Mapping

from app.analysis import edits
from app.api.access.readers import HistoryReader
from app.api.redra import replay_models
from app.api.redra.replay_models import Replay, ReplayConflict, ReplayEvent, ReplayOrder
from app.api.server import reading
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, InputError, NotFound, RevisionTooLarge
from app.domain.log import Event, replays
from app.domain.values import timestamps
from app.service.pacing import pace
from app.service.pacing.player import Player
from app.service.pacing.script import StopRule
from app.service.runtime import HistoryRuntime


class ReplayApi:
    """Reads and controls the players of this process, by the names of their histories."""

    def __init__(self, players: Mapping[str, Player], limits: ApiLimits) -> None:
        self._players = players
        self._limits = limits

    async def state(self, runtime: HistoryRuntime, reader: HistoryReader) -> Replay:
        """The state of the replay of a history, with the parts that the reader may see."""
        player = self._players.get(runtime.info.name)
        if player is None:
            return Replay(history=runtime.info.name, state="none")
        event = await player.next_event()
        # Nothing is awaited from here on, so that the whole answer is of one moment.
        shown, conflicts = player.counts
        return Replay(
            history=runtime.info.name,
            state=player.state.value,
            source=player.parent.name,
            speed=pace.speed_text(player.speed),
            moment=timestamps.micro_text(player.moment),
            revision=player.revision,
            begin=timestamps.micro_text(player.span.begin.time),
            end=timestamps.micro_text(player.span.end.time),
            end_revision=player.span.end.revision,
            shifts_times=player.shifts,
            shown=shown,
            conflicts=conflicts,
            late_seconds_max=player.lateness_max / timestamps.SECOND,
            next=None if event is None else _next(event, reader),
            latest_conflicts=[
                _conflict(event) for event in player.conflicts if reader.sees_event(event)
            ],
            problem=player.problem,
        )

    async def order(
        self, request: HttpRequest, runtime: HistoryRuntime, reader: HistoryReader
    ) -> None:
        """Apply the order in the body. Raises NotFound, BadRequest, Forbidden."""
        player = self._players.get(runtime.info.name)
        if player is None:
            raise NotFound(
                f'no paced replay of this server shows the history "{runtime.info.name}"',
                resource="histories",
                name=runtime.info.name,
            )
        wanted = await reading.body(request, ReplayOrder, self._limits)
        try:
            speed = pace.parse_speed(wanted.speed) if wanted.speed else None
            step = None if wanted.step is None else _step(wanted.step, runtime, reader)
            if speed is not None or wanted.paused is not None:
                await player.set_pace(speed=speed, paused=wanted.paused)
            if wanted.seek != "":
                await player.seek(str(wanted.seek))
            if step is not None and await player.step(step) is None:
                raise NotFound("there is no such event before the end of the replay")
        except RevisionTooLarge as problem:
            raise NotFound(str(problem)) from problem
        except InputError as problem:
            raise BadRequest(str(problem)) from problem


def _step(
    wanted: replay_models.ReplayStep, runtime: HistoryRuntime, reader: HistoryReader
) -> StopRule:
    """The end of a step. Raises Forbidden for an object that the reader may not see.

    That the replay reaches it, and when, would tell that it is there.
    """
    key = edits.key_of(wanted.object, runtime.views.objects) if wanted.object else None
    if key is not None:
        reader.check(key)
    return StopRule(object=key, is_decision=wanted.decision)


def _next(event: Event, reader: HistoryReader) -> ReplayEvent:
    return ReplayEvent(
        revision=event.revision,
        time=timestamps.micro_text(event.stamp.time),
        type=event.type.value,
        object=str(event.key) if reader.sees_event(event) else "",
    )


def _conflict(event: Event) -> ReplayConflict:
    body = replays.conflict_of(event)
    return ReplayConflict(
        revision=event.revision,
        recorded=body.recorded.revision,
        time=timestamps.micro_text(event.stamp.time),
        object=str(body.subject),
        conflict=body.conflict,
        places=body.places,
        message=body.message,
    )
