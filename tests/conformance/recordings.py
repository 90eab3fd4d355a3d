"""Recordings of a real control plane, imported and folded for the tests of this folder."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.adapters.history import documents
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.unpacking import file_source
from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.recordings.fidelity import FidelityReport
from app.domain.log import Event, Revision
from app.domain.objects import registry
from app.domain.objects.schema import conversion
from projections.objects import ObjectsProjection
from tests.imports import import_once

RECORDINGS = (
    "a-quickstart",
    "b-mig-partitions",
    "c-multihost-tpu",
    "e-taints",
    "e-taints-rules-ignored",
    "i-soak-short",
    "j-api-versions",
)

WAYS: dict[str, tuple[str, ...]] = {
    "audit": ("audit.jsonl.gz",),
    "watch": ("watch",),
    "joined": ("audit.jsonl.gz", "watch"),
    "folder": ("",),
    "etcd": ("etcd-final.db.gz",),
}
"""What is imported of a recording: the log alone, the streams alone, both, everything,
the snapshot of the store."""


@dataclass(frozen=True)
class Imported:
    """An imported recording: its events, the objects at the end, the report."""

    events: list[Event]
    objects: ObjectsProjection
    report: FidelityReport


async def import_paths(
    paths: list[Path],
) -> Imported:
    """Imports into a log in memory, reads the events back and folds them."""
    log = MemoryLog(MemoryStore())
    result = await import_once(log, paths, name="recorded")
    events = await log.read(result.history.id, after=Revision(0), limit=1_000_000)
    objects = ObjectsProjection()
    for event in events:
        objects.fold(event)
    return Imported(events=events, objects=objects, report=result.report)


def read_objects(path: Path) -> dict[tuple[str, str, str], dict]:
    """The objects of a dump in comparable form, by kind, namespace and name."""
    found = {}
    for _, value in documents.read_documents(file_source(path, path.name, DEFAULT_LIMITS)):
        for item in value["items"]:
            metadata = item["metadata"]
            key = (item["kind"], metadata.get("namespace", ""), metadata["name"])
            found[key] = comparable(item)
    return found


def folded_objects(objects: ObjectsProjection) -> dict[tuple[str, str, str], dict]:
    """The folded objects in the same form."""
    found = {}
    for group, resource in objects.resources():
        for key in objects.keys(group, resource):
            tree = objects.get(key)
            found[tree["kind"], key.namespace, key.name] = comparable(tree)
    return found


def comparable(tree: dict) -> dict:
    """The object without the parts that differ between sources: API version, resource version,
    managed fields, empty values and nulls (history-formats.md 4.5)."""
    group, version = registry.split_api_version(tree["apiVersion"])
    kind = registry.find_kind(group, version, tree["kind"])
    if kind is not None:
        tree = conversion.convert(tree, kind, tree["apiVersion"], kind.storage_api_version)
    tree = _bare(msgspec.json.decode(msgspec.json.encode(tree)))
    tree["metadata"].pop("resourceVersion", None)
    return tree


def _bare(value):
    if isinstance(value, dict):
        kept = {name: _bare(item) for name, item in value.items() if name != "managedFields"}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    return value
