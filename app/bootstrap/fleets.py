"""Publishing of fleets to a history or a running server: profiles from files, writes in order.

The profiles that come with the program are in `app/domain/devices/profiles`; any other file of the
same form may be given by its path.
"""

import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread

from app.analysis.fleet import generation
from app.analysis.fleet import incidents as fleet_incidents
from app.analysis.fleet.generation import Fleet
from app.analysis.fleet.incidents import FleetIncident, Present
from app.bootstrap.histories import open_histories
from app.bootstrap.history_settings import check_new, history_settings
from app.bootstrap.manifests import read_documents
from app.bootstrap.stores import open_store
from app.domain.errors import AlreadyExists, BadRequest, InputError, NotFound, ServerUnreachable
from app.domain.log import Actor, ObjectKey
from app.domain.objects import registry
from app.domain.objects.schema import encode_yaml
from app.domain.objects.write.commands import (
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    UpdateObject,
)
from app.domain.values import api_groups, api_resources, counts
from app.domain.values.json_tree import JsonObject
from app.service.runtime import HistoryRuntime
from app.settings import Settings

ACTOR = Actor(user="redra:fleet", groups=("system:masters",), agent="redra-fleet")

TOGETHER_MAX = 100
"""The most objects that are written in one append."""

REQUEST_SECONDS = 30.0

_PROFILES = resources.files("app") / "domain" / "devices" / "profiles"

Say = Callable[[str], None]


class FleetTarget(Protocol):
    """The target to which a fleet is published."""

    async def present(self) -> Present:
        """The nodes and slices that exist."""
        ...

    async def send(self, commands: Sequence[Command]) -> None:
        """Write; objects that exist already are left unchanged."""
        ...


def profile_names() -> list[str]:
    """The profiles that come with the program."""
    return sorted(item.name.removesuffix(".yaml") for item in _PROFILES.iterdir())


def read_profile(name: str) -> JsonObject:
    """A profile by its name or by the path of a file. Raises InputError."""
    if name in profile_names():
        with resources.as_file(_PROFILES / f"{name}.yaml") as file:
            return _document(file)
    path = Path(name)
    if not path.is_file():
        raise InputError(
            f"there is no profile {name!r}",
            place="--profile",
            cure=f"choose from {', '.join(profile_names())}, or name a file",
        )
    return _document(path)


def read_plan(path: Path) -> JsonObject:
    """A plan of incidents. Raises InputError."""
    if not path.is_file():
        raise InputError(f"{path} cannot be read", place="--plan")
    return _document(path)


def manifests_text(whole: Fleet) -> str:
    """The fleet as YAML documents."""
    return encode_yaml.encode_yaml_documents(generation.manifests(whole))


@asynccontextmanager
async def history_target(settings: Settings, name: str) -> AsyncIterator[FleetTarget]:
    """The target for a history, made when it is missing. Raises InputError for a recording."""
    check_new(name, settings)
    async with (
        open_store(settings, make=True) as store,
        open_histories(store, settings) as histories,
    ):
        runtime = await histories.open_or_create(name, settings=history_settings(settings))
        if runtime.info.is_recorded:
            raise InputError(
                f"the history {name!r} is a recording and cannot be changed",
                place="--history",
                cure="name another one; a missing history is created",
            )
        yield HistoryTarget(runtime)


async def publish(target: FleetTarget, whole: Fleet, say: Say) -> None:
    """Make the nodes and classes that are missing, then update every pool."""
    before = await target.present()
    nodes = [
        generation.node_command(n) for n in whole.nodes if n["metadata"]["name"] not in before.nodes
    ]
    await target.send([generation.class_command(tree) for tree in whole.classes])
    await target.send(nodes)
    present = await target.present()
    commands: list[Command] = []
    for pool in whole.pools:
        commands += generation.publish(pool, present.slices_of(pool), present.uid_of)
    await target.send(commands)
    devices = sum(len(pool.devices) for pool in whole.pools)
    say(
        f"fleet {whole.profile}: {counts.of(len(whole.nodes), 'node')}, "
        f"{counts.of(len(whole.pools), 'pool')}, "
        f"{counts.of(devices, 'device')}; {counts.of(len(nodes), 'node')} made, "
        f"{counts.of(len(commands), 'slice')} written"
    )


async def let_happen(
    target: FleetTarget, whole: Fleet, incidents: Sequence[FleetIncident], speed: float, say: Say
) -> None:
    """Write each incident at its time, with `speed` seconds of the plan in one real second."""
    start = anyio.current_time()
    for incident in incidents:
        await anyio.sleep_until(start + incident.at_seconds / speed)
        try:
            await target.send(fleet_incidents.commands(incident, whole, await target.present()))
            await target.send(fleet_incidents.follow_up(incident, whole, await target.present()))
        except NotFound:
            say(f"{incident.at_seconds:.0f} s: {incident.text}: the object no longer exists")
            continue
        say(f"{incident.at_seconds:.0f} s: {incident.text}")


