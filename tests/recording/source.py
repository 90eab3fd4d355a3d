"""A cluster to record: redra's API server on a port that stays the same over restarts.

Its log is the truth for the tests. `kill` aborts all connections, as the death of a server does.
"""

import json
import random
import socket
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from email.utils import formatdate

import anyio
import httpx
import uvicorn
import yaml

from app.adapters.memory import MemoryStore
from app.api.server.connections import ConnectionBounds, connection_class
from app.domain.log import Revision
from tests.api.serving import CLAIMS, claim, pod, running_app
from tests.patience import PATIENCE_SECONDS
from tests.recording.listening import stop_listening

PATIENT = ConnectionBounds(
    header_seconds_max=PATIENCE_SECONDS,
    send_seconds_max=PATIENCE_SECONDS,
    linger_seconds=PATIENCE_SECONDS,
)
"""Bounds that cut off no slow client: clients and server of these tests share a processor."""

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"


class Source:
    """A server that can be killed and started again; `options` are those of `running_app`.

    Requests for the next page of the nodes are answered with 410 while `expired_pages` is not 0.
    Lists of the past are refused with the code and message of `past`, which counts them. `around`
    makes another application of the one that is served.
    """

    def __init__(self, tasks, folder, tls=None, around=None, **options):
        self.store = MemoryStore()
        self.refusals = {}
        self.silent = frozenset()
        self.expired_pages = 0
        self.past, self.past_count = None, 0
        self.requests = []
        self.port = 0
        self.histories = None
        self._tasks = tasks
        self._folder = folder
        self._options = options
        self._tls = tls
        self._around = around or (lambda app: app)
        self._scope = None
        self._server = None
        self._is_told = False

    async def start(self):
        """Starts to serve; returns when the server accepts connections."""
        await self._tasks.start(self._serve)

    async def kill(self):
        """Ends the server and aborts all connections."""
        self._scope.cancel()
        await self._ended.wait()

    def renew_token(self, old, new):
        """Replaces the valid token from the next start on."""
        known = self._options["credentials"]
        self._options["credentials"] = replace(known, tokens={new: known.tokens[old]})

    async def restart(self, *, is_told=False, tls=None):
        """Kills the server and starts it again; one that is told ends its watches with 410."""
        self._is_told = is_told
        self._tls = tls or self._tls
        await self.kill()
        await self.start()

    def kubeconfig(self, *, port=0, user=None, name="kubeconfig", **cluster):
        """Writes a kubeconfig for this server, or for a proxy at `port`; returns its path."""
        server = {"server": f"http://127.0.0.1:{port or self.port}", **cluster}
        tree = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "prod",
            "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": server}],
            "users": [{"name": "u", "user": user or {}}],
        }
        path = self._folder / name
        path.write_text(yaml.safe_dump(tree))
        return str(path)

    async def events(self):
        """All events about objects, in order."""
        runtime = await self.histories.open("default")
        return [
            event
            for event in await runtime.log.read(runtime.info.id, after=Revision(0), limit=10**6)
            if event.is_about_object
        ]

    @asynccontextmanager
    async def client(self, **headers):
        address = f"http://127.0.0.1:{self.port}"
        async with httpx.AsyncClient(
            base_url=address, headers=headers, timeout=PATIENCE_SECONDS
        ) as client:
            yield client

    def _gate(self, app):
        """The application, with a refusal for each path that ends as `refusals` says.

        It does not answer a path that ends like one in `silent`.
        """

        async def answer(scope, receive, send):
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            send = _dated(send)
            path = scope["path"]
            self.requests.append((scope["method"], path))
            if path.endswith(tuple(self.silent)):
                await anyio.sleep_forever()
            code = next((c for end, c in self.refusals.items() if path.endswith(end)), 0)
            is_next = b"continue=" in scope["query_string"] and path.endswith("/nodes")
            if is_next and self.expired_pages:
                self.expired_pages -= 1
                code = 410
            message = f"refused with {code}"
            if self.past and b"resourceVersionMatch=Exact" in scope["query_string"]:
                self.past_count += 1
                code, message = self.past
            if not code or scope["method"] != "GET":
                await app(scope, receive, send)
                return
            status = {"kind": "Status", "code": code, "message": message}
            body = json.dumps(status).encode()
            head = {"type": "http.response.start", "status": code, "headers": []}
            await send(head)
            await send({"type": "http.response.body", "body": body})

        return answer

    def _abort(self):
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()

    async def _serve(self, *, task_status):
        self._ended = anyio.Event()
        with anyio.CancelScope() as self._scope, socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            self.port = listener.getsockname()[1]
            async with (
                running_app(store=self.store, **self._options) as (app, self.histories),
                anyio.create_task_group() as tasks,
            ):
                config = uvicorn.Config(
                    self._around(self._gate(app)), http=connection_class(PATIENT), lifespan="off",
                    date_header=False,
                    log_config=None, log_level="critical", timeout_graceful_shutdown=1,
                    timeout_keep_alive=int(PATIENCE_SECONDS),
                )  # fmt: skip
                config.load()
                config.ssl = self._tls
                self._server = uvicorn.Server(config)
                self._server.capture_signals = nullcontext
                tasks.start_soon(self._server.serve, [listener])
                while not self._server.started:
                    await anyio.lowlevel.checkpoint()
                task_status.started()
                try:
                    await anyio.sleep_forever()
                finally:
                    # A cancelled server continues to listen, and says to its watchers that it ends.
                    if not self._is_told:
                        self._abort()
                    for listening in self._server.servers:
                        await stop_listening(listening)
                    self._abort()
        self._ended.set()


def _dated(send):
    """Wraps `send` so that each answer has a date from its start, as in the API server."""

    async def dated(message):
        if message["type"] == "http.response.start":
            date = (b"date", formatdate(usegmt=True).encode())
            message = {**message, "headers": [*message.get("headers", ()), date]}
        await send(message)

    return dated


@asynccontextmanager
async def serving_source(folder, **options):
    """Runs a source during the block."""
    async with anyio.create_task_group() as tasks:
        source = Source(tasks, folder, **options)
        await source.start()
        yield source
        tasks.cancel_scope.cancel()


class Writer:
    """A client that writes random pods, claims and nodes, named by a prefix, over HTTP."""

    def __init__(self, source, seed, prefix="o"):
        self._source = source
        self._prefix = prefix
        self._random = random.Random(seed)
        self._names = {PODS: {}, CLAIMS: {}, NODES: {}}
        self._number = 0

    async def write(self, count):
        """Makes `count` writes, one after the other."""
        async with self._source.client() as client:
            for _ in range(count):
                await self._one(client)

    async def _one(self, client):
        path = self._random.choice((PODS, CLAIMS, NODES))
        names = self._names[path]
        act = self._random.random()
        if not names or act < 0.4:
            self._number += 1
            name = f"{self._prefix}{self._number}"
            tree = {PODS: pod, CLAIMS: claim}.get(path, node)(name)
            made = await client.post(path, json=tree)
            assert made.status_code == 201, made.text
            names[name] = 0
        elif act < 0.8:
            name = self._random.choice(sorted(names))
            names[name] += 1
            body = {"metadata": {"labels": {"step": str(names[name])}}}
            headers = {"content-type": "application/merge-patch+json"}
            changed = await client.patch(f"{path}/{name}", json=body, headers=headers)
            assert changed.status_code == 200, changed.text
        else:
            name = self._random.choice(sorted(names))
            del names[name]
            gone = await client.delete(f"{path}/{name}?gracePeriodSeconds=0")
            assert gone.status_code == 200, gone.text


def node(name):
    """A node with a name only."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
