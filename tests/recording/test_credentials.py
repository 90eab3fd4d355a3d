"""Credentials as kubectl has them; a wrong one gives one sentence and leaves no history."""

import base64
import json
import os
import socket
import ssl
import sys

import anyio
import pytest
import yaml

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from app.adapters.cluster.cluster import open_requests
from app.adapters.cluster.requests import RequestBounds
from app.api.identity.authentication import Credentials
from app.domain.errors import InputError, Unauthorized
from app.domain.log import Actor
from app.domain.values.timestamps import SECOND, Instant
from tests.patience import PATIENCE_SECONDS
from tests.recording.recording import check_same, recording_of
from tests.recording.source import serving_source
from tests.virtual_clock import VirtualClock

READER = Actor(user="reader", groups=("system:authenticated",))
LOCKED = Credentials(tokens={"good": READER}, uids={}, anonymous=None)


async def fails(recording, match):
    """Checks that recording ends with one sentence and leaves no history, finished or not."""
    with pytest.raises(InputError, match=match) as caught:
        await recording.once()
    assert "\n" not in str(caught.value).strip()
    assert await recording.store.log.histories() == []
    assert await recording.store.log.unfinished() == []


async def test_token_of_the_kubeconfig_is_sent(tmp_path):
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        recording = recording_of(source, kubeconfig=source.kubeconfig(user={"token": "good"}))
        await recording.once()
        assert not check_same(await source.events(), await recording.log())


