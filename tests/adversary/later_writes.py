"""Recordings to which a few writes about one object are added at the end, as logs and as watches.

Each state follows from the last recorded one and is a whole of its own: only two states, or two
fields of one, contradict each other. The verdicts were fixed before any run, from the
specification.
"""

import copy
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.adversary.catalogue import FAILS, NOT_BLAMED, NOT_PASSED
from tests.adversary.log import Json, Log, NotFound, later
from tests.shared_data import shared_path

Edit = Callable[[Json, str], None]
"""Changes the state of an object; the text is the time, in whole seconds."""

ADMIN = "kubernetes-admin"
KEPT = "example.com/kept"
MARKED = (
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "nodes",
    "namespaces",
)


@dataclass(frozen=True)
class Later:
    """Writes, each a verb and a change, of an object of a resource; the verdict of verify."""

    resource: str
    writes: Sequence[tuple[str, Edit]]
    verdict: str


def keep(tree: Json, now: str) -> None:
    """Adds a finalizer, without which a deletion ends the object."""
    tree["metadata"].setdefault("finalizers", []).append(KEPT)


def end(tree: Json, now: str) -> None:
    metadata = tree["metadata"]
    metadata["deletionTimestamp"] = now
    if tree["kind"] == "Namespace":
        tree["status"]["phase"] = "Terminating"
        return
    metadata["deletionGracePeriodSeconds"] = 0
    if "generation" in metadata:
        metadata["generation"] += 1


def take_back(tree: Json, now: str) -> None:
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        tree["metadata"].pop(name, None)
    if tree["kind"] == "Namespace":
        tree["status"]["phase"] = "Active"


def move(tree: Json, now: str) -> None:
    tree["metadata"]["deletionTimestamp"] = now


def hold(tree: Json, now: str) -> None:
    tree["metadata"]["finalizers"].append("example.com/other")


def orphan(tree: Json, now: str) -> None:
    tree["metadata"]["finalizers"].append("orphan")


def reserve_again(tree: Json, now: str) -> None:
    reserved = (tree.get("status") or {}).get("reservedFor") or []
    if not reserved:
        raise NotFound("no reservation")
    reserved.append(copy.deepcopy(reserved[0]))


def label(tree: Json, now: str) -> None:
    tree["metadata"].setdefault("labels", {})["example.com/label"] = "set"


def observe_later(tree: Json, now: str) -> None:
    label(tree, now)
    tree["status"]["observedGeneration"] = tree["metadata"]["generation"] + 1


def observe(tree: Json, now: str) -> None:
    label(tree, now)
    tree["status"]["observedGeneration"] = tree["metadata"]["generation"]


def count_on(tree: Json, now: str) -> None:
    label(tree, now)
    tree["metadata"]["generation"] += 1


def count_back(tree: Json, now: str) -> None:
    label(tree, now)
    tree["metadata"]["generation"] -= 1


def change_image(tree: Json, now: str) -> None:
    tree["spec"]["containers"][0]["image"] = "example.com/other:2"


def change_image_and_count(tree: Json, now: str) -> None:
    change_image(tree, now)
    tree["metadata"]["generation"] += 1


_ENDING = (("update", keep), ("delete", end))

_AFTERWARDS = (
    ("update", take_back, FAILS),
    ("update", move, FAILS),
    ("update", hold, FAILS),
    ("delete", orphan, NOT_BLAMED),
)

LATER: dict[str, Later] = {
    **{f"end {each}": Later(each, _ENDING, NOT_BLAMED) for each in MARKED},
    **{
        f"end {each} and {edit.__name__}": Later(each, (*_ENDING, (verb, edit)), verdict)
        for each in MARKED
        for verb, edit, verdict in _AFTERWARDS
    },
    "reserve_again": Later("resourceclaims", (("patch", reserve_again),), FAILS),
    **{
        f"pod {edit.__name__}": Later("pods", (("patch", edit),), verdict)
        for edit, verdict in (
            (label, NOT_BLAMED),
            (observe, NOT_BLAMED),
            (observe_later, FAILS),
            (count_on, NOT_PASSED),
            (count_back, NOT_PASSED),
            (change_image, NOT_PASSED),
            (change_image_and_count, NOT_BLAMED),
        )
    },
}
"""By name. A verb is that of an audit log; each write is stored a second after the last one."""


