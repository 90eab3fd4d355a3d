"""Work in a thread that ends when its client disconnects or the server stops."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from app.api.server.messages import ClientGone, HttpRequest

_Given = TypeVar("_Given")
_Answer = TypeVar("_Answer")
_MESSAGES_MAX = 2
"""Messages read before a disconnect; an empty body may be announced first."""


async def in_thread(
    request: HttpRequest, work: Callable[[_Given, Callable[[], bool]], _Answer], given: _Given
) -> _Answer:
    """Run `work` on `given` in a thread and return its result. Raises ClientGone.

    The work calls its second argument now and then; when that returns False, it must raise.
    """
    is_over = False
    answers: list[_Answer] = []
    problems: list[Exception] = []

    def goes_on() -> bool:
        return not is_over

    async def watch(scope: anyio.CancelScope) -> None:
        for _ in range(_MESSAGES_MAX):
            if (await request.receive())["type"] == "http.disconnect":
                scope.cancel()
                return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, tasks.cancel_scope)
        try:
            answers.append(
                await anyio.to_thread.run_sync(work, given, goes_on, abandon_on_cancel=True)
            )
        except Exception as problem:
            # Raised outside of the group, which would wrap it in an ExceptionGroup.
            problems.append(problem)
        finally:
            is_over = True
        tasks.cancel_scope.cancel()
    if problems:
        raise problems[0]
    if not answers:
        raise ClientGone
    return answers[0]