async def test_token_of_a_file_is_read_again_when_it_is_refused(tmp_path):
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        token = tmp_path / "token"
        token.write_text("good\n")
        path = source.kubeconfig(user={"tokenFile": str(token)})
        recording = recording_of(source, kubeconfig=path, record_watch_seconds_max=1)
        async with recording.going():
            source.renew_token("good", "better")
            token.write_text("better\r\n")
            await source.restart()
            async with source.client(authorization="Bearer better") as client:
                made = await client.post("/api/v1/nodes", json={
                    "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                })  # fmt: skip
                assert made.status_code == 201, made.text
            await recording.wait_for_version(int(made.json()["metadata"]["resourceVersion"]))
        assert not check_same(await source.events(), await recording.log())


async def test_token_of_a_plugin_that_rotates_amid_a_recording_loses_nothing(tmp_path):
    """The plug-in says that it lasts, and the server takes it no more."""
    version = "client.authentication.k8s.io/v1"
    token = tmp_path / "token"
    token.write_text("good")
    program = tmp_path / "plugin.sh"
    end = '"expirationTimestamp": "2999-01-01T00:00:00Z"'
    status = f'{{"token": "\'$(cat {token})\'", {end}}}'
    program.write_text(
        f'#!/bin/sh\necho \'{{"apiVersion": "{version}", '
        f'"kind": "ExecCredential", "status": {status}}}\'\n'
    )
    program.chmod(0o700)
    plugin = {"apiVersion": version, "command": str(program), "interactiveMode": "Never"}
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        path = source.kubeconfig(user={"exec": plugin})
        recording = recording_of(source, kubeconfig=path, record_watch_seconds_max=1)
        async with recording.going():
            for old, new in (("good", "better"), ("better", "best")):
                source.renew_token(old, new)
                token.write_text(new)
                await source.restart()
                async with source.client(authorization=f"Bearer {new}") as client:
                    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": new}}
                    made = await client.post("/api/v1/nodes", json=node)
                    assert made.status_code == 201, made.text
                await recording.wait_for_version(int(made.json()["metadata"]["resourceVersion"]))
        assert not check_same(await source.events(), await recording.log())


async def test_expired_token_is_one_sentence(tmp_path):
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        path = source.kubeconfig(user={"token": "old"})
        await fails(recording_of(source, kubeconfig=path), "does not accept the credentials")


async def test_watch_goes_on_while_its_token_is_refused_to_others(tmp_path):
    """A server ends no watch because its token has expired; other requests are refused then."""
    ended = anyio.Event()

    async def answer(stream):
        async with stream:
            request = (await stream.receive()).decode()
            if "watch" not in request:
                await stream.send(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")
                return
            await stream.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nfirst\n")
            await ended.wait()
            await stream.send(b"last\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_of(f"http://127.0.0.1:{port}", {"token": "t"})))
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        async with (
            open_requests(str(path), "", SystemClock(), RequestBounds()) as requests,
            requests.stream("/api/v1/pods", watch="1") as lines,
        ):
            assert await anext(lines) == b"first"
            for _ in range(4):
                with pytest.raises(Unauthorized):
                    await requests.get("/api/v1/pods")
            ended.set()
            with anyio.fail_after(PATIENCE_SECONDS):
                assert await anext(lines) == b"last"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("fails_", [False, True])
async def test_plugin_whose_credentials_are_refused_runs_after_pauses_that_grow(tmp_path, fails_):
    """However many watches and comparisons ask: a plug-in may open a browser."""

    async def refuse(stream):
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")

    async def ask():
        for _ in range(5):
            with pytest.raises(InputError if fails_ and runs() > 1 else Unauthorized):
                await requests.get("/api/v1/pods")
        return runs()

    def runs():
        return len((tmp_path / "runs").read_text().split())

    version = "client.authentication.k8s.io/v1"
    status = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t"}})
    end = "[ $(wc -l < runs) -gt 1 ] && exit 3" if fails_ else ""
    program = tmp_path / "plugin.sh"
    program.write_text(f"#!/bin/sh\ncd {tmp_path}\necho run >> runs\n{end}\necho '{status}'\n")
    program.chmod(0o700)
    plugin = {"apiVersion": version, "command": str(program), "interactiveMode": "Never"}
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(kubeconfig_of(f"http://127.0.0.1:{port}", {"exec": plugin})))
    clock = VirtualClock()
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        async with open_requests(str(path), "", clock, RequestBounds()) as requests:
            # Once, and again at the first refusal; then after one second, two and four.
            with pytest.raises(InputError if fails_ else Unauthorized):
                await requests.get("/api/v1/pods")
            assert await ask() == 2
            for seconds, expected in ((1, 3), (1, 3), (1, 4), (3, 4), (1, 5)):
                clock.advance_to(Instant(clock.now() + seconds * SECOND))
                assert await ask() == expected
        tasks.cancel_scope.cancel()


def kubeconfig_of(server, user):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


@pytest.mark.parametrize("token", ["go\nod", "good\x00", "\x7f"])
async def test_token_that_no_header_can_have_is_one_sentence(tmp_path, token):
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        path = source.kubeconfig(user={"token": token})
        await fails(recording_of(source, kubeconfig=path), "its token has a control character")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_exec_plugin_gives_the_token(tmp_path, version):
    api_version = f"client.authentication.k8s.io/{version}"
    program = tmp_path / "plugin.py"
    program.write_text(
        "import json, os\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "status = {'token': os.environ['GIVES']}\n"
        "print(json.dumps({'apiVersion': info['apiVersion'], 'kind': 'ExecCredential', "
        "'status': status}))\n"
    )
    plugin = {
        "apiVersion": api_version,
        "command": sys.executable,
        "args": [str(program)],
        "env": [{"name": "GIVES", "value": "good"}],
        "interactiveMode": "Never",
    }
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        recording = recording_of(source, kubeconfig=source.kubeconfig(user={"exec": plugin}))
        await recording.once()
        assert not check_same(await source.events(), await recording.log())
        plugin["env"][0]["value"] = "bad"
        path = source.kubeconfig(user={"exec": plugin}, name="bad")
        await fails(recording_of(source, kubeconfig=path), "does not accept the credentials")
        plugin["command"] = str(tmp_path / "missing")
        path = source.kubeconfig(user={"exec": plugin}, name="missing-plugin")
        await fails(recording_of(source, kubeconfig=path), "missing")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "there is no such kubeconfig"),
        ("", "kubeconfig"),
        ("[]", "it is not a kubeconfig; name one with --kubeconfig"),
        ("contexts: prod", "it is not a kubeconfig"),
        ("a: [", "it is not YAML: line 1, column 5: .*; name a kubeconfig with"),
        (json.dumps({"apiVersion": "v1", "kind": "Config"}), "current-context"),
        (json.dumps({"current-context": "prod", "contexts": []}), "prod|clusters|contexts"),
    ],
)
async def test_kubeconfig_that_cannot_be_used_is_one_sentence(tmp_path, text, match):
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    await fails(recording_of(None, kubeconfig=str(path)), match)


