"""Exec plug-ins: what they print is used, and none runs on when nobody waits for it."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from app.adapters.cluster import exec_plugins
from app.adapters.cluster.credentials import ClusterCredentials
from app.domain.errors import InputError
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests.patience import PATIENCE_SECONDS
from tests.virtual_clock import VirtualClock

VERSION = "client.authentication.k8s.io/v1"


def printed(version: str = VERSION, kind: str = "ExecCredential", **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "status": status})


def kubeconfig(folder: Path, script: str, **more: Any) -> str:
    """A kubeconfig whose plug-in runs a script of the shell in the folder."""
    program = folder / "plugin"
    program.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
    program.chmod(0o700)
    plugin = {"apiVersion": VERSION, "command": "./plugin", "interactiveMode": "Never", **more}
    tree = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": plugin}}],
    }
    path = folder / "config"
    path.write_text(json.dumps(tree))
    return str(path)


async def headers(path: str, seconds: float = PATIENCE_SECONDS) -> dict[str, str]:
    credentials = ClusterCredentials(path, "", SystemClock(), seconds=seconds)
    try:
        return (await credentials.login()).headers
    finally:
        await credentials.close()


def runs(number: str) -> bool:
    """Whether a process runs; one that has ended may wait for its parent."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


async def until_there(*paths: Path) -> list[str]:
    with anyio.fail_after(PATIENCE_SECONDS):
        while not all(path.exists() and path.read_text() for path in paths):  # noqa: ASYNC110 - files
            await anyio.sleep(0.01)  # waits: for a process that tells nobody
    return [path.read_text().strip() for path in paths]


async def until_ended(numbers: list[str]) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while any(runs(number) for number in numbers):  # noqa: ASYNC110 - processes
            await anyio.sleep(0.01)  # waits: for processes of another parent


@pytest.mark.parametrize(
    ("script", "more", "token"),
    [
        (f"echo '{printed(token='t')}'", {}, "t"),
        (f"echo '{printed(token='t', expirationTimestamp='2001-01-01T00:00:00Z')}'", {}, "t"),
        (
            f"""head -c 300000 /dev/zero | tr '\\0' x >&2; echo '{printed(token="late")}'""",
            {},
            "late",
        ),
        (f"sleep 600 & echo '{printed(token='t')}'; echo $! > child", {}, "t"),
        (
            f"""echo '{printed(token="T")}' | sed "s/T/$A$1/" """,
            {"args": ["b"], "env": [{"name": "A", "value": "a"}]},
            "ab",
        ),
        (
            f"""echo "$KUBERNETES_EXEC_INFO" > info; echo '{printed(token="i")}'""",
            {"provideClusterInfo": True},
            "i",
        ),
    ],
    ids=["token", "expired", "errors beyond a pipe", "held open", "arguments", "cluster"],
)
async def test_token_of_a_plugin_is_used(
    tmp_path: Path, script: str, more: dict[str, Any], token: str
) -> None:
    try:
        path = kubeconfig(tmp_path, script, **more)
        assert await headers(path) == {"authorization": f"Bearer {token}"}
    finally:
        if (tmp_path / "child").exists():
            os.kill(int((tmp_path / "child").read_text()), 9)
    if "provideClusterInfo" in more:
        spec = json.loads((tmp_path / "info").read_text())["spec"]
        assert spec == {"interactive": False, "cluster": {"server": "https://127.0.0.1:1"}}


START = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("end", "seconds", "tokens"),
    [
        ("2026-01-01T01:00:00Z", [0, 3599, 3600, 3601], ["1", "1", "2", "2"]),
        ("2026-01-01T03:00:00+02:00", [0, 3599, 3600, 3601], ["1", "1", "2", "2"]),
        ("2025-12-31T23:59:59Z", [0, 3599, 3600, 3601], ["1", "1", "1", "1"]),
        (None, [0, 10**6], ["1", "1"]),
    ],
    ids=["an hour", "an hour elsewhere", "passed already", "no end"],
)
async def test_plugin_runs_again_when_its_credential_has_expired(
    tmp_path: Path, end: str | None, seconds: list[int], tokens: list[str]
) -> None:
    """An end that stays is one of a clock that is behind: the second token has it, too."""
    status = {"token": "N"} if end is None else {"token": "N", "expirationTimestamp": end}
    script = f"""echo >> runs; echo '{printed(**status)}' | sed "s/N/$(wc -l < runs)/" """
    start = timestamps.parse(START)
    clock = VirtualClock(start)
    credentials = ClusterCredentials(kubeconfig(tmp_path, script), "", clock, seconds=60)
    used = []
    try:
        for second in seconds:
            clock.advance_to(Instant(start + second * SECOND))
            used.append((await credentials.login()).headers["authorization"])
    finally:
        await credentials.close()
    assert used == [f"Bearer {token}" for token in tokens]


