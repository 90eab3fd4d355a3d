"""A log that can be read and not written, or that does not answer, is named by the health page."""

import anyio

from app.domain.errors import LogUnavailable, NotStorable
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.patience import PATIENCE_SECONDS

FULL = "the disk of the database is full"
NOTE = f"ok\ndefault: the last write was not stored: {FULL}\n"


class FullLog:
    """The log of a port that may refuse events, or be silent."""

    def __init__(self) -> None:
        self._log: object = None
        self.problem: Exception | None = None
        self.silence: anyio.Event | None = None
        self.appending = anyio.Event()
        self.is_slow = False

    def around(self, log: object) -> "FullLog":
        """This log, around another one."""
        self._log = log
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    async def append(self, *values: object, **named: object) -> object:
        """The new head, unless there is no room."""
        if self.problem is not None:
            raise self.problem
        if self.is_slow:
            self.appending.set()
            await anyio.sleep_forever()  # waits: until it is cancelled
        return await self._log.append(*values, **named)

    async def head(self, history: int) -> object:
        """The head, as soon as the log speaks."""
        if self.silence is not None:
            await self.silence.wait()
        return await self._log.head(history)


async def test_health_names_why_the_last_write_was_not_stored() -> None:
    log = FullLog()
    async with serving(around_log=log.around) as server:
        log.problem = LogUnavailable(FULL)
        await server.post(CONFIG_MAPS, config_map("a"), 503)
        assert (await server.raw("GET", "/readyz")).text == NOTE
        await server.get(CONFIG_MAPS)
        assert (await server.raw("GET", "/readyz")).text == NOTE
        log.problem = None
        await server.post(CONFIG_MAPS, config_map("a"))
        assert (await server.raw("GET", "/readyz")).text == "ok"
        log.problem = NotStorable("a number is out of the range of the database")
        await server.post(CONFIG_MAPS, config_map("b"), 400)
        assert (await server.raw("GET", "/readyz")).text == "ok"


async def test_health_says_since_when_the_log_is_silent() -> None:
    log = FullLog()
    async with serving(around_log=log.around) as server:
        silence = log.silence = anyio.Event()
        with anyio.fail_after(PATIENCE_SECONDS):
            while (text := (await server.raw("GET", "/readyz")).text) == "ok":  # noqa: ASYNC110
                await anyio.sleep(0.05)  # waits: for polls that were to happen
        assert text.startswith("ok\ndefault: the log was last read ")
        log.silence = None
        silence.set()
        with anyio.fail_after(PATIENCE_SECONDS):
            while (await server.raw("GET", "/readyz")).text != "ok":  # noqa: ASYNC110
                await anyio.sleep(0.05)  # waits: for the next poll


async def test_write_of_a_history_that_is_deleted_meanwhile_is_answered() -> None:
    """Whether its event was stored cannot be looked up: the history is gone."""
    log = FullLog()
    async with serving(around_log=log.around) as server:
        await server.histories.create_cluster("night")
        await server.get(f"/h/night{CONFIG_MAPS}")
        log.is_slow = True

        async def write() -> None:
            answer = await server.post(f"/h/night{CONFIG_MAPS}", config_map("a"), 503)
            assert answer["message"] == "the writer was stopped"

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                await log.appending.wait()
                await server.call("DELETE", "/redra/v1/histories/night", None, 200)
        log.is_slow = False
        await server.get(f"/h/night{CONFIG_MAPS}", 404)