class HistoryTarget:
    """A target: a history that is open in this process."""

    def __init__(self, runtime: HistoryRuntime) -> None:
        self._runtime = runtime

    async def present(self) -> Present:
        """The nodes and slices at the head."""
        objects = self._runtime.views.objects
        nodes = {
            key.name: tree
            for key in objects.keys(*api_resources.NODES)
            if (tree := objects.get(key)) is not None
        }
        slices = tuple(
            tree
            for key in objects.keys(*api_resources.RESOURCE_SLICES)
            if (tree := objects.get(key)) is not None
        )
        return Present(nodes=nodes, slices=slices)

    async def send(self, commands: Sequence[Command]) -> None:
        """Append in portions; the commands of a portion with an existing object are sent singly."""
        for start in range(0, len(commands), TOGETHER_MAX):
            portion = commands[start : start + TOGETHER_MAX]
            try:
                await self._runtime.submit_all(portion, actor=ACTOR)
            except AlreadyExists:
                for command in portion:
                    await self._one(command)

    async def _one(self, command: Command) -> None:
        try:
            await self._runtime.submit(command, actor=ACTOR)
        except AlreadyExists:
            return  # the object is left unchanged


class ServerTarget:
    """A target: a running server, over its API."""

    def __init__(self, url: str, history: str = "") -> None:
        """`history` is a history of the server, whose URL may also end with `/h/HISTORY`.

        Raises InputError for a text that is no URL, and for two different histories.
        """
        if not url.startswith(("http://", "https://")):
            raise InputError(f"{url!r} is not a URL", place="--server")
        self._url = url.rstrip("/")
        if not history:
            return
        _, is_in_url, named = self._url.partition("/h/")
        if is_in_url and named != history:
            raise InputError(
                f"the history is named twice, {named!r} and {history!r}", cure="name it once"
            )
        if not is_in_url:
            self._url += f"/h/{history}"

    async def present(self) -> Present:
        """The nodes and slices that the server lists."""
        nodes = await self._call("GET", _path(ObjectKey(*api_resources.NODES, "", ""), "v1"))
        slices = await self._call(
            "GET", _path(ObjectKey(*api_resources.RESOURCE_SLICES, "", ""), "v1")
        )
        head = {"apiVersion": f"{api_groups.RESOURCE}/v1", "kind": "ResourceSlice"}
        return Present(
            nodes={item["metadata"]["name"]: item for item in nodes["items"]},
            slices=tuple({**head, **item} for item in slices["items"]),
        )

    async def send(self, commands: Sequence[Command]) -> None:
        """Send one request for each write."""
        for command in commands:
            match command:
                case CreateObject():
                    path = _path(command.key._replace(name=""), command.version)
                    try:
                        await self._call("POST", path, command.tree)
                    except AlreadyExists:
                        continue
                case UpdateObject():
                    await self._call("PUT", _path(command.key, command.version), command.tree)
                case PatchObject():
                    await self._call(
                        "PATCH",
                        _path(command.key, command.version),
                        command.body,
                        kind=str(command.type),
                    )
                case DeleteObject():
                    await self._call("DELETE", _path(command.key, command.version))
                case _:
                    raise AssertionError(f"a fleet does not send {type(command).__name__}")

    async def _call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> Any:
        return await anyio.to_thread.run_sync(self._request, method, path, body, kind)

    def _request(self, method: str, path: str, body: object, kind: str) -> Any:
        request = urllib.request.Request(  # noqa: S310 - http or https, checked on entry
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": kind, "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:  # noqa: S310
                return json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            text = _message(refusal.read())
            if refusal.code == 409 and method == "POST":
                raise AlreadyExists(text) from refusal
            if refusal.code == 404:
                raise NotFound(text) from refusal
            raise BadRequest(f"{method} {path} was refused: {text}") from refusal
        except urllib.error.URLError as problem:
            raise ServerUnreachable(
                f"{self._url}: {_reason(problem)}; for a server with TLS, name its folder with "
                "--data, and the history"
            ) from problem


def _path(key: ObjectKey, version: str) -> str:
    kind = registry.find(key.group, key.resource)
    assert kind is not None, key
    assert not kind.namespaced, "a fleet is made of cluster-scoped objects"
    prefix = f"/apis/{key.group}" if key.group else "/api"
    path = f"{prefix}/{version}/{key.resource}"
    return f"{path}/{key.name}" if key.name else path


def _reason(problem: urllib.error.URLError) -> str:
    """The words of the system about a connection that failed."""
    reason = problem.reason
    return reason.strerror or str(reason) if isinstance(reason, OSError) else str(reason)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")[:500]


def _document(path: Path) -> JsonObject:
    documents = read_documents(path)
    if len(documents) != 1 or not isinstance(documents[0][1], dict):
        raise InputError("it must hold one mapping", place=str(path))
    tree: JsonObject = documents[0][1]
    return tree
