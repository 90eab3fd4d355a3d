"""Decodes the objects of views before an answer that looks at all of them.

A history that is opened from a snapshot or a log has its objects as bytes. The first answer that
reads them all would keep every other request waiting.
"""

from collections.abc import Iterable

from anyio import lowlevel

from app.analysis.views import LiveViews

TURN = 200
"""Objects that are decoded before the loop runs other tasks: some ten milliseconds."""


async def decode(views: LiveViews, kinds: Iterable[tuple[str, str]]) -> None:
    """Decode the objects of these kinds, as far as views keep them decoded."""
    for kind in kinds:
        for number, key in enumerate(views.objects.keys(*kind)):
            views.objects.get(key)
            if number % TURN == TURN - 1:
                await lowlevel.checkpoint()
