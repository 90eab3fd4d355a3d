"""Exec plug-ins of kubeconfigs: programs that print the credentials of a user.

The protocol is that of `client.authentication.k8s.io`, v1 and v1beta1: the program gets an
ExecCredential in its environment and prints one with a token, a client certificate, or both. A
program that is no longer waited for is ended together with the programs that it started.
"""

import base64
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

import anyio
import msgspec
from anyio import CancelScope
from anyio.abc import ByteReceiveStream, Process
from kubernetes_asyncio.config import ConfigException

from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant, TimestampError

OUTPUT_BYTES_MAX = 1 << 20
"""The longest output of a plug-in, and the longest text of its errors."""

AFTER_END_SECONDS = 1.0
"""The time for which output is read after the end of a plug-in; its programs may hold it open."""

_EXTENSION = "client.authentication.k8s.io/exec"
_CLUSTER_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")


class _EnvironmentVariable(msgspec.Struct):
    """A variable of the environment of a plug-in."""

    name: str
    value: str = ""


class _WrittenPlugin(msgspec.Struct, rename="camel"):
    """The `exec` of a user in a kubeconfig."""

    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[_EnvironmentVariable] | None = None
    interactive_mode: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False


class _PrintedStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The `status` of an ExecCredential."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _PrintedCredential(msgspec.Struct, rename="camel"):
    """The ExecCredential that a plug-in prints."""

    kind: str
    api_version: str = ""
    status: _PrintedStatus = _PrintedStatus()


