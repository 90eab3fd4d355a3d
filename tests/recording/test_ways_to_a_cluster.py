"""Proxies, expired certificates, credentials that expire: recorded all the same, or one sentence.

What kubectl does with each is the reference: `proxy-url` counts before HTTPS_PROXY, NO_PROXY names
hosts without a proxy, and a proxy is never asked for hosts of this machine unless the kubeconfig
names it.
"""

import asyncio
import json
import ssl
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import httpx
import pytest

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from app.api.identity.authentication import Credentials
from app.domain.errors import ClusterUnreachable, InputError
from app.domain.log import Actor
from app.domain.values.timestamps import SECOND, Instant
from tests.patience import PATIENCE_SECONDS
from tests.recording.recording import check_same, recording_of
from tests.recording.source import serving_source

DAY = 86_400 * SECOND
READER = Actor(user="reader", groups=("system:authenticated",))
LOCKED = Credentials(tokens={"good": READER}, uids={}, anonymous=None)
DOES_NOT_EXIST = "cluster.example.com:6443"


@dataclass
class HttpProxy:
    """A proxy that serves CONNECT and whole addresses, and what it was asked for."""

    lines: list = field(default_factory=list)
    refusal: str = ""
    target: int = 0
    port: int = 0

    async def serve(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        line = head.split(b"\r\n")[0].decode()
        self.lines.append(line)
        if self.refusal:
            writer.write(f"HTTP/1.1 {self.refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        if line.startswith("CONNECT "):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            up_writer.write(head)
        async with asyncio.TaskGroup() as ways:
            ways.create_task(carry(reader, up_writer))
            ways.create_task(carry(up_reader, writer))


@dataclass
class SocksProxy:
    """A proxy of SOCKS 5, and the servers that it was asked for; `user` must be given if set."""

    servers: list = field(default_factory=list)
    user: str = ""
    answer: int = 0
    target: int = 0
    port: int = 0

    async def serve(self, reader, writer):
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        method = 2 if self.user else 0
        writer.write(bytes([5, method if method in offered else 255]))
        if self.user:
            _, size = await reader.readexactly(2)
            name = await reader.readexactly(size)
            password = await reader.readexactly((await reader.readexactly(1))[0])
            is_right = f"{name.decode()}:{password.decode()}" == self.user
            writer.write(bytes([1, not is_right]))
        *_, kind = await reader.readexactly(4)
        assert kind == 3, "the proxy looks up the name"
        host = await reader.readexactly((await reader.readexactly(1))[0])
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.servers.append(f"{host.decode()}:{port}")
        writer.write(bytes([5, self.answer, 0, 1]) + bytes(6))
        if self.answer:
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        async with asyncio.TaskGroup() as ways:
            ways.create_task(carry(reader, up_writer))
            ways.create_task(carry(up_reader, writer))


async def carry(reader, writer):
    try:
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    except OSError:
        pass
    writer.close()


@asynccontextmanager
async def proxy_to(port, kind=HttpProxy, **fields):
    proxy = kind(target=port, **fields)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


@pytest.fixture
def environment(monkeypatch):
    """The environment without proxies."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def fails(recording, match):
    """Checks that recording ends with one sentence, soon, and leaves no history."""
    with anyio.fail_after(30), pytest.raises((InputError, ClusterUnreachable), match=match) as ends:
        await recording.once()
    assert "\n" not in str(ends.value).strip()
    assert await recording.store.log.histories() == []


class Pki:
    """Certificates of one authority, and a server that asks for those of its clients."""

    def __init__(self, folder, *, days_ago=0):
        now = Instant(SystemClock().now() - days_ago * DAY)
        self.issued = CertificateFolder(folder, now=now)

    def tls(self, *hosts, clients=None):
        served = self.issued.server(hosts)
        authority = (clients or self).issued.authority
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority))
        context.load_cert_chain(served.certificate, served.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def user(self, name="own"):
        own = self.issued.client(name, user="reader", groups=["g"])
        return {"client-certificate": str(own.certificate), "client-key": str(own.key)}

    @property
    def trusted(self):
        return {"certificate-authority": str(self.issued.authority)}


async def test_proxy_of_the_kubeconfig_carries_the_encrypted_connection(tmp_path, environment):
    pki = Pki(tmp_path / "pki")
    async with (
        serving_source(tmp_path, tls=pki.tls("cluster.example.com")) as source,
        proxy_to(source.port) as proxy,
    ):
        place = f"https://{DOES_NOT_EXIST}"
        way = {"proxy-url": f"http://127.0.0.1:{proxy.port}", "server": place}
        path = source.kubeconfig(user=pki.user(), **pki.trusted, **way)
        recording = recording_of(source, kubeconfig=path)
        await recording.once()
        assert not check_same(await source.events(), await recording.log())
        assert set(proxy.lines) == {f"CONNECT {DOES_NOT_EXIST} HTTP/1.1"}
        # What the proxy hides is checked as without one.
        other = way | {"server": "https://other.example.com:6443"}
        path = source.kubeconfig(user=pki.user(), **pki.trusted, **other)
        await fails(recording_of(source, kubeconfig=path), "not trusted.*other.example.com")
        named = other | {"tls-server-name": "cluster.example.com"}
        path = source.kubeconfig(user=pki.user(), **pki.trusted, **named)
        await recording_of(source, kubeconfig=path).once()


@pytest.mark.parametrize(
    ("scheme", "user"), [("socks5", ""), ("socks5h", ""), ("socks5", "me:secret")]
)
async def test_socks_proxy_carries_the_encrypted_connection(tmp_path, environment, scheme, user):
    pki = Pki(tmp_path / "pki")
    async with (
        serving_source(tmp_path, tls=pki.tls("cluster.example.com")) as source,
        proxy_to(source.port, SocksProxy, user=user) as proxy,
    ):
        at = f"{user}@" if user else ""
        way = {"proxy-url": f"{scheme}://{at}127.0.0.1:{proxy.port}"}

        def recording(server, **more):
            place = {"server": f"https://{server}"}
            path = source.kubeconfig(user=pki.user(), **pki.trusted, **way, **place, **more)
            return recording_of(source, kubeconfig=path)

        through = recording(DOES_NOT_EXIST)
        await through.once()
        assert not check_same(await source.events(), await through.log())
        assert set(proxy.servers) == {DOES_NOT_EXIST}
        # What the proxy hides is checked as without one.
        await fails(recording("other.example.com:6443"), "not trusted.*other.example.com")
        named = recording("other.example.com:6443", **{"tls-server-name": "cluster.example.com"})
        await fails(named, "a SOCKS proxy and tls-server-name cannot be used together")


async def test_socks_proxy_that_refuses_is_named(tmp_path, environment):
    async with (
        serving_source(tmp_path) as source,
        proxy_to(source.port, SocksProxy, answer=2) as proxy,
    ):
        way = {"proxy-url": f"socks5://127.0.0.1:{proxy.port}"}
        path = source.kubeconfig(server=f"https://{DOES_NOT_EXIST}", **way)
        await fails(recording_of(source, kubeconfig=path), "the proxy refuses the connection to")


@pytest.mark.parametrize(
    ("refusal", "match"),
    [
        ("407 Proxy Authentication Required", "the proxy 127.0.0.1:[0-9]+ refuses.*407"),
        ("403 Forbidden", "the proxy 127.0.0.1:[0-9]+ refuses.*403"),
    ],
)
async def test_proxy_that_refuses_is_named(tmp_path, environment, refusal, match):
    async with serving_source(tmp_path) as source, proxy_to(source.port) as proxy:
        proxy.refusal = refusal
        path = source.kubeconfig(
            server=f"https://{DOES_NOT_EXIST}", **{"proxy-url": f"http://127.0.0.1:{proxy.port}"}
        )
        await fails(recording_of(source, kubeconfig=path), match)


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("http://127.0.0.1:1", "no connection to the proxy 127.0.0.1:1: Connection refused"),
        ("socks5://127.0.0.1:1", "no connection to the proxy: .*127.0.0.1:1"),
        ("socks5://127.0.0.1", "the proxy socks5://127.0.0.1 .* http"),
        ("socks4://127.0.0.1:1", "the proxy socks4://127.0.0.1:1 .* http"),
        ("127.0.0.1:1", "the proxy 127.0.0.1:1 .* http"),
        ("http://", "the proxy http:// "),
    ],
)
async def test_proxy_that_cannot_be_used_is_one_sentence(tmp_path, environment, url, match):
    async with serving_source(tmp_path) as source:
        path = source.kubeconfig(server=f"https://{DOES_NOT_EXIST}", **{"proxy-url": url})
        await fails(recording_of(source, kubeconfig=path), match)


async def test_proxy_of_the_environment_is_used_but_for_hosts_without_one(tmp_path, environment):
    pki = Pki(tmp_path / "pki")
    async with (
        serving_source(tmp_path, tls=pki.tls("cluster.example.com", "127.0.0.1")) as source,
        proxy_to(source.port) as proxy,
    ):
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")

        def kubeconfig(server):
            return source.kubeconfig(user=pki.user(), **pki.trusted, server=server)

        far, near = f"https://{DOES_NOT_EXIST}", f"https://127.0.0.1:{source.port}"
        await recording_of(source, kubeconfig=kubeconfig(far)).once()
        assert proxy.lines
        proxy.lines.clear()
        await recording_of(source, kubeconfig=kubeconfig(near)).once()
        assert not proxy.lines, "hosts of this machine have no proxy"
        environment.setenv("NO_PROXY", "example.com")
        await fails(recording_of(source, kubeconfig=kubeconfig(far)), "no connection to cluster")
        assert not proxy.lines


async def test_expired_certificates_are_one_sentence(tmp_path):
    old, pki = Pki(tmp_path / "pki", days_ago=400), Pki(tmp_path / "pki")
    expired_user = old.user("old")
    expired_server = old.tls("127.0.0.1")
    async with serving_source(tmp_path, tls=expired_server) as source:
        server = f"https://127.0.0.1:{source.port}"
        path = source.kubeconfig(user=pki.user(), **pki.trusted, server=server)
        await fails(recording_of(source, kubeconfig=path), "not trusted.*expired")
    async with serving_source(tmp_path, tls=pki.tls("127.0.0.1")) as source:
        server = f"https://127.0.0.1:{source.port}"
        path = source.kubeconfig(user=expired_user, **pki.trusted, server=server)
        await fails(recording_of(source, kubeconfig=path), "client certificate has expired at 20")


def trusting(pki, user):
    """A client of the server of a PKI, as a user whose certificate the server takes."""
    tls = ssl.create_default_context(cafile=str(pki.issued.authority))
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return tls


async def make_node(source, tls, name):
    """Makes a node over TLS; its version."""
    address = f"https://127.0.0.1:{source.port}"
    async with httpx.AsyncClient(base_url=address, verify=tls, timeout=PATIENCE_SECONDS) as client:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        made = await client.post("/api/v1/nodes", json=node)
        assert made.status_code == 201, made.text
    return int(made.json()["metadata"]["resourceVersion"])


async def noted(recording, words):
    """Waits until the recorder has said something with these words."""
    await recording.wait_for(lambda _: any(words in each for each in recording.notes))


async def test_client_certificate_that_expires_amid_a_recording_is_named_and_renewed(tmp_path):
    pki = Pki(tmp_path / "pki")
    async with serving_source(tmp_path, tls=pki.tls("127.0.0.1")) as source:
        other = trusting(pki, pki.user("other"))
        server = {"server": f"https://127.0.0.1:{source.port}"}
        # Issued so long ago that enough seconds are left for the first node on a slow machine.
        short = Pki(tmp_path / "pki", days_ago=365 - 20 * SECOND / DAY)
        path = source.kubeconfig(user=short.user(), **pki.trusted, **server)
        recording = recording_of(source, kubeconfig=path, record_watch_seconds_max=1)
        async with recording.going():
            await recording.wait_for_version(await make_node(source, other, "before"))
            await noted(recording, "certificate has expired at 20")
            assert "renew it in its file, which is read again" in recording.notes[-1]
            await make_node(source, other, "meanwhile")
            pki.user()
            await recording.wait_for_version(await make_node(source, other, "after"))
            await noted(recording, "prod: all kinds are recorded again")
        assert not check_same(await source.events(), await recording.log())


@pytest.mark.parametrize("renewed", ["the server's", "the clients'"])
async def test_recording_goes_on_when_an_authority_is_renewed_in_its_file(tmp_path, renewed):
    old, new = Pki(tmp_path / "pki"), Pki(tmp_path / "new")
    of_server, of_clients = (new, old) if renewed == "the server's" else (old, new)
    async with serving_source(tmp_path, tls=old.tls("127.0.0.1")) as source:
        server = {"server": f"https://127.0.0.1:{source.port}"}
        path = source.kubeconfig(user=old.user(), **old.trusted, **server)
        recording = recording_of(source, kubeconfig=path, record_watch_seconds_max=1)
        async with recording.going():
            before = await make_node(source, trusting(old, old.user("other")), "before")
            await recording.wait_for_version(before)
            await source.restart(tls=of_server.tls("127.0.0.1", clients=of_clients))
            refusal = "not trusted" if of_server is new else "Server disconnected"
            await noted(recording, refusal)
            source.kubeconfig(user=of_clients.user(), **of_server.trusted, **server)
            other = trusting(of_server, of_clients.user("other"))
            await recording.wait_for_version(await make_node(source, other, "after"))
        assert not check_same(await source.events(), await recording.log())


PLUGIN = """
import json, os, sys
place = sys.argv[1]
with open(place) as file:
    status = json.load(file)
with open(place + ".runs", "a") as file:
    file.write("x")
print(json.dumps({
    "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status,
}))
"""


def plugin_of(folder, **status):
    """An exec plug-in that gives what stands in a file, and that file."""
    (folder / "plugin.py").write_text(PLUGIN)
    place = folder / "credential.json"
    place.write_text(json.dumps(status))
    arguments = [str(folder / "plugin.py"), str(place)]
    return place, {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": arguments,
            "interactiveMode": "Never",
        }
    }


async def test_certificate_of_a_plugin_alone_is_enough(tmp_path):
    pki = Pki(tmp_path / "pki")
    own = pki.user()
    status = {
        "clientCertificateData": await anyio.Path(own["client-certificate"]).read_text(),
        "clientKeyData": await anyio.Path(own["client-key"]).read_text(),
    }
    _, user = plugin_of(tmp_path, **status)
    async with serving_source(tmp_path, tls=pki.tls("127.0.0.1")) as source:
        server = f"https://127.0.0.1:{source.port}"
        path = source.kubeconfig(user=user, **pki.trusted, server=server)
        recording = recording_of(source, kubeconfig=path)
        await recording.once()
        assert not check_same(await source.events(), await recording.log())


async def test_plugin_runs_again_when_its_credential_is_refused(tmp_path):
    expires = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    place, user = plugin_of(tmp_path, token="good", expirationTimestamp=expires)
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        path = source.kubeconfig(user=user)
        recording = recording_of(source, kubeconfig=path, record_watch_seconds_max=1)
        async with recording.going():
            source.renew_token("good", "better")
            place.write_text(json.dumps({"token": "better"}))
            await source.restart()
            async with source.client(authorization="Bearer better") as client:
                made = await client.post("/api/v1/nodes", json={
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                })  # fmt: skip
                assert made.status_code == 201, made.text
            await recording.wait_for_version(int(made.json()["metadata"]["resourceVersion"]))
        assert not check_same(await source.events(), await recording.log())
    # One run at the beginning, one after the refusal, however many watches were refused.
    assert (tmp_path / "credential.json.runs").read_text() == "xx"
