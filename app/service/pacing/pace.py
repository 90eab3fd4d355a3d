"""The pace of a replay: its position in the time of its recording.

    time that passes    0 s   1 s   2 s   3 s   4 s
    speed               10    10    0     0     1
    position           :00   :10   :20   :20   :20 … :21

At speed `MAX` the position does not move with time: it is the time of the last event shown.
"""

import math
from dataclasses import dataclass

from app.domain.errors import InputError
from app.domain.values.timestamps import Instant

MAX = math.inf
"""The speed at which events are shown as fast as possible."""

SPEED_MIN, SPEED_MAX = 0.001, 100_000.0
"""The bounds of other speeds. A lower speed would be a pause, a higher one the speed `MAX`."""

STEP = "step"


def parse_speed(text: str) -> float:
    """Parse a speed such as `10x`, `0.5` or `max`; `step` is 0. Raises InputError."""
    word = text.strip().lower()
    if word == "max":
        return MAX
    if word == STEP:
        return 0.0
    try:
        speed = float(word.removesuffix("x"))
    except ValueError:
        speed = math.nan
    if not SPEED_MIN <= speed <= SPEED_MAX:
        problem = "is not a speed"
        if not math.isnan(speed):
            problem += f": it is {'less than' if speed < SPEED_MIN else 'more than'} possible"
        raise InputError(
            f"{text!r} {problem}",
            place="--speed",
            cure=f"choose 1x, 10x, any number from {SPEED_MIN} to {SPEED_MAX:.0f}, max or step",
        )
    return speed


def speed_text(speed: float) -> str:
    """The text of a speed."""
    if speed == MAX:
        return "max"
    return f"{speed:g}x" if speed else STEP


@dataclass(slots=True)
class PacedPosition:
    """A position in the recording that moves with `speed` while it is not paused.

    Every method gets `steady`, the present reading of the steady clock.
    """

    _position: Instant
    _steady: int
    speed: float = 1.0
    is_paused: bool = True

    @property
    def rate(self) -> float:
        """The rate at which the position moves with time, relative to real time."""
        return 0.0 if self.is_paused or self.speed == MAX else self.speed

    def position(self, steady: int) -> Instant:
        """The position of the replay."""
        return Instant(self._position + int((steady - self._steady) * self.rate))

    def is_due(self, time: Instant, steady: int) -> bool:
        """Whether an event of that time is due."""
        if self.is_paused:
            return False
        return self.speed == MAX or time <= self.position(steady)

    def wait_for(self, time: Instant, steady: int) -> int | None:
        """Microseconds until an event of that time is due; None while the replay is paused."""
        if self.is_paused:
            return None
        if self.speed == MAX:
            return 0
        return max(0, math.ceil((time - self.position(steady)) / self.speed))

    def lateness(self, time: Instant, steady: int) -> int:
        """Microseconds since an event of that time was due; 0 at speed `MAX`."""
        return max(0, int((self.position(steady) - time) / self.speed))

    def move(self, position: Instant, steady: int) -> None:
        """Continue at another position."""
        self._position, self._steady = position, steady

    def reach(self, time: Instant, steady: int) -> None:
        """Note that an event of that time was shown: the position is not before it."""
        self.move(Instant(max(time, self.position(steady))), steady)

    def change(
        self, steady: int, *, speed: float | None = None, paused: bool | None = None
    ) -> None:
        """Continue from the present position at another speed, paused, or running."""
        self.move(self.position(steady), steady)
        if speed is not None:
            self.speed = speed
        if paused is not None:
            self.is_paused = paused
