"""The keyboard control of a replay's pace."""

import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio

from app.domain.errors import InputError, LogError, Rejected
from app.domain.values import counts, timestamps
from app.domain.values.timestamps import SECOND, Instant
from app.service.pacing import pace
from app.service.pacing.pace import MAX, SPEED_MAX, SPEED_MIN
from app.service.pacing.player import Player, PlayerState
from app.service.pacing.script import StopRule

HELP = (
    "keys: space pause or continue, + and - ten times as fast or slow, 1 recorded pace, m "
    "maximum pace, n next event, d next decision, ← and → 10 s back or forward, q quit"
)
SKIP = 10 * SECOND
_LEFT, _RIGHT = "\x1b[D", "\x1b[C"


def state_line(player: Player) -> str:
    """The state of a replay, on one line."""
    shown, conflicts = player.counts
    end = player.span.end.revision
    speed = "" if player.state is PlayerState.ENDED else f" {pace.speed_text(player.speed)},"
    return (
        f"{timestamps.micro_text(player.moment)} {player.state.value},{speed} revision "
        f"{player.revision} of {end}, {counts.of(shown, 'event')} shown, "
        f"{counts.of(conflicts, 'conflict')}"
    )


class Keyboard:
    """Reads keys until cancelled; `end` is called to end the server."""

    def __init__(
        self, player: Player, note: Callable[[str], None], end: Callable[[], None]
    ) -> None:
        self._player = player
        self._note = note
        self._end = end

    async def run(self) -> None:
        """Handle keys; the terminal's settings are restored afterwards."""
        descriptor = sys.stdin.fileno()
        with _single_keys(descriptor):
            # Only now: keys typed before the settings changed are dropped.
            self._note(HELP)
            while True:
                await anyio.wait_readable(descriptor)
                text = os.read(descriptor, 64).decode(errors="replace")
                if not text:
                    return  # the terminal is gone
                for key in _keys_of(text):
                    await self._press(key)

    async def _press(self, key: str) -> None:
        try:
            if await self.do(key):
                self._note(state_line(self._player))
        except (InputError, Rejected, LogError) as problem:
            self._note(str(problem))

    async def do(self, key: str) -> bool:
        """Handle a key; False when it means nothing or the state need not be shown."""
        player = self._player
        match key:
            case " ":
                await player.set_pace(paused=player.state is PlayerState.RUNNING)
            case "+" | "-":
                await player.set_pace(speed=_next_speed(player.speed, is_faster=key == "+"))
            case "1":
                await player.set_pace(speed=1.0)
            case "m":
                await player.set_pace(speed=MAX)
            case "n" | "d":
                if await player.step(StopRule(is_decision=key == "d")) is None:
                    self._note("there is no other one before the end")
            case "\x1b[D" | "\x1b[C":
                await self._skip(SKIP if key == _RIGHT else -SKIP)
            case "q":
                self._end()
                return False
            case _:
                return False
        return True

    async def _skip(self, distance: int) -> None:
        player = self._player
        begin, end = player.span.begin, player.span.end
        wanted = Instant(player.moment + distance)
        if wanted <= begin.time:
            await player.seek(str(begin.revision))
        elif wanted >= end.time:
            await player.seek(str(end.revision))
        else:
            await player.seek(timestamps.micro_text(wanted))


def _next_speed(speed: float, *, is_faster: bool) -> float:
    if speed == MAX:
        return MAX if is_faster else 100.0
    return max(SPEED_MIN, min(SPEED_MAX, speed * 10 if is_faster else speed / 10))


def _keys_of(text: str) -> Iterator[str]:
    """The keys in the text that was read; an arrow key is three characters."""
    while text:
        size = 3 if text.startswith((_LEFT, _RIGHT)) else 1
        yield text[:size]
        text = text[size:]


@contextmanager
def _single_keys(descriptor: int) -> Iterator[None]:
    """Deliver each key at once, without echo; signals work as usual."""
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
