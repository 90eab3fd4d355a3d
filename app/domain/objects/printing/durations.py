"""Durations and ages as kubectl prints them, with at most two units. Parity: api.md 6."""

from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant, TimestampError

UNKNOWN = "<unknown>"


def duration_text(micros: int) -> str:
    """A duration in microseconds as text, such as `90s`, `5m30s`, `3h20m`, `3d4h` or `9y`."""
    if micros < 0:
        return "0s" if micros > -2 * SECOND else "<invalid>"
    seconds = micros // SECOND
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2_920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def age_text(moment: str, now: Instant) -> str:
    """The time from an RFC 3339 timestamp until now; `<unknown>` if it is empty or invalid."""
    if not moment:
        return UNKNOWN
    try:
        return duration_text(now - timestamps.parse(moment))
    except TimestampError:
        return UNKNOWN


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    if small == 0:
        return f"{large}{large_unit}"
    return f"{large}{large_unit}{small}{small_unit}"
