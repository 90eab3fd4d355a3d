"""An HTTPS server of admission webhooks on loopback, and configurations that name it."""

import base64
import json
import ssl
from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.streams.tls import TLSListener

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock

GROUP = "/apis/admissionregistration.k8s.io/v1"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations"
SERVICE = "hooks/checker"
WRITES = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Hooks:
    """A running server: `answers` by path; what was asked, in order, is in `requests`."""

    port: int
    authority: str
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> str:
        """The setting with which its webhooks are called."""
        return f"https://127.0.0.1:{self.port}/, {SERVICE}=https://127.0.0.1:{self.port}"

    def names(self, path: str) -> list[str]:
        """The objects about which a path was asked."""
        return [asked["request"].get("name", "") for at, asked in self.requests if at == path]

    def webhook(self, path: str, name: str = "", **more: Any) -> dict[str, Any]:
        """A webhook that is asked about ConfigMaps at a path."""
        client: dict[str, Any] = {"url": f"https://127.0.0.1:{self.port}{path}"}
        if more.pop("by_service", False):
            client = {"service": {"namespace": "hooks", "name": "checker", "path": path}}
        client["caBundle"] = self.authority
        return {
            "name": name or f"{path.strip('/')}.example.com",
            "admissionReviewVersions": ["v1"],
            "clientConfig": client,
            "rules": [WRITES],
            "sideEffects": "None",
            "timeoutSeconds": 5,
            **more,
        }


def configuration(kind: str, *webhooks: dict[str, Any], name: str = "a") -> dict[str, Any]:
    """A configuration; `kind` is Mutating or Validating."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }


def said(asked: dict[str, Any], *, allowed: bool = True, **more: Any) -> dict[str, Any]:
    """An AdmissionReview with a response."""
    response = {"uid": asked["request"]["uid"], "allowed": allowed, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def patching(*operations: dict[str, Any]) -> Answer:
    """An answer that changes the object."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda asked: said(asked, patch=text, patchType="JSONPatch")


def label(key: str, value: str) -> dict[str, Any]:
    """An operation that sets all labels to one."""
    return {"op": "add", "path": "/metadata/labels", "value": {key: value}}


@asynccontextmanager
async def hooks_running(folder):
    """The server, until leaving."""
    made = CertificateFolder(folder, now=SystemClock().now())
    leaf = made.server(("127.0.0.1", "checker.hooks.svc"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(leaf.certificate, leaf.key)
    authority = base64.b64encode(made.authority.read_bytes()).decode()
    listeners = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listeners.extra(anyio.abc.SocketAttribute.local_port)
    found = Hooks(port=port, authority=authority)

    async def handle(stream):
        async with stream:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
            head, _, body = data.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            length = next(int(each[15:]) for each in lines if each.startswith("Content-Length:"))
            while len(body) < length:
                body += await stream.receive()
            found.lines.append(lines[0])
            path = lines[0].split()[1].partition("?")[0]
            asked = json.loads(body)
            found.requests.append((path, asked))
            answer = found.answers[path](asked)
            if hasattr(answer, "__await__"):
                answer = await answer
            code, text = answer if isinstance(answer, tuple) else (200, json.dumps(answer))
            await stream.send(
                f"HTTP/1.1 {code} X\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
            )

    async def serve(stream):
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream, ConnectionError):
            await handle(stream)

    async with listeners, anyio.create_task_group() as tasks:
        tls = TLSListener(listeners, ssl_context=context, standard_compatible=False)
        tasks.start_soon(tls.serve, serve)
        yield found
        tasks.cancel_scope.cancel()
