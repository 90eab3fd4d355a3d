"""Durations as readable text, such as `3 min 20 s`."""


def text(seconds: float) -> str:
    """A readable duration: `0.42 s`, `12.5 s`, `3 min 20 s`, `1 h`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return rounded(seconds)


def rounded(seconds: float) -> str:
    """A duration in whole seconds, or in minutes or hours: `60 s`, `3 min 20 s`, `1 h`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