def _states(tree: Json, name: str, now: str, version: int) -> list[tuple[str, Json]]:
    """The verbs and states of the writes; versions go on from the last one."""
    states = []
    for number, (verb, edit) in enumerate(LATER[name].writes):
        tree = copy.deepcopy(tree)
        edit(tree, later(now, number + 1)[:19] + "Z")
        tree["metadata"]["resourceVersion"] = str(version + number + 1)
        states.append((verb, tree))
    return states


def _first(living: dict[str, Json], name: str, now: str, version: int) -> list[tuple[str, Json]]:
    """The writes about the first living object that allows them."""
    for uid in sorted(living):
        tree = living[uid]
        if "deletionTimestamp" in tree["metadata"]:
            continue
        try:
            return _states(tree, name, now, version)
        except (NotFound, KeyError):
            continue
    raise NotFound(name)


def logged(log: Log, name: str) -> Log:
    """The audit log with the writes at its end."""
    resource, other = LATER[name].resource, log.copy()
    living: dict[str, Json] = {}
    lines: dict[str, Json] = {}
    version = 0
    for line in other.lines:
        body = line.get("responseObject") or {}
        metadata = body.get("metadata") or {}
        version = max(version, int(metadata.get("resourceVersion") or 0))
        about = line["objectRef"]
        uid = metadata.get("uid")
        if about["resource"] != resource or not uid or "name" not in metadata:
            continue
        living.pop(uid, None)
        if line["verb"] in ("create", "update", "patch") and about.get("subresource", "") in (
            "",
            "status",
        ):
            living[uid], lines[uid] = body, line
    last = max(line["stageTimestamp"] for line in other.lines)
    for number, (verb, state) in enumerate(_first(living, name, last, version)):
        line = copy.deepcopy(lines[state["metadata"]["uid"]])
        line["auditID"] = f"00000000-0000-4000-8000-{number:012}"
        line["verb"] = verb
        line["user"] = {**line["user"], "username": ADMIN}
        line["responseObject"] = state
        line["objectRef"].pop("subresource", None)
        line["objectRef"]["name"] = state["metadata"]["name"]
        line["responseStatus"]["code"] = 200
        asked: Json = copy.deepcopy(state)
        if verb == "update":
            asked["metadata"]["resourceVersion"] = str(
                int(state["metadata"]["resourceVersion"]) - 1
            )
        line["requestObject"] = asked
        if verb != "update":
            line.pop("requestObject")
        for field in ("requestReceivedTimestamp", "stageTimestamp"):
            line[field] = later(last, number + 1)
        other.lines.append(line)
    return other


def watched(recording: str, name: str, folder: Path) -> Path:
    """A folder of the watch streams of a recording, with the writes at the end of one."""
    resource, version, last = LATER[name].resource, 0, ""
    living: dict[str, Json] = {}
    for path in sorted(shared_path("histories", recording, "watch").glob("*.jsonl.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        (folder / path.name.removesuffix(".gz")).write_text(text)
        for line in text.splitlines():
            change = json.loads(line)
            metadata = change["object"]["metadata"]
            version = max(version, int(metadata["resourceVersion"]))
            stamps = [each.get("time", "") for each in metadata.get("managedFields", ())]
            last = max([last, metadata.get("creationTimestamp") or "", *stamps])
            if path.name.startswith(f"{resource}."):
                living.pop(metadata["uid"], None)
                if change["type"] != "DELETED":
                    living[metadata["uid"]] = change["object"]
    with (folder / f"{resource}.jsonl").open("a") as stream:
        for _, state in _first(living, name, last, version):
            stream.write(json.dumps({"type": "MODIFIED", "object": state}) + "\n")
    return folder
