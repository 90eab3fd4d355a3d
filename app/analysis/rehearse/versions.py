"""The API versions in which a history is written, and their status in another release."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.analysis.replay.writers import short_name
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.values.fields import meta

AUTHORS_MAX = 5
"""The number of authors named for one version; all writes are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionUse:
    """An API version of a kind that outsiders use, and that the other release supports less.

    `text` is the warning or the refusal of its API. Without `is_gone` the version is newly
    deprecated.
    """

    api_version: str
    kind: str
    is_gone: bool
    writes: int
    authors: tuple[str, ...]
    text: str
    instead: str


def author_of(write: Input) -> str:
    """The author, as named in reports; empty where the recording does not name one."""
    return "" if write.author == UNNAMED else short_name(write.author)


def version_of(write: Input) -> str:
    """The API version of a write; empty if unknown.

    A log of requests has the version of each; otherwise it is that of the manager who wrote last.
    """
    event = write.event
    origin = event.stamp.origin
    if origin is not None and origin.version and event.stamp.actor.user:
        return origin.version
    rows = meta.metadata(event.object).get("managedFields")
    written = [
        row
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("time") and row.get("apiVersion")
    ]
    if not written:
        return ""
    last = max(written, key=lambda row: str(row["time"]))
    group, version = registry.split_api_version(str(last["apiVersion"]))
    return version if group == event.key.group else ""


def used(inputs: Iterable[Input], source: Profile, target: Profile) -> list[VersionUse]:
    """The versions that are gone or newly deprecated."""
    writes: Counter[tuple[str, str, str]] = Counter()
    authors: dict[tuple[str, str, str], dict[str, None]] = {}
    for given in inputs:
        version = version_of(given)
        if not version:
            continue
        place = (given.event.key.group, given.event.key.resource, version)
        writes[place] += 1
        authors.setdefault(place, {})[author_of(given)] = None
    uses = []
    for (group, resource, version), count in sorted(writes.items()):
        kind = registry.find(group, resource)
        if kind is None or not registry.is_served(kind, group, version, source):
            continue
        served = registry.served_versions(kind, target)
        is_gone = not registry.is_served(kind, group, version, target)
        warning = registry.deprecation(kind, version, target)
        if not is_gone and (not warning or registry.deprecation(kind, version, source)):
            continue
        known = [each for each in authors[group, resource, version] if each]
        uses.append(
            VersionUse(
                api_version=registry.api_version(group, version),
                kind=kind.kind,
                is_gone=is_gone,
                writes=count,
                authors=tuple(known[:AUTHORS_MAX]),
                text="the server could not find the requested resource" if is_gone else warning,
                instead=registry.api_version(*served[0]) if served else "",
            )
        )
    return uses
