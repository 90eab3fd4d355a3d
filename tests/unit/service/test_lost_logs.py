"""A log that cannot be followed any more is logged once by the server, and its return, too."""

import logging

import anyio
import pytest

from app.domain.errors import LogUnavailable
from tests.api.serving import serving
from tests.patience import PATIENCE_SECONDS

GONE = "tables of redra are gone from the database; they are waited for"


NAMESPACES = "/api/v1/namespaces"
OF_MEMORY = (
    NAMESPACES,
    f"{NAMESPACES}/default",
    f"{NAMESPACES}?watch=true&resourceVersion=2&timeoutSeconds=1",
)
"""Answers that need no log: objects, a list, a watch."""

KEPT = ("/api", "/apis", "/openapi/v2", "/openapi/v3/api/v1")
"""Answers that clients keep, some for a year, and show with all their headers again."""


class LostLog:
    """The log of a port, whose tables may be gone."""

    def __init__(self) -> None:
        self._log: object = None
        self.is_lost = False
        self.refusals = 0

    def around(self, log: object) -> "LostLog":
        """This log, around another one."""
        self._log = log
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def head(self, history: int) -> object:
        """The head, unless the tables are gone."""
        if self.is_lost:
            self.refusals += 1
            raise LogUnavailable(GONE)
        return await self._log.head(history)


async def test_lost_log_and_its_return_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = LostLog()
    with caplog.at_level(logging.WARNING, "redra"):
        async with serving(around_log=log.around) as server:
            log.is_lost = True
            with anyio.fail_after(PATIENCE_SECONDS):
                while log.refusals < 4:  # noqa: ASYNC110 - a count, not an event
                    await anyio.sleep(0.05)  # waits: for the polls of the follower
            answer = await server.raw("GET", "/readyz")
            assert (answer.status_code, GONE in answer.text) == (503, True)
            for path in OF_MEMORY:
                answer = await server.raw("GET", path)
                assert answer.status_code == 200
                assert GONE in answer.headers["warning"]
                assert (
                    "this is the state at revision 2, which may be gone"
                    in (answer.headers["warning"])
                )
            for path in KEPT:
                answer = await server.raw("GET", path)
                assert answer.status_code == 200
                assert "warning" not in answer.headers
            log.is_lost = False
            with anyio.fail_after(PATIENCE_SECONDS):
                while (await server.raw("GET", "/readyz")).text != "ok":  # noqa: ASYNC110 - HTTP
                    await anyio.sleep(0.05)  # waits: for the next poll
            for path in (NAMESPACES, "/apis"):
                assert "warning" not in (await server.raw("GET", path)).headers
    said = [record.getMessage() for record in caplog.records if record.name == "redra"]
    assert [text for text in said if text.startswith("history default: ")] == [
        f"history default: {GONE}",
        "history default: its log can be followed again",
    ]
