"""A server in the process of the tests, and the clusters that it serves."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio.from_thread import BlockingPortal, start_blocking_portal

from app.api.identity.authentication import ADMIN
from app.bootstrap import history_settings, kubeconfigs, managing, serving
from app.bootstrap.kubeconfigs import Access
from app.domain.controllers import switching
from app.domain.errors import InputError
from app.domain.objects.write.commands import PatchObject, PatchType
from app.domain.values.timestamps import LATEST, SECOND, Instant
from app.service.histories import Histories
from app.settings import Settings

BY = "redra pytest plug-in"

POLL_SECONDS = 0.1
"""The poll interval in seconds, after which controllers notice that time was advanced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One cluster of a test: a separate history on the server of the session.

    `url` is the address of its Kubernetes API, `kubeconfig` a file with this address. Time passes
    by itself; `advance` makes it jump.
    """

    name: str
    url: str
    kubeconfig: Path
    server: "Server"

    def advance(self, seconds: float) -> None:
        """Advances the time of this cluster; its controllers notice within POLL_SECONDS.

        Raises InputError for a number that is negative or none, and for a time after the year 9999.
        """
        self.server.advance(self.name, seconds)


class Server:
    """A server in a thread, with all histories in memory."""

    def __init__(self, portal: BlockingPortal, url: str, histories: Histories) -> None:
        self._portal = portal
        self._histories = histories
        self.url = url

    @contextmanager
    def cluster(
        self, name: str, folder: Path, settings: Settings, *, without: tuple[str, ...] = ()
    ) -> Iterator[Cluster]:
        """Makes a cluster that is deleted on exit.

        Raises InputError for unknown settings and controllers.
        """
        managing.check_controllers(dict.fromkeys(without, False))
        self._portal.call(self._make, name, settings, without)
        url = f"{self.url}/h/{name}"
        kubeconfig = kubeconfigs.write(folder / "kubeconfig", Access(url=url))
        try:
            yield Cluster(name=name, url=url, kubeconfig=kubeconfig, server=self)
        finally:
            self._portal.call(self._delete, name)

    def advance(self, name: str, seconds: float) -> None:
        """Advances the time of a history."""
        self._portal.call(self._advance, name, seconds)

    async def _make(self, name: str, settings: Settings, without: tuple[str, ...]) -> None:
        runtime = await self._histories.create_cluster(
            name, settings=history_settings.history_settings(settings)
        )
        if without:
            patch = PatchObject(
                key=switching.KUBE_SYSTEM,
                version="v1",
                type=PatchType.MERGE,
                body=switching.annotation_patch(without),
            )
            await runtime.submit(patch, actor=ADMIN, verb="patch")

    async def _advance(self, name: str, seconds: float) -> None:
        runtime = await self._histories.open(name)
        now = runtime.clock.now()
        if not isinstance(seconds, int | float) or not 0 <= seconds <= (LATEST - now) / SECOND:
            raise InputError(
                f"time cannot be advanced by {seconds!r} seconds",
                cure="give a number from 0 up to the end of the year 9999",
            )
        runtime.clock.observe(Instant(now + round(seconds * SECOND)))

    async def _delete(self, name: str) -> None:
        await self._histories.delete(name, by=BY)


@contextmanager
def running() -> Iterator[Server]:
    """Runs a server until the exit of the context."""
    with TemporaryDirectory(prefix="redra-tests-") as folder, start_blocking_portal() as portal:
        settings = Settings(data=Path(folder), listen="127.0.0.1:0", poll_seconds=POLL_SECONDS)
        served: Future[None]
        served, (url, histories) = portal.start_task(serving.serve_in_memory, settings)
        try:
            yield Server(portal, url, histories)
        finally:
            served.cancel()
