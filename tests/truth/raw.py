"""The objects of a history at a moment, from its raw files, without any code of the product.

A recording's watch streams hold each version of each object; versions of one cluster are comparable
numbers. The log of a history that was drawn holds the same in its events.
"""

import gzip
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Key = tuple[str, str, str]
"""Resource, namespace and name."""

State = dict[Key, dict]


@dataclass(frozen=True, slots=True)
class Change:
    """One version of an object; `tree` is None where it was deleted."""

    version: int
    key: Key
    tree: dict | None


@dataclass(slots=True)
class RawHistory:
    """The changes of all objects in their order, and the states between them."""

    changes: list[Change]
    _versions: list[int] = field(init=False)
    _kept: tuple[int, State] = (0, {})

    def __post_init__(self) -> None:
        self.changes.sort(key=lambda change: change.version)
        self._versions = [change.version for change in self.changes]

    def at(self, version: int) -> State:
        """The objects that exist at a version; moments that ascend take the least work."""
        count, state = self._kept
        end = bisect_right(self._versions, version)
        if end < count:
            count, state = 0, {}
        state = dict(state)
        for change in self.changes[count:end]:
            if change.tree is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.tree
        self._kept = end, state
        return state


def of_recording(folder: Path) -> RawHistory:
    """A recording, from its watch streams."""
    return RawHistory(
        [
            change
            for path in sorted((folder / "watch").glob("*.jsonl.gz"))
            for change in _of_stream(path)
        ]
    )


def _of_stream(path: Path) -> Iterator[Change]:
    resource = path.name.removesuffix(".jsonl.gz")
    for line in gzip.decompress(path.read_bytes()).splitlines():
        entry = json.loads(line)
        tree = entry["object"]
        key = (resource, tree["metadata"].get("namespace", ""), tree["metadata"]["name"])
        is_gone = entry["type"] == "DELETED"
        version = int(tree["metadata"]["resourceVersion"])
        yield Change(version, key, None if is_gone else tree)


def of_log(lines: Iterable[dict]) -> RawHistory:
    """A history whose log is all that there is; its versions are revisions."""
    changes = []
    for line in lines:
        if line["type"] in ("ObjectCreated", "ObjectUpdated", "ObjectDeleted"):
            key = (line["resource"], line["namespace"], line["name"])
            tree = None if line["type"] == "ObjectDeleted" else line["object"]
            changes.append(Change(line["revision"], key, tree))
    return RawHistory(changes)
