"""The histories of a plan as bundles: stored ones, files, and fleets, which are made here."""

from pathlib import Path

from app.adapters.history.formats.bundle import BundleWriter
from app.adapters.private_folders import PrivateFolder
from app.adapters.uids import DerivedUids
from app.analysis import edits
from app.analysis.fleet import generation
from app.analysis.sweep.plans import SweepFleet, SweepPlan
from app.bootstrap import fleets, manifests
from app.bootstrap.history_settings import history_settings
from app.bootstrap.recordings import PROGRAM
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store, find_history, find_inside, memory_store, open_store
from app.domain.errors import InputError, Rejected
from app.domain.log import ObjectKey, chain
from app.domain.objects import profile as profiles
from app.domain.objects.write.commands import Command, CreateObject
from app.domain.values import timestamps
from app.domain.values.fields import meta
from app.domain.values.timestamps import SECOND, Instant
from app.service import exporting
from app.service.replays.reconciling import ReplayTimeline
from app.settings import Settings

MANAGER = "redra-sweep"
START = timestamps.parse("2026-01-01T00:00:00Z")
APART = SECOND // 10
"""Microseconds between the objects of a fleet's manifests."""

_WORKLOADS = frozenset(("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"))
"""Kinds whose controllers make pods. They do not run in a cell, where pods are inputs."""


async def bundles(plan: SweepPlan, settings: Settings, folder: Path) -> dict[str, bytes]:
    """The bundles of a plan's histories and fleets, by name. Raises InputError.

    Files are relative to `folder`.
    """
    made: dict[str, bytes] = {}
    stored = [name for name in plan.histories if not (folder / name).exists()]
    for name in plan.histories:
        if name not in stored:
            made[name] = await _file(folder / name, settings)
    if stored:
        async with open_store(settings) as store:
            for name in stored:
                history, _, moment = name.partition("@")
                made[name] = await _bundle(store, history, moment)
    for fleet in plan.fleets:
        made[fleet.name] = await _fleet(fleet, settings, folder)
    return made


async def _file(path: Path, settings: Settings) -> bytes:
    # Loaded when it is needed: workers wait for the bundles of fleets, which need none of it.
    from app.bootstrap import replays

    store = memory_store()
    history = await replays.load_files(store, settings, (path,))
    return await _bundle(store, history, "")


async def _bundle(store: Store, name: str, moment: str) -> bytes:
    info = await find_history(store, name)
    until = await find_inside(store, info, moment, option=f"{name}@{moment}")
    with PrivateFolder() as folder:
        path = Path(folder) / "history.zip"
        await exporting.export_history(
            store.log, info, BundleWriter(path), program=PROGRAM, file=path.name, until=until
        )
        return path.read_bytes()


async def _fleet(fleet: SweepFleet, settings: Settings, folder: Path) -> bytes:
    """Write nodes, devices and manifests one after the other; no controller decides."""
    chosen = history_settings(settings)
    profile = profiles.from_settings(chosen)
    line = ReplayTimeline(rules=rules_for(profile), uids=DerivedUids(fleet.seed), start=START)
    whole = generation.build(fleets.read_profile(fleet.profile), fleet.nodes, fleet.seed)
    commands: list[Command] = [_namespace()]
    commands += [generation.class_command(tree) for tree in whole.classes]
    commands += [generation.node_command(tree) for tree in whole.nodes]
    for command in commands:
        line.submit(command, actor=fleets.ACTOR)
    for pool in whole.pools:
        for command in generation.publish(pool, (), lambda name: _uid(line, name)):
            line.submit(command, actor=fleets.ACTOR)
    for file in fleet.apply:
        documents = manifests.read_documents(folder / file, as_kubectl=True)
        for edit in edits.read_manifests(documents):
            line.advance(Instant(line.now + APART))
            (command,) = edits.commands_of([edit], line.views.objects, profile, manager=MANAGER)
            _check_has_an_effect(edit)
            try:
                line.submit(command, actor=fleets.ACTOR)
            except Rejected as refusal:
                raise InputError(str(refusal), place=edit.place) from refusal
    line.advance(Instant(line.now + SECOND))
    return await _stored(line, chosen, fleet)


def _check_has_an_effect(edit: edits.Apply) -> None:
    """Raises InputError for a workload, which would make no pods."""
    kind = edit.tree["kind"]
    if kind in _WORKLOADS:
        raise InputError(
            f"{kind} {meta.name(edit.tree)} makes no pods here: the pods of a fleet are part of "
            "its manifests",
            place=edit.place,
            cure="write Pods instead",
        )


def _namespace() -> CreateObject:
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    key = ObjectKey("", "namespaces", "", "default")
    return CreateObject(key=key, version="v1", tree=tree)


def _uid(line: ReplayTimeline, node: str) -> str:
    tree = line.views.objects.get(generation.node_command({"metadata": {"name": node}}).key)
    return "" if tree is None else meta.uid(tree)


async def _stored(line: ReplayTimeline, chosen: dict[str, object], fleet: SweepFleet) -> bytes:
    store = memory_store()
    beginning = chain.genesis(seed=fleet.seed, settings=chosen, created=START)
    info = await store.log.create_history(
        fleet.name, seed=fleet.seed, settings=chosen, created=START, hash=beginning
    )
    head = await store.log.head(info.id)
    events = []
    previous = beginning
    for event in line.events:
        fresh = chain.relinked(event, event.body, previous)
        previous = fresh.hash
        events.append(fresh)
    await store.log.append(info.id, expected=head, events=events)
    return await _bundle(store, fleet.name, "")
