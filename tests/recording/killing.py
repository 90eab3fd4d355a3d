"""A seeded story: processes of a cluster and of its recorder die while clients write.

The recorder reaches the cluster through a proxy. The faults of the proxy, who dies when, and what
is written follow from the seed; how far each side was at that moment does not.
"""

import random
import signal
from contextlib import asynccontextmanager, suppress

import anyio
import httpx

from tests import command_line
from tests.acceptance.server_process import ServerProcess
from tests.command_line import database_running
from tests.patience import PATIENCE_SECONDS
from tests.prepared_data import prepare
from tests.recording import judge
from tests.recording.proxy import proxying
from tests.redra_process import RedraProcess

NAMESPACE = "/api/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MERGE = {"content-type": "application/merge-patch+json"}
WRITERS = 3
TRIES = 600
"""Looks at a recording, each a command, until its last change is there."""


QUICK = {
    "REDRA_LEASE_SECONDS": "1",
    "REDRA_RECORD_PAUSE_SECONDS_MAX": "0.2",
    "REDRA_RECORD_PAGE_MAX": "7",
    "REDRA_RECORD_AUDIT_SECONDS": "2",
    "REDRA_RECORD_SILENCE_SECONDS": "5",
    "REDRA_RECORD_ANSWER_SECONDS": "10",
    "REDRA_RECORD_STOP_SECONDS": "60",
    "REDRA_RECORD_CLOCK_SECONDS": "60",
}


def tree_of(path, name):
    """An object to create at a path."""
    tree = {"metadata": {"name": name}}
    if path.endswith("pods"):
        tree["spec"] = {"containers": [{"name": "c", "image": "i"}]}
    elif path == CLAIMS:
        exactly = {"deviceClassName": "none.example.com"}
        tree["spec"] = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    elif path == SLICES:
        tree["spec"] = {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        }
    return tree


class Mortals:
    """The processes of a story: a cluster and the recorder of it, and clients that write."""

    def __init__(self, folder, seed, proxy=None):
        self.random = random.Random(seed)
        self.cluster = ServerProcess(folder / "cluster")
        self.cluster.folder.mkdir(parents=True)
        self.data = folder / "data"
        self.kubeconfig = folder / "kubeconfig"
        self.folder = folder
        self.proxy = proxy
        self.recorder = None
        self.notes = folder / "notes"
        self._number = 0

    async def begin(self):
        prepare(self.data)
        await anyio.to_thread.run_sync(self.cluster.start)
        async with self.client() as client:
            for number in range(4):
                await client.post("/api/v1/nodes", json=tree_of("", f"n{number}"))

    async def record(self):
        """Starts a recorder; returns when it records."""

        def start():
            words = ["record", "--history", "prod", "--kubeconfig", self.kubeconfig]
            with self.notes.open("a") as notes:
                self.recorder = RedraProcess(
                    [*words, "--data", self.data], environment=QUICK, stderr=notes
                )
            return self.recorder.stdout.readline()

        while "recording" not in await anyio.to_thread.run_sync(start):
            # Its first requests met a fault; a person would start it again.
            await anyio.to_thread.run_sync(self.recorder.communicate)
            assert self.recorder.returncode in (1, 2), self.notes.read_text()
            assert "Traceback" not in self.notes.read_text(), self.notes.read_text()

    async def end_recorder(self, how):
        recorder, self.recorder = self.recorder, None
        recorder.send_signal(how)
        await anyio.to_thread.run_sync(recorder.communicate)
        assert how == signal.SIGKILL or recorder.returncode == 0, self.notes.read_text()

    @asynccontextmanager
    async def client(self):
        async with httpx.AsyncClient(base_url=self.cluster.url, timeout=PATIENCE_SECONDS) as client:
            yield client

    @asynccontextmanager
    async def writing(self):
        """Clients write during the block."""
        async with anyio.create_task_group() as tasks:
            for _ in range(WRITERS):
                tasks.start_soon(self._write, random.Random(self.random.random()))
            yield
            tasks.cancel_scope.cancel()

    async def _write(self, chance):
        """Writes until cancelled; an answer that does not come is no reason to stop."""
        names = {}
        async with self.client() as client:
            while True:
                with suppress(httpx.TransportError):
                    answer = await self._one(client, chance, names)
                    assert answer.status_code in (200, 201, 404, 409, 503), answer.text
                await anyio.sleep(chance.random() * 0.3)  # waits: is the pace of the clients

    async def _one(self, client, chance, names):
        act = chance.random()
        if not names or act < 0.4:
            self._number += 1
            path = chance.choice((f"{NAMESPACE}/pods", CLAIMS, "/api/v1/nodes", SLICES))
            name = f"o{self._number}"
            names[f"{path}/{name}"] = None
            return await client.post(path, json=tree_of(path, name))
        path = chance.choice(sorted(names))
        if act < 0.75:
            labels = {"step": str(chance.randrange(1_000))}
            return await client.patch(path, json={"metadata": {"labels": labels}}, headers=MERGE)
        del names[path]
        return await client.delete(f"{path}?gracePeriodSeconds=0")

    async def logs(self):
        """Both logs as lines, after a last change has been recorded and the recorder stopped."""
        async with self.client() as client:
            made = await client.post("/api/v1/nodes", json=tree_of("", "last"))
            assert made.status_code == 201, made.text
        for _ in range(TRIES):
            if await anyio.to_thread.run_sync(self._lines, self.data, "prod", "node/last"):
                break
        else:
            raise AssertionError(self.notes.read_text())
        await self.end_recorder(signal.SIGTERM)
        await anyio.to_thread.run_sync(self.cluster.end)
        return [
            await anyio.to_thread.run_sync(self._whole, data, history)
            for data, history in ((self.cluster.data, "default"), (self.data, "prod"))
        ]

    def _whole(self, data, history):
        with database_running(data):
            return self._lines(data, history)

    def _lines(self, data, *words):
        code, out, _ = command_line.redra("log", *words, data=data)
        return out.splitlines() if not code else []

    async def close(self):
        if self.recorder is not None:
            await self.end_recorder(signal.SIGKILL)
        self.cluster.end(signal.SIGKILL)