class Credential(NamedTuple):
    """The credentials in a printed ExecCredential: a token, a certificate with its key, or both.

    `expires` is the time from which on the plug-in has to run again; None if it prints none.
    """

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A plug-in as the kubeconfig names it; `cluster` describes the cluster to the plug-in."""

    api_version: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    interactive_mode: str = ""
    install_hint: str = ""
    cluster: JsonObject | None = None


def plugin_of(written: JsonView, cluster: JsonView, *, folder: str) -> ExecPlugin:
    """The plug-in of a user. Raises ConfigException.

    `cluster` is the cluster of the context; `folder` that of the kubeconfig, to which a path of the
    program is relative.
    """
    try:
        plugin = msgspec.convert(dict(written), _WrittenPlugin)
    except msgspec.ValidationError as problem:
        raise ConfigException(f"its exec plug-in cannot be read: {problem}") from problem
    program = plugin.command
    if not program or not plugin.api_version:
        raise ConfigException("its exec plug-in has no command or no apiVersion")
    if os.sep in program:
        program = str(Path(folder) / Path(program).expanduser())
    return ExecPlugin(
        api_version=plugin.api_version,
        command=(program, *(plugin.args or ())),
        environment={variable.name: variable.value for variable in plugin.env or ()},
        interactive_mode=plugin.interactive_mode,
        install_hint=plugin.install_hint,
        cluster=_cluster_info(cluster, folder) if plugin.provide_cluster_info else None,
    )


async def run(plugin: ExecPlugin) -> Credential:
    """Run the plug-in and return what it prints. Raises ConfigException.

    When the caller stops waiting, the plug-in ends.
    """
    mode = plugin.interactive_mode
    is_interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not is_interactive:
        raise ConfigException(
            "its exec plug-in wants to ask (interactiveMode: Always): no terminal"
        )
    spec: JsonObject = {"interactive": is_interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    variables = {**plugin.environment, "KUBERNETES_EXEC_INFO": json.dumps(info)}
    process = await _started(plugin, variables, is_interactive=is_interactive)
    try:
        output, errors = await _outputs(process)
    except BaseException:
        with CancelScope(shield=True):
            _kill(process, with_group=not is_interactive)
            await process.aclose()
        raise
    await process.aclose()
    if process.returncode != 0:
        words = errors.decode(errors="replace").strip()
        details = f": {words}" if words else ""
        raise ConfigException(f"its exec plug-in ended with code {process.returncode}{details}")
    return _credential(output, plugin.api_version)


async def _started(
    plugin: ExecPlugin, variables: Mapping[str, str], *, is_interactive: bool
) -> Process:
    """The process of a plug-in. Raises ConfigException."""
    try:
        # Cancelling a start half-way would leave a program that cannot be ended any more.
        with CancelScope(shield=True):
            process = await anyio.open_process(
                plugin.command,
                stdin=None if is_interactive else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                env={**os.environ, **variables},
                # A program that asks on the terminal has to stay in its session.
                start_new_session=not is_interactive,
            )
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
        text = f"its exec plug-in {plugin.command[0]} cannot be started: {reason}{hint}"
        raise ConfigException(text) from problem
    return process


async def _outputs(process: Process) -> tuple[bytes, bytes]:
    """Output and errors of a process that ends. Raises ConfigException for endless ones."""
    texts = bytearray(), bytearray()
    left = [process.stdout, process.stderr]

    async def read(stream: ByteReceiveStream, text: bytearray) -> None:
        with suppress(anyio.EndOfStream):
            while len(text) <= OUTPUT_BYTES_MAX:
                text += await stream.receive()
        left.remove(stream)
        if not left or len(text) > OUTPUT_BYTES_MAX:
            complete.set()

    complete = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for stream, text in zip((process.stdout, process.stderr), texts, strict=True):
            assert stream is not None, "it is a pipe"
            tasks.start_soon(read, stream, text)
        tasks.start_soon(_wait_end, process, complete)
        await complete.wait()
        tasks.cancel_scope.cancel()
    if any(len(text) > OUTPUT_BYTES_MAX for text in texts):
        raise ConfigException(f"its exec plug-in prints more than {OUTPUT_BYTES_MAX} bytes")
    await process.wait()
    return bytes(texts[0]), bytes(texts[1])


async def _wait_end(process: Process, complete: anyio.Event) -> None:
    await process.wait()
    with anyio.move_on_after(AFTER_END_SECONDS):
        await complete.wait()
    complete.set()


def _kill(process: Process, *, with_group: bool) -> None:
    with suppress(ProcessLookupError):
        if with_group:
            # The group of a new session has the number of its first process.
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _credential(output: bytes, api_version: str) -> Credential:
    """The credential that was printed. Raises ConfigException."""
    try:
        printed = msgspec.json.decode(output, type=_PrintedCredential)
    except msgspec.ValidationError as problem:
        raise ConfigException(f"its exec plug-in prints no ExecCredential: {problem}") from problem
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ConfigException(f"its exec plug-in does not print JSON: {problem}") from problem
    if printed.kind != "ExecCredential":
        raise ConfigException(f"its exec plug-in prints no ExecCredential but a {printed.kind}")
    if printed.api_version != api_version:
        version = printed.api_version
        raise ConfigException(f"its exec plug-in prints version {version}, not {api_version}")
    status = printed.status
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise ConfigException("its exec plug-in prints a certificate without key, or a key alone")
    if not status.token and not certificate:
        raise ConfigException("its exec plug-in prints neither a token nor a certificate")
    written = status.expiration_timestamp
    try:
        expires = timestamps.parse(written) if written else None
    except TimestampError as problem:
        raise ConfigException(f"its exec plug-in prints no time of expiry: {problem}") from problem
    return Credential(status.token, certificate, key, expires)


def _cluster_info(cluster: JsonView, folder: str) -> JsonObject:
    """The description of the cluster that a plug-in with `provideClusterInfo` gets."""
    info: JsonObject = {name: cluster[name] for name in _CLUSTER_FIELDS if name in cluster}
    data, path = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    if not data and path:
        data = base64.b64encode((Path(folder) / path).read_bytes()).decode()
    if data:
        info["certificate-authority-data"] = data
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == _EXTENSION:
            info["config"] = extension.get("extension")
    return info
