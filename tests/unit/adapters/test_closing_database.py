"""A database whose server has ended is closed without an error, and all its connections end."""

import asyncpg
import pytest

from app.adapters.postgres.database import Database, DatabaseBounds


class EndedPool:
    """The driver's pool, whose connections the server has ended."""

    def __init__(self, problem: Exception, *, at: str) -> None:
        self._problem = problem
        self._at = at
        self.is_terminated = False

    async def acquire(self, **bounds: float):
        return self

    def is_closed(self) -> bool:
        return False

    async def release(self, connection) -> None:
        if self._at == "release":
            raise self._problem

    async def close(self) -> None:
        if self._at == "close":
            raise self._problem

    def terminate(self) -> None:
        self.is_terminated = True


PROBLEMS = [
    asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.AdminShutdownError("terminating connection due to administrator command"),
    ConnectionResetError("connection reset by peer"),
]


@pytest.mark.parametrize("at", ["release", "close"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: type(one).__name__)
async def test_server_that_has_ended_is_no_error_of_closing(problem, at):
    pool = EndedPool(problem, at=at)
    database = Database(pool, "postgresql://", DatabaseBounds())
    async with database.connection():
        pass
    await database.close()
    assert pool.is_terminated


async def test_other_errors_of_closing_are_raised():
    database = Database(EndedPool(LookupError("ours"), at="close"), "x", DatabaseBounds())
    with pytest.raises(LookupError, match="ours"):
        await database.close()