async def live(folder, seed, *, kills, loses):
    """A story with so many deaths; returns the verdict."""
    mortals = Mortals(folder, seed)
    chance = mortals.random
    try:
        await mortals.begin()
        async with proxying(mortals.cluster, seed) as proxy:
            kubeconfig = mortals.cluster.kubeconfig.read_text()
            address = f"http://127.0.0.1:{proxy.port}"
            assert mortals.cluster.url in kubeconfig
            mortals.kubeconfig.write_text(kubeconfig.replace(mortals.cluster.url, address))
            await mortals.record()
            async with mortals.writing():
                for _ in range(kills):
                    _disturb(proxy, chance, loses=loses)
                    await anyio.sleep(chance.uniform(0.1, 1.2))  # waits: is the life of a side
                    await _kill(mortals, proxy, chance)
                _disturb(proxy, chance, loses=loses)
                await anyio.sleep(1.0)  # waits: is the life of a side
            proxy.calm()
            verdict = judge.compare(*await mortals.logs())
            assert "Traceback" not in mortals.notes.read_text(), mortals.notes.read_text()
            return verdict
    finally:
        with anyio.CancelScope(shield=True):
            await mortals.close()


def _disturb(proxy, chance, *, loses):
    """Other faults of the proxy; in a third of all lives there are none."""
    proxy.calm()
    if chance.random() < 0.67:
        proxy.delay_seconds = chance.choice((0.0, 0.02, 0.1))
        proxy.cut, proxy.silent = chance.choice((0.0, 0.05)), chance.choice((0.0, 0.02))
        proxy.repeat = chance.choice((0.0, 0.3))
        proxy.lose = chance.choice((0.0, 0.1)) if loses else 0.0


async def _kill(mortals, proxy, chance):
    act = chance.random()
    if act < 0.5:
        await mortals.end_recorder(signal.SIGKILL)
        await anyio.sleep(chance.uniform(0, 0.5))  # waits: is the death of a side
        if chance.random() < 0.3:
            await anyio.to_thread.run_sync(mortals.cluster.restart, signal.SIGKILL)
        await mortals.record()
    else:
        await anyio.to_thread.run_sync(mortals.cluster.end, signal.SIGKILL)
        await anyio.sleep(chance.uniform(0, 0.5))  # waits: is the death of a side
        await anyio.to_thread.run_sync(mortals.cluster.start)
