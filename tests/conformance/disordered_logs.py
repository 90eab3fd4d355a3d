"""Audit logs as servers have them: a recorded log in another order and with noise.

Lines are in the order in which they were flushed, not in that of the answers. Stages without an
answer, leases, Secrets without bodies, dry runs and refusals are between them. Files are rotated
and packed, and the last line is incomplete. None of this changes what happened.
"""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

from app.domain.values import timestamps

LATE_MILLIS = 600
"""A line is flushed up to so much later than its answer was given (history-formats.md 4.4)."""


def read(path: Path) -> list[dict]:
    """The events of a packed log."""
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def shuffled(lines: list[dict], chance: random.Random) -> list[dict]:
    """The lines in a possible order of flushing."""

    def flushed(line: dict) -> int:
        answered = timestamps.parse(line["stageTimestamp"])
        return answered + chance.randrange(LATE_MILLIS * 1_000)

    return sorted(lines, key=flushed)


def staged(lines: list[dict]) -> Iterator[dict]:
    """Each answer with the stage before it."""
    for line in lines:
        begun = {name: value for name, value in line.items() if not name.startswith("response")}
        begun["stage"] = "RequestReceived"
        begun["stageTimestamp"] = line["requestReceivedTimestamp"]
        begun.pop("requestObject", None)
        yield begun
        yield line


def noisy(lines: list[dict], chance: random.Random) -> Iterator[dict]:
    """The lines with other requests between them."""
    for line in lines:
        yield line
        if chance.random() < 0.4:
            yield {**_noise(chance), **_times(line), "auditID": f"noise-{chance.random()}"}


def write(lines: list[dict], folder: Path, *, rotated: bool = False, cut_off: bool = False) -> Path:
    """Writes the log to a folder, in one file or three; the last line may be cut off."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [json.dumps(line) + "\n" for line in lines]
    third = len(texts) // 3 if rotated else 0
    if rotated:
        first, second = (_rotated(lines[place - 1]) for place in (third, 2 * third))
        (folder / f"audit-{first}.log").write_text("".join(texts[:third]))
        with gzip.open(folder / f"audit-{second}.log.gz", "wt") as file:
            file.write("".join(texts[third : 2 * third]))
    rest = "".join(texts[2 * third :])
    if cut_off:
        rest += texts[-1][: len(texts[-1]) // 2]
    (folder / "audit.log").write_text(rest)
    return folder


def _rotated(line: dict) -> str:
    return line["stageTimestamp"][:23].replace(":", "-")


def _times(line: dict) -> dict:
    return {name: line[name] for name in ("requestReceivedTimestamp", "stageTimestamp")}


def _noise(chance: random.Random) -> dict:
    claims = {"apiGroup": "resource.k8s.io", "resource": "resourceclaims", "namespace": "default"}
    name = f"x{chance.randrange(100)}"
    lease = {"apiGroup": "coordination.k8s.io", "resource": "leases", "name": "kube-scheduler"}
    dry = {"metadata": {"name": "dry", "namespace": "default", "uid": "dry"}, "kind": "Pod"}
    return chance.choice(
        (
            _line("update", {**lease, "namespace": "kube-system"}, 200),
            _line("create", {"resource": "secrets", "name": name, "namespace": "default"}, 201),
            _line("update", {"resource": "secrets", "name": name, "namespace": "default"}, 200),
            _line("watch", {"resource": "pods"}, 200, stage="ResponseStarted"),
            _line("create", {"resource": "pods", "name": name, "subresource": "exec"}, 101),
            _line("get", {"resource": "widgets", "apiGroup": "example.com", "name": name}, 200),
            _line("update", {**claims, "name": name, "subresource": "status"}, 409),
            _line("create", claims, 422),
            {
                **_line("create", {"resource": "pods", "namespace": "default"}, 201),
                "level": "RequestResponse",
                "requestURI": "/api/v1/namespaces/default/pods?dryRun=All",
                "responseObject": {**dry, "apiVersion": "v1", "spec": {}},
            },
        )
    )


def _line(verb: str, reference: dict, code: int, stage: str = "ResponseComplete") -> dict:
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": stage,
        "requestURI": "/",
        "verb": verb,
        "user": {"username": "system:kube-scheduler"},
        "objectRef": {"apiVersion": "v1", **reference},
        "responseStatus": {"metadata": {}, "code": code},
    }