async def test_plugin_that_fails_runs_once_for_all_who_wait(tmp_path: Path) -> None:
    """Each kind of a recording has a watch of its own, and a plug-in may open a browser."""
    path = kubeconfig(tmp_path, "echo >> runs; exit 3")
    credentials = ClusterCredentials(path, "", SystemClock(), seconds=PATIENCE_SECONDS)
    problems: list[str] = []

    async def login() -> None:
        with pytest.raises(InputError) as refused:
            await credentials.login()
        problems.append(str(refused.value))

    for wave in (1, 2):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(login)
        assert (tmp_path / "runs").read_text().count("\n") == wave
        assert len(problems) == 5 * wave
    (problem,) = set(problems)
    assert "its exec plug-in ended with code 3" in problem


async def test_renewed_certificate_is_read_when_the_first_has_expired(tmp_path: Path) -> None:
    clock = VirtualClock(timestamps.parse(START))
    path = kubeconfig(tmp_path, "")

    def renew() -> None:
        issued = CertificateFolder(tmp_path / "pki" / str(clock.now()), now=clock.now())
        own = issued.client("own", user="reader", groups=["g"])
        tree = json.loads(Path(path).read_text())
        user = {"client-certificate": str(own.certificate), "client-key": str(own.key)}
        tree["users"] = [{"name": "u", "user": user}]
        Path(path).write_text(json.dumps(tree))

    renew()
    credentials = ClusterCredentials(path, "", clock, seconds=60)
    try:
        first = await credentials.login()
        assert first.expires is not None
        clock.advance_to(Instant(first.expires - SECOND))
        assert await credentials.login() is first
        clock.advance_to(Instant(first.expires + SECOND))
        with pytest.raises(InputError, match="client certificate has expired at 20"):
            await credentials.login()
        renew()
        # The refusal is repeated for a second, in which nothing is read again.
        clock.advance_to(Instant(clock.now() + 2 * SECOND))
        second = await credentials.login()
        assert second.configuration.cert_file != first.configuration.cert_file
        assert second.expires is not None
        assert second.expires > clock.now()
    finally:
        await credentials.close()


@pytest.mark.parametrize(
    ("script", "more", "match"),
    [
        ("echo hello", {}, "does not print JSON"),
        ("true", {}, "does not print JSON"),
        ("echo '[]'", {}, "prints no ExecCredential"),
        (f"echo '{printed(kind='Pod', token='t')}'", {}, "prints no ExecCredential"),
        (f"echo '{printed('v0', token='t')}'", {}, "prints version v0"),
        (f"echo '{printed()}'", {}, "neither a token nor a certificate"),
        (f"echo '{printed(clientKeyData='k')}'", {}, "a key alone"),
        ("echo no; echo log in first >&2; exit 3", {}, "ended with code 3: log in first"),
        ("kill -9 $$", {}, "ended with code -9"),
        ("yes", {}, "prints more than"),
        (f"echo '{printed(token='t', expirationTimestamp='soon')}'", {}, "no time of expiry"),
        ("true", {"command": "./absent", "installHint": "get it"}, r"cannot be started.*get it"),
        ("true", {"command": "absent-plugin"}, "absent-plugin cannot be started"),
        ("true", {"command": ""}, "no command"),
        ("true", {"interactiveMode": "Always"}, "no terminal"),
    ],
)
async def test_plugin_that_gives_no_credentials_is_one_sentence(
    tmp_path: Path, script: str, more: dict[str, Any], match: str
) -> None:
    with pytest.raises(InputError, match=match) as refused:
        await headers(kubeconfig(tmp_path, script, **more))
    assert "\n" not in str(refused.value)


async def test_plugin_that_does_not_answer_is_one_sentence_and_ends(tmp_path: Path) -> None:
    own = tmp_path / "own"
    with pytest.raises(InputError, match=r"its exec plug-in has not answered for 0\.05 s"):
        await headers(kubeconfig(tmp_path, "echo $$ > own; exec sleep 600"), seconds=0.05)
    assert not own.exists() or not runs(own.read_text().strip())


async def test_plugin_ends_with_all_that_it_started_when_nobody_waits(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "sleep 600 & echo $! > child; echo $$ > own; wait")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(headers, path)
        numbers = await until_there(tmp_path / "own", tmp_path / "child")
        assert all(runs(number) for number in numbers)
        tasks.cancel_scope.cancel()
    await until_ended(numbers)


async def test_certificate_of_a_plugin_stands_in_private_files(tmp_path: Path) -> None:
    plugin = exec_plugins.plugin_of(
        {"apiVersion": VERSION, "command": "/bin/echo", "args": [printed(
            token="t", clientCertificateData="c\n", clientKeyData="k\n",
        )]},
        {}, folder="",
    )  # fmt: skip
    assert await exec_plugins.run(plugin) == exec_plugins.Credential("t", "c\n", "k\n")
