"""Ways into a history that the same world can take: each lacks something else, and none lies.

Each function takes the folder of a recording of `fleet_recordings` and a new folder for what the
way leaves of it.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Tree = dict[str, Any]
Way = Callable[[Path, Path], None]

MADE_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
"""The metadata of a new object that no client sends."""


def version(tree: Tree) -> int:
    """The version of an object in the store."""
    return int(tree["metadata"]["resourceVersion"])


def changes(recording: Path) -> list[Tree]:
    """The lines of all watch streams, in the order of the store; without Event objects."""
    lines = [
        line
        for path in sorted((recording / "watch").iterdir())
        for line in _lines(path)
        if line["object"]["kind"] != "Event"
    ]
    return sorted(lines, key=lambda line: version(line["object"]))


def state(lines: Iterable[Tree], until: int) -> list[Tree]:
    """The objects that exist at a version, as `kubectl get -o json` shows them."""
    objects: dict[tuple[str, str, str], Tree] = {}
    for line in lines:
        tree = line["object"]
        metadata = tree["metadata"]
        place = tree["kind"], metadata.get("namespace", ""), metadata["name"]
        if version(tree) > until:
            break
        if line["type"] == "DELETED":
            objects.pop(place, None)
        else:
            objects[place] = tree
    return list(objects.values())


def moments(lines: list[Tree], number: int) -> list[int]:
    """So many versions, evenly spread over all of them."""
    return [
        version(lines[len(lines) * each // (number + 1)]["object"]) for each in range(1, number + 1)
    ]


def write_list(path: Path, items: list[Tree]) -> None:
    """Writes a list as `kubectl get` prints it."""
    path.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
    )


def snapshots(number: int, recording: Path, out: Path) -> None:
    """Everything at some moments."""
    lines = changes(recording)
    for place, until in enumerate(moments(lines, number)):
        write_list(out / f"{place}.json", state(lines, until))


def shown_changes(recording: Path, out: Path) -> None:
    """`kubectl get --watch -o json`: object after object, and nothing says that one is gone."""
    for path in sorted((recording / "watch").iterdir()):
        shown = [json.dumps(line["object"], indent=4) for line in _lines(path)]
        (out / f"{path.stem}.json").write_text("\n".join(shown))


def requests(recording: Path, out: Path) -> None:
    """An audit log at level Request: no answers, and of a new object only what a client sends."""
    _write(out, (_asked(line) for line in _lines(recording / "audit.jsonl")))


def metadata(recording: Path, out: Path) -> None:
    """An audit log at level Metadata."""
    lines = _lines(recording / "audit.jsonl")
    bodies = ("requestObject", "responseObject")
    _write(
        out,
        (
            {key: part for key, part in line.items() if key not in bodies} | {"level": "Metadata"}
            for line in lines
        ),
    )


def nine_of_ten(seed: int, recording: Path, out: Path) -> None:
    """An audit log of which a tenth of the lines is lost."""
    draw = random.Random(seed)
    _write(out, (line for line in _lines(recording / "audit.jsonl") if draw.random() > 0.1))


def without_statuses(recording: Path, out: Path) -> None:
    """An audit log of a policy that leaves out the subresource `status`."""
    lines = _lines(recording / "audit.jsonl")
    _write(out, (line for line in lines if line["objectRef"].get("subresource") != "status"))


def half_and_list(is_listed: Callable[[Tree], bool], recording: Path, out: Path) -> None:
    """The first half of an audit log, and a list of some objects at a moment after it."""
    logged = list(_lines(recording / "audit.jsonl"))
    _write(out, logged[: len(logged) // 2])
    lines = changes(recording)
    later = state(lines, moments(lines, 3)[-1])
    write_list(out / "later.json", [tree for tree in later if is_listed(tree)])


WAYS: dict[str, Way] = {
    **{f"{number} snapshots": partial(snapshots, number) for number in (2, 3, 5)},
    "shown changes": shown_changes,
    "requests": requests,
    "metadata": metadata,
    **{f"nine of ten {seed}": partial(nine_of_ten, seed) for seed in (1, 2)},
    "half and snapshot": partial(half_and_list, lambda tree: True),
    "half and pods": partial(half_and_list, lambda tree: tree["kind"] == "Pod"),
    "half and a namespace": partial(
        half_and_list, lambda tree: tree["metadata"].get("namespace") == "default"
    ),
    "without statuses": without_statuses,
}


def _lines(path: Path) -> Iterator[Tree]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


def _write(out: Path, lines: Iterable[Tree]) -> None:
    (out / "audit.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _asked(line: Tree) -> Tree:
    """A line with its request alone."""
    if line["level"] != "RequestResponse":
        return line
    asked = {**line, "level": "Request"}
    answer = asked.pop("responseObject", None)
    if line["verb"] == "create":
        asked["objectRef"] = {key: part for key, part in line["objectRef"].items() if key != "uid"}
    if "requestObject" in asked or answer is None:
        return asked
    if line["verb"] == "update":
        asked["requestObject"] = answer
    elif line["verb"] == "create" and not line["objectRef"].get("subresource"):
        sent = answer["metadata"].items()
        kept = {key: part for key, part in sent if key not in MADE_BY_SERVER}
        without = {key: part for key, part in answer.items() if key != "status"}
        asked["requestObject"] = {**without, "metadata": kept}
    return asked