@pytest.mark.parametrize(
    ("names", "context", "match"),
    [
        (
            ("prod", "test"),
            "none",
            "kubeconfig: there is no context 'none'; choose from prod, test",
        ),
        (("prod",), "prdo", "there is no context 'prdo'; choose from prod"),
        ((), "prod", "there is no context 'prod'; name another kubeconfig with --kubeconfig"),
        ([f"c{n}" for n in range(30)], "prod", "; `kubectl config get-contexts` lists all 30"),
    ],
)
async def test_unknown_context_is_refused_with_the_known_ones(tmp_path, names, context, match):
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in names]
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({"current-context": "prod", "contexts": contexts}))
    await fails(recording_of(None, kubeconfig=str(path), context=context), match)


async def test_of_several_kubeconfigs_the_first_that_has_a_value_counts(tmp_path):
    later = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "bad"}}],
    }
    (tmp_path / "later").write_text(json.dumps(later))
    (tmp_path / "empty").write_text("\n")
    async with serving_source(tmp_path, credentials=LOCKED) as source:
        paths = source.kubeconfig(user={"token": "good"})
        first = yaml.safe_load(await anyio.Path(paths).read_text())
        parts = {
            "contexts-only": {**first, "clusters": [], "users": []},
            "clusters-only": {**first, "contexts": [], "current-context": ""},
        }
        for name, part in parts.items():
            (tmp_path / name).write_text(json.dumps(part))
        names = ["missing", "empty", *parts, "later"]
        together = os.pathsep.join(str(tmp_path / name) for name in names)
        recording = recording_of(source, kubeconfig=together)
        await recording.once()
        assert not check_same(await source.events(), await recording.log())


async def test_context_that_is_not_there_is_one_sentence(tmp_path):
    async with serving_source(tmp_path) as source:
        await fails(recording_of(source, context="elsewhere"), "elsewhere")


async def test_server_that_cannot_be_reached_is_one_sentence(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with serving_source(tmp_path) as source:
            path = source.kubeconfig(port=unused.getsockname()[1])
            await fails(recording_of(source, kubeconfig=path), "127.0.0.1")


async def test_certificates_say_who_is_who(tmp_path):
    """The CA of the kubeconfig counts, and the client's certificate reaches the server."""
    folder = CertificateFolder(tmp_path / "pki", now=SystemClock().now())
    other = CertificateFolder(tmp_path / "other", now=SystemClock().now())
    served, own = folder.server(["127.0.0.1"]), folder.client("own", user="reader", groups=["g"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder.authority))
    context.load_cert_chain(served.certificate, served.key)
    context.verify_mode = ssl.CERT_REQUIRED
    user = {
        "client-certificate-data": base64.b64encode(own.certificate.read_bytes()).decode(),
        "client-key": str(own.key),
    }
    async with serving_source(tmp_path, tls=context) as source:

        def kubeconfig(name, who=user, **cluster):
            server = f"https://127.0.0.1:{source.port}"
            return source.kubeconfig(user=who, name=name, server=server, **cluster)

        right = {"certificate-authority": str(folder.authority)}
        recording = recording_of(source, kubeconfig=kubeconfig("right", **right))
        await recording.once()
        assert not check_same(await source.events(), await recording.log())
        trusting = kubeconfig("trusting", **{"insecure-skip-tls-verify": True})
        await recording_of(source, kubeconfig=trusting).once()
        wrong = kubeconfig("wrong", **{"certificate-authority": str(other.authority)})
        await fails(recording_of(source, kubeconfig=wrong), "not trusted.*certificate")
        await fails(recording_of(source, kubeconfig=kubeconfig("none")), "not trusted.*certificate")
        nobody = kubeconfig("nobody", who={}, **right)
        await fails(recording_of(source, kubeconfig=nobody), "(?i)certificate|reset|disconnected")
