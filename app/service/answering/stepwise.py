"""Work between other requests: an answer made in steps, and the objects decoded before it."""

from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from anyio import lowlevel

from app.analysis.views import LiveViews

T = TypeVar("T")

DECODED_AT_ONCE_MAX = 200
"""Objects that are decoded before the loop runs other tasks: some ten milliseconds."""


async def worked_out(views: LiveViews, begin: Callable[[], Generator[None, None, T]]) -> T:
    """The result of work that `begin` begins, with turns for other tasks between its steps.

    When the views advance meanwhile, the work begins anew and is done in one go: for short work,
    folding the views of the revision before would cost more.
    """
    revision, steps = views.revision, begin()
    try:
        while views.revision == revision:
            next(steps)
            await lowlevel.checkpoint()
    except StopIteration as done:
        result: T = done.value
        return result
    return _whole(begin())


def _whole(steps: Generator[None, None, T]) -> T:
    """The result of all steps."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: T = done.value
        return result


async def decode(views: LiveViews, kinds: Iterable[tuple[str, str]]) -> None:
    """Decode the objects of these kinds, as far as views keep them decoded.

    A history that is opened from a snapshot or a log has its objects as bytes. The first answer
    that reads them all would keep every other request waiting.
    """
    for kind in kinds:
        for number, key in enumerate(views.objects.keys(*kind)):
            views.objects.get(key)
            if number % DECODED_AT_ONCE_MAX == DECODED_AT_ONCE_MAX - 1:
                await lowlevel.checkpoint()
