"""Loops of the official Python client that run for long: leader election, informer with resync,
a watch of its asyncio twin over restarts of the server.

Parity: api.md 12 and 13.
"""

import queue
import signal
import threading

import aiohttp
import anyio
import pytest
from kubernetes import client as k8s
from kubernetes import config
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from kubernetes_asyncio import client as aio
from kubernetes_asyncio import config as aio_config
from kubernetes_asyncio import watch as aio_watch

from tests import draws
from tests.acceptance.server_process import server_process
from tests.patience import PATIENCE_SECONDS

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("loops")) as found:
        yield found


@pytest.fixture(scope="module")
def core(server):
    """The locks know no other configuration than the default one."""
    config.load_kube_config(str(server.kubeconfig))
    yield k8s.CoreV1Api()
    k8s.Configuration.set_default(None)


class Candidate:
    """Takes part in an election in a thread of its own until it resigns."""

    def __init__(self, lock, led):
        self._resigns = threading.Event()
        self.stopped = threading.Event()
        self._led = led
        self._lock = lock
        elected = electionconfig.Config(
            lock, lease_duration=3, renew_deadline=2, retry_period=1,
            onstarted_leading=self._lead, onstopped_leading=self.stopped.set,
        )  # fmt: skip
        election = leaderelection.LeaderElection(elected)
        threading.Thread(target=election.run, daemon=True).start()

    def _lead(self):
        self._led.put(self._lock.identity)
        self._resigns.wait(PATIENCE_SECONDS)
        raise InterruptedError("resigned")

    def resign(self):
        """Stop renewing."""
        self._resigns.set()
        assert self.stopped.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("kind", [LeaseLock, ConfigMapLock], ids=lambda kind: kind.__name__)
def test_second_candidate_leads_when_the_first_resigns(core, kind):
    led = queue.Queue()
    name = kind.__name__.lower()
    first = Candidate(kind(name, "default", "first"), led)
    assert led.get(timeout=PATIENCE_SECONDS) == "first"
    second = Candidate(kind(name, "default", "second"), led)
    first.resign()
    assert led.get(timeout=PATIENCE_SECONDS) == "second"
    assert led.empty()
    second.resign()
    if kind is LeaseLock:
        lease = k8s.CoordinationV1Api().read_namespaced_lease(name, "default")
        assert lease.spec.holder_identity == "second"


def test_informer_lists_again_and_again_and_its_cache_stays_right(core):
    lists = queue.Queue()

    def listed(*arguments, **options):
        if not options.get("watch"):
            lists.put(options)
        return core.list_namespaced_config_map(*arguments, **options)

    # Watches find the type of objects in the documentation of what they call.
    listed.__doc__ = core.list_namespaced_config_map.__doc__
    informer = SharedInformer(listed, "default", label_selector="mine", resync_period=1)
    informer.start()
    try:
        lists.get(timeout=PATIENCE_SECONDS)
        body = {"metadata": {"name": "a", "labels": {"mine": ""}}, "data": {"n": "1"}}
        core.create_namespaced_config_map("default", body)
        for _ in range(3):
            lists.get(timeout=PATIENCE_SECONDS)
        core.patch_namespaced_config_map("a", "default", {"data": {"n": "2"}})
        # Two more lists began after the change, so the cache has been made from one of them.
        for _ in range(lists.qsize() + 2):
            lists.get(timeout=PATIENCE_SECONDS)
        assert informer.cache.get_by_key("default/a").data == {"n": "2"}
    finally:
        informer.stop()


BREAKS = (aiohttp.ClientError, aio.ApiException, OSError)
"""What a client is told by a server that has gone, or is not quite there again."""


async def create_maps(core, written, numbers):
    """Write maps one after the other, again and again where nobody answers."""
    for number in numbers:
        body = {"metadata": {"name": f"w{number}", "labels": {"watched": ""}}}
        while True:
            try:
                await core.create_namespaced_config_map("default", body)
            except aio.ApiException as problem:
                if problem.status == 409:
                    break
                await anyio.sleep(0.2)  # waits: for the server to be back
            except (aiohttp.ClientError, OSError):
                await anyio.sleep(0.2)  # waits: for the server to be back
            else:
                break
        written.append(f"w{number}")


async def follow(core, at, seen, count):
    """Watch from a version, over every break from the last one, until so many have come."""
    while len(seen) < count:
        try:
            async with aio_watch.Watch().stream(
                core.list_namespaced_config_map, "default",
                resource_version=at, timeout_seconds=20, label_selector="watched",
            ) as stream:  # fmt: skip
                async for event in stream:
                    at = event["object"].metadata.resource_version
                    seen.append(event["object"].metadata.name)
                    if len(seen) == count:
                        return
        except BREAKS:
            await anyio.sleep(0.2)  # waits: for the server to be back


async def test_asyncio_watch_misses_nothing_while_the_server_is_ended_and_killed(tmp_path):
    with server_process(tmp_path) as server:
        settings = aio.Configuration()
        await aio_config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
        async with aio.ApiClient(settings) as connection:
            core, written, seen = aio.CoreV1Api(connection), [], []
            async with anyio.create_task_group() as tasks:
                listed = await core.list_namespaced_config_map("default")
                tasks.start_soon(follow, core, listed.metadata.resource_version, seen, 30)
                await create_maps(core, written, range(10))
                tasks.start_soon(create_maps, core, written, range(10, 20))
                await anyio.to_thread.run_sync(server.restart)
                await anyio.to_thread.run_sync(server.restart, signal.SIGKILL)
                await create_maps(core, written, range(20, 30))
        assert len(seen) == len(set(seen)) == 30
        assert set(seen) == set(written)
