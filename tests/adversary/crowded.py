"""A log of 257 pods that share one claim, of which the API server lets 256 use it.

No recording has so many: redra's own controllers make this one, and the limit is that of the API.
Parity: objects.md 10.
"""

import copy
import json
from pathlib import Path

from app.adapters.history.writers import AuditWriter
from tests.adversary.log import Json, Log
from tests.adversary.places import at
from tests.cluster import Cluster

LIMIT = 256
CLAIM = "shared"


def crowded(folder: Path) -> Log:
    """The audit log of the pods; the last one waits."""
    cluster = Cluster()
    cluster.node(pods=2 * LIMIT, cpu="1000")
    cluster.device_class()
    cluster.slice()
    cluster.claim(CLAIM)
    for number in range(LIMIT + 1):
        cluster.pod(f"pod-{number:03}", claim=CLAIM)
    cluster.wait(5)
    writer = AuditWriter(folder / "crowded.jsonl")
    writer.write(cluster.line.events)
    writer.finish({})
    return Log([json.loads(line) for line in (folder / "crowded.jsonl").read_text().splitlines()])


def reserved_once_more(log: Log) -> Log:
    """The log in which the last reservation of the claim is for the pod that waits as well."""
    log = Log(list(log.lines))
    number = max(log.find("update", "resourceclaims", where=_is_full))
    line = log.lines[number] = copy.deepcopy(log.lines[number])
    waits = f"pod-{LIMIT:03}"
    made = log.lines[log.first("create", "pods", where=lambda each: _name(each) == waits)]
    consumer = {"resource": "pods", "name": waits, "uid": made["responseObject"]["metadata"]["uid"]}
    for side in ("requestObject", "responseObject"):
        if at(line.get(side), ("status", "reservedFor")):
            line[side]["status"]["reservedFor"].append(consumer)
    return log


def _name(line: Json) -> str:
    return str(line["responseObject"]["metadata"]["name"])


def _is_full(line: Json) -> bool:
    return len(at(line["responseObject"], ("status", "reservedFor")) or ()) == LIMIT
