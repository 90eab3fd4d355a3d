"""Objects and writes of an audit log, from its lines alone; nothing of the product is imported."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from tests.adversary.log import Json
from tests.truth.facts import FINISHED
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

    Revisions are twice the versions: a binding, the deletion of a collection and a removal of the
    last finalizer are answered without a new one, and come right after the last version.
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
            left = _left(line, tree)
            is_removal = left is None and line["verb"] in ("update", "patch")
            revision = 2 * int(meta["resourceVersion"]) + (is_removal or _is_unnumbered(line))
            moment = datetime.fromisoformat(line["stageTimestamp"])
            time = round((moment - EPOCH).total_seconds() * 1_000_000)
            write = Write(revision, line["user"]["username"], time, left)
            shown.setdefault((key, revision), write)
            if key not in newest or newest[key].revision < revision:
                newest[key] = write
    for (key, _), write in sorted(shown.items(), key=lambda each: each[1].revision):
        yield key, write


def _is_unnumbered(line: Json) -> bool:
    return line["objectRef"].get("subresource") == "binding" or line["verb"] == "deletecollection"


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
    if line["verb"] == "deletecollection":
        return _collected(line, tree)
    ends = not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
    if line["verb"] == "delete" or "deletionTimestamp" in meta:
        return None if ends else tree
    return tree


def _collected(line: Json, before: Json) -> Json | None:
    """An object of a collection that was deleted, from its state before: pods may have grace."""
    meta = before["metadata"]
    if "deletionTimestamp" in meta:
        return before
    phase = (before.get("status") or {}).get("phase")
    has_grace = before["spec"].get("nodeName") and phase not in FINISHED
    grace = before["spec"].get("terminationGracePeriodSeconds", 30) if has_grace else 0
    if not grace and not meta.get("finalizers"):
        return None
    asked = datetime.fromisoformat(line["stageTimestamp"]) + timedelta(seconds=grace)
    deletion = {"deletionTimestamp": asked.strftime("%Y-%m-%dT%H:%M:%SZ")}
    if before.get("kind", "Pod") == "Pod":
        deletion["deletionGracePeriodSeconds"] = grace
    return {**before, "metadata": {**meta, **deletion}}
