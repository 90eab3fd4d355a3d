"""The API in process, over the memory adapters, and small ways to talk to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import httpx
import msgspec

from app.adapters import schemas
from app.adapters.clock import SystemClock
from app.adapters.head_keys import HeadKey
from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.adapters.telemetry import Telemetry
from app.adapters.uids import RandomUids
from app.adapters.webhooks import HttpsWebhooks
from app.api.application import Application, create_app
from app.api.identity.authentication import Credentials
from app.api.redra.server_parts import Beside
from app.api.server.limits import ApiLimits
from app.bootstrap import fleets
from app.bootstrap.control_planes import ForkPlanes
from app.bootstrap.gallery import incident_files
from app.bootstrap.jobs import running
from app.bootstrap.linting import sources as linting
from app.bootstrap.rules import rules_for
from app.domain.log import Actor, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.objects import webhook_targets as review_targets
from app.domain.objects.write.commands import CreateObject
from app.ports import RuntimePorts
from app.service.histories import Histories
from app.service.runtime import RuntimeBounds
from app.settings import Settings
from tests.patience import PATIENCE_SECONDS

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass
class Server:
    """A running application and a client of it."""

    app: Application
    client: httpx.AsyncClient
    histories: Histories
    tasks: anyio.abc.TaskGroup

    async def get(self, path, code=200, **headers):
        return await self.call("GET", path, None, code, **headers)

    async def post(self, path, tree, code=201, **headers):
        return await self.call("POST", path, tree, code, **headers)

    async def put(self, path, tree, code=200, **headers):
        return await self.call("PUT", path, tree, code, **headers)

    async def patch(self, path, tree, code=200, kind="merge-patch+json"):
        return await self.call("PATCH", path, tree, code, content_type=f"application/{kind}")

    async def delete(self, path, tree=None, code=200):
        return await self.call("DELETE", path, tree, code)

    async def call(self, method, path, tree, code, **headers):
        """The decoded answer, after its code was checked."""
        answer = await self.raw(method, path, tree, **headers)
        assert answer.status_code == code, answer.text
        return answer.json()

    async def raw(self, method, path, tree=None, **headers):
        """The answer as it is."""
        body = tree if isinstance(tree, bytes) or tree is None else msgspec.json.encode(tree)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.request(method, path, content=body, headers=named)

    @asynccontextmanager
    async def watch(self, path, following=None, **headers):
        """A running watch; leaving it is the client going away."""
        following = following or Following()
        raw_path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": raw_path,
            "query_string": query.encode(),
            "headers": [
                (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
            ],
        }
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.app, scope, following.receive, following.send)
            yield following
            following.gone.set()


@dataclass
class Following:
    """The client's end of a streamed answer."""

    status: int = 0
    headers: dict = field(default_factory=dict)
    ended: bool = False
    gone: anyio.Event = field(default_factory=anyio.Event)
    _pending: bytes = b""
    _grown: anyio.Event = field(default_factory=anyio.Event)

    async def receive(self):
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
        else:
            self._pending += message.get("body", b"")
            self.ended = not message.get("more_body", False)
        self._grown.set()
        self._grown = anyio.Event()

    async def line(self):
        """The next line, decoded."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while b"\n" not in self._pending:
                assert not self.ended, self._pending
                await self._grown.wait()
        line, _, self._pending = self._pending.partition(b"\n")
        return msgspec.json.decode(line)

    async def lines(self, count):
        """The next lines as (type, name, resourceVersion)."""
        found = []
        for _ in range(count):
            line = await self.line()
            metadata = line["object"].get("metadata", {})
            found.append((line["type"], metadata.get("name", ""), metadata.get("resourceVersion")))
        return found

    async def changes(self, count):
        """The next lines as (type, name)."""
        return [(kind, name) for kind, name, _ in await self.lines(count)]

    async def end(self):
        """Wait for the end; returns what was left."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while not self.ended:
                await self._grown.wait()
        return self._pending


@asynccontextmanager
async def running_app(
    *,
    limits=None,
    credentials=None,
    authorization=None,
    profile=None,
    queue_max=20_000,
    store=None,
    secrets=None,
    webhooks="",
    clock=None,
    players=None,
    leases=None,
    worker=None,
    around_log=None,
    planes=None,
):
    """The application over a default history with the namespace `default`, and its histories.

    A `store` that was served before is taken up again, as after a restart. `secrets` are the keys
    that protect the values of Secrets. `webhooks` names those that are called. `worker` does the
    work of jobs; without one, a process does. `around_log` puts something around the log. `planes`
    make the control planes of forks.
    """
    targets = review_targets.parse(webhooks)
    profile = profile or profiles.Profile()
    wake_up = MemoryWakeUp()
    log = MemoryLog(store or MemoryStore(), wake_up.grown)
    ports = RuntimePorts(
        log=log if around_log is None else around_log(log),
        wake_up=wake_up,
        clock=clock or SystemClock(),
        uids=RandomUids(),
        webhooks=None if targets.is_empty else HttpsWebhooks(bytes_max=100_000),
    )

    def rules(info):
        chosen = profiles.from_settings(info.settings) if info.settings else profile
        cipher = None if secrets is None else secrets.cipher(info)
        return replace(rules_for(chosen), secrets=cipher, webhooks=targets)

    histories = Histories(
        ports=ports,
        rules=rules,
        bounds=RuntimeBounds(watch_queue_max=queue_max),
        past_views_max=4,
        objects_max=100_000,
        planes=planes or ForkPlanes(Settings()),
    )
    meter = Telemetry()
    async with histories.running():
        if not await histories.all():
            await _begin(histories, profile)
        app = create_app(
            histories,
            schemas=schemas.load,
            meter=meter,
            limits=limits or ApiLimits(),
            credentials=credentials or Credentials(),
            authorization=authorization,
            render_metrics=meter.render,
            beside=Beside(
                players={} if players is None else players,
                sign=HeadKey(bytes(32)).sign,
                incident=incident_files.incident,
                gallery=incident_files,
                lint=partial(linting.lint_log, Settings()),
                worker=worker or partial(running.work, Settings()),
                fleets=fleets.profile_names(),
                **({} if leases is None else {"holders": leases.holders}),
            ),
        )
        yield app, histories


async def _begin(histories, profile):
    runtime = await histories.create("default", settings=profile.settings())
    for name in ("default", "kube-system"):
        await runtime.submit(
            CreateObject(
                key=ObjectKey("", "namespaces", "", name),
                version="v1",
                tree={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            ),
            actor=Actor(user="system:redra"),
        )


@asynccontextmanager
async def serving(**options) -> AsyncIterator[Server]:
    """A server and a client of it, in process."""
    async with running_app(**options) as (app, histories):
        transport = httpx.ASGITransport(app=app)
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://redra") as client,
            anyio.create_task_group() as tasks,
        ):
            yield Server(app=app, client=client, histories=histories, tasks=tasks)
            tasks.cancel_scope.cancel()


def claim(name="c", **metadata):
    """A small claim."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
            }
        },
    }


def config_map(name="m", labels=None, **data):
    """A ConfigMap, the plainest object."""
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    if labels is not None:
        tree["metadata"]["labels"] = labels
    return tree


def pod(name="p", **spec):
    """A pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
