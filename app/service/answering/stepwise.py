"""Works out an answer from views between other requests."""

from collections.abc import Callable, Generator
from typing import TypeVar

from anyio import lowlevel

from app.analysis.views import LiveViews

T = TypeVar("T")


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
