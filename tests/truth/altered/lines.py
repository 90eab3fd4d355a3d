"""Objects and writes of an audit log, from its lines alone; nothing of the product is imported."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from tests.adversary.log import Json
from tests.truth.raw import Key, State
from tests.truth.states.model import EPOCH, Write

_READS = ("get", "list", "watch")
_UNJUDGED = ("events", "leases", "selfsubjectaccessreviews")


def is_write(line: Json) -> bool:
    """Whether a request was to change an object of a kind that answers rest on, and did."""
    return (
        line["verb"] not in _READS
        and line["objectRef"].get("resource") not in _UNJUDGED
        and line["responseStatus"].get("code", 0) < 300
    )


def key_of(line: Json) -> Key:
    """The object that a line is about."""
    about, answer = line["objectRef"], line.get("responseObject") or {}
    meta = answer.get("metadata") or {}
    return (
        about["resource"],
        about.get("namespace") or meta.get("namespace") or "",
        about.get("name") or meta.get("name") or "",
    )


def writes(lines: Iterable[Json]) -> Iterator[tuple[Key, Write]]:
    """The writes that lines show with the state after them, in the order of the store.

    Revisions are twice the versions: a binding is answered without one, and comes right after the
    version of its pod that was shown last.
    """
    shown: dict[tuple[Key, int], Write] = {}
    newest: dict[Key, Write] = {}
    for line in lines:
        if not is_write(line):
            continue
        for tree in (_bound(line, newest.get(key_of(line))), *_states(line)):
            if tree is None:
                continue
            meta = tree["metadata"]
            key = (line["objectRef"]["resource"], meta.get("namespace", ""), meta["name"])
            is_binding = line["objectRef"].get("subresource") == "binding"
            revision = 2 * int(meta["resourceVersion"]) + is_binding
            moment = datetime.fromisoformat(line["stageTimestamp"])
            time = round((moment - EPOCH).total_seconds() * 1_000_000)
            write = Write(revision, line["user"]["username"], time, _left(line, tree))
            shown.setdefault((key, revision), write)
            if key not in newest or newest[key].revision < revision:
                newest[key] = write
    for (key, _), write in sorted(shown.items(), key=lambda each: each[1].revision):
        yield key, write


def _bound(line: Json, last: Write | None) -> Json | None:
    """The pod that a binding gave its node."""
    if line["objectRef"].get("subresource") != "binding" or last is None or last.tree is None:
        return None
    node = line["requestObject"]["target"]["name"]
    return {**last.tree, "spec": {**last.tree["spec"], "nodeName": node}}


def state(lines: Iterable[Json]) -> State:
    """The objects that there are after the lines, as far as lines show them."""
    left: State = {}
    for key, write in writes(lines):
        if write.tree is None:
            left.pop(key, None)
        else:
            left[key] = write.tree
    return left


def _states(line: Json) -> Iterator[Json]:
    answer = line.get("responseObject") or {}
    for tree in answer.get("items") or (answer,):
        meta = tree.get("metadata") or {}
        if "resourceVersion" in meta and "name" in meta and "uid" in meta:
            yield tree


def _left(line: Json, tree: Json) -> Json | None:
    """The state after a write; None where it was the last one."""
    meta = tree["metadata"]
    ends = not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
    if line["verb"].startswith("delete") or "deletionTimestamp" in meta:
        return None if ends else tree
    return tree
