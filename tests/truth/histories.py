"""Histories to ask about, each with its raw objects: recordings, incidents, drawn worlds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.incidents.incident import IncidentVariant
from app.analysis.views import features_of
from app.bootstrap.gallery import incident_files, playing
from app.domain.log import Event, Head
from app.domain.objects import profile as profiles
from app.domain.objects.profile import Profile
from tests.cluster import Cluster
from tests.imports import import_once
from tests.shared_data import shared_path
from tests.simulation.fleet_acts import ACTS
from tests.simulation.fleet_world import FleetWorld
from tests.simulation.world import World
from tests.truth import raw
from tests.truth.bindings.worlds import BindingWorld
from tests.truth.preemption.worlds import PreemptionWorld
from tests.truth.raw import RawHistory
from tests.truth.waiting.prioritized import PrioritizedWorld

PROFILE = Profile(version="1.36", gates={"DRADeviceTaintRules": True})


@dataclass(frozen=True, slots=True)
class TrueHistory:
    """A history in a store, and what happened in it; a recording's versions are the cluster's."""

    name: str
    store: MemoryStore
    recorded: RawHistory | None = None
    with_rules: bool = True
    """Whether the scheduler of its release sees DeviceTaintRules (known issue C24)."""

    def moments(self, lines: Sequence[dict]) -> tuple[RawHistory, list[tuple[int, int]]]:
        """What happened, and revisions of the log with the versions that they stand for."""
        if self.recorded is None:
            return raw.of_log(lines), [(line["revision"], line["revision"]) for line in lines[3:]]
        moments, version = [], 0
        for line in lines:
            origin = line["stamp"].get("origin") or {}
            version = max(version, int(origin.get("resource_version") or 0))
            if origin.get("resource_version"):
                moments.append((line["revision"], version))
        return self.recorded, moments


async def of_recording(name: str) -> TrueHistory:
    """A recording of a real control plane, with its audit log and its watch streams."""
    store = MemoryStore()
    folder = shared_path("histories", name)
    paths = [folder / "audit.jsonl.gz", folder / "watch"]
    await import_once(
        MemoryLog(store), paths, name="default", profile=PROFILE, settings=PROFILE.settings()
    )
    return TrueHistory(name, store, raw.of_recording(folder))


async def of_incident(name: str) -> TrueHistory:
    """An incident of the gallery as it goes wrong."""
    incident = incident_files.read(name).incident
    events = playing.play(incident, IncidentVariant.BROKEN).events
    return await _stored(name, list(events), incident.cluster.settings())


async def of_world(seed: int, steps: int = 30) -> TrueHistory:
    """A small seeded world."""
    world = World(seed)
    for _ in range(steps):
        world.step()
    line = world.cluster.line
    return await _stored(f"world {seed}", list(line.events), world.cluster.profile.settings())


async def of_fleet(seed: int, steps: int = 30) -> TrueHistory:
    """A seeded world with mixed hardware and everything in it."""
    world = FleetWorld(seed)
    for _ in range(steps):
        world.step(ACTS)
    line = world.cluster.line
    return await _stored(f"fleet {seed}", list(line.events), world.cluster.profile.settings())


async def of_alternatives(seed: int) -> TrueHistory:
    """A drawn cluster whose pods have lists of alternatives."""
    return await _of_cluster(f"alternatives {seed}", PrioritizedWorld(seed).cluster)


async def of_bindings(seed: int) -> TrueHistory:
    """A drawn cluster whose pods wait for binding conditions, and come again under their names."""
    return await _of_cluster(f"bindings {seed}", BindingWorld(seed).cluster)


async def of_preemption(seed: int) -> TrueHistory:
    """A drawn cluster that is full, into which more important pods come."""
    return await _of_cluster(f"pre-emption {seed}", PreemptionWorld(seed).cluster)


async def _of_cluster(name: str, cluster: Cluster) -> TrueHistory:
    return await _stored(name, list(cluster.line.events), cluster.profile.settings())


async def _stored(name: str, events: list[Event], settings: dict) -> TrueHistory:
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    info = await log.create_history(
        "default", seed=0, settings=settings, created=playing.START, hash=Head().hash
    )
    await log.append(info.id, expected=Head(), events=events)
    features = features_of(profiles.from_settings(settings))
    return TrueHistory(name, store, with_rules=features.taint_rules)


def lines_of(text: str) -> list[dict]:
    """The events of a log as redra writes them."""
    return [json.loads(line) for line in text.splitlines()]
