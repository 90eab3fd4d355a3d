"""The story that the fuzzer of recordings changes: one small cluster, written in every format.

A `Cluster` in virtual time has objects of all kinds that controllers and views read. Its log is
written as a bundle, an audit log, watch streams and a dump. Bundles are sealed here without the
product's code, so that a changed bundle has a valid chain.
"""

import hashlib
import json
import random
import zipfile
from functools import lru_cache

from app.domain.controllers.registry import ControllerOptions
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.log.chain import event_json
from app.domain.objects import registry
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import CreateObject
from tests.cluster import USER, Cluster
from tests.conformance.soak_lines import retell
from tests.fuzz.seeds import all_seeds

GATES = (
    "DRADeviceTaintRules",
    "DRAConsumableCapacity",
    "DRAPrioritizedList",
    "DRAPartitionableDevices",
    "DRAResourcePoolStatus",
)
SETTINGS = {"profile": "1.37", "gates": dict.fromkeys(GATES, True)}
_GONE = "ObjectDeleted"
_ABOUT_OBJECTS = ("ObjectCreated", "ObjectUpdated", _GONE)


@lru_cache(maxsize=1)
def events():
    """The events of the story."""
    cluster = Cluster(
        Profile(gates=dict.fromkeys(GATES, True)),
        ControllerOptions(),
        seed=7,
        kubelet=True,
        namespaces=("default", "kube-system"),
        node_ttl=True,
    )
    for name in ("n1", "n2"):
        cluster.node(name)
        cluster.slice(name, devices=3)
    cluster.device_class("gpu")
    cluster.template("gpu")
    cluster.claim("shared")
    for index in range(4):
        cluster.pod(f"p{index}", template="gpu")
    cluster.pod("s", claim="shared")
    cluster.pod("never", template="gpu", nodeSelector={"no": "where"})
    cluster.settle().wait(5)
    cluster.rule("bad", selector={"driver": "gpu.example.com", "pool": "n1"})
    cluster.settle().wait(5)
    cluster.patch("nodes", "n2", {"metadata": {"labels": {"zone": "b"}}})
    cluster.finish("s")
    cluster.delete("pods", "p3")
    cluster.create("v1", "ResourceQuota", "quota", spec={"hard": {"pods": "10"}})
    cluster.create("scheduling.k8s.io/v1", "PriorityClass", "high", value=1_000)
    cluster.create(
        "policy/v1",
        "PodDisruptionBudget",
        "budget",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    )
    for seed in all_seeds():
        if not seed.is_review:
            _create(cluster, seed.copy())
    cluster.settle().wait(20)
    return tuple(cluster.line.events)


def _create(cluster, tree):
    group, _, version = tree["apiVersion"].rpartition("/")
    kind = registry.find_kind(group, version, tree["kind"])
    if kind is None:
        return
    namespace = "default" if kind.namespaced else ""
    if namespace:
        tree["metadata"]["namespace"] = namespace
    key = ObjectKey(kind.group, kind.plural, namespace, tree["metadata"]["name"])
    command = CreateObject(key=key, version=version, tree=tree)
    try:
        cluster.line.submit(command, actor=USER)
    except Rejected:
        return  # the same object is there already in another version


def bundle_lines():
    """The events as the trees of a bundle's lines, without hashes."""
    found = [event_json(event) for event in events()]
    for line in found:
        del line["hash"]
    return json.loads(json.dumps(found))


def audit_and_watches(folder):
    """The audit log and the watch streams, as lines by their paths below a folder."""
    retell(events(), {}, folder, random.Random(1), answers=5)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().splitlines()
        for path in sorted(folder.rglob("*.jsonl"))
    }


def objects():
    """The objects that exist at the end."""
    found = {}
    for event in events():
        if event.type == _GONE:
            found.pop(event.key, None)
        elif event.is_about_object:
            found[event.key] = event.object
    return json.loads(json.dumps(list(found.values())))


def seal(path, lines, settings, **manifest):
    """Writes lines, whose objects are trees or texts, as a bundle with valid hashes."""
    previous = b"\0" * 32
    written, state = [], {}
    for line in lines:
        payload = line["payload"]
        body = payload["object"]
        body = body if isinstance(body, bytes) else _text(body)
        marked = _text({**line, "payload": {**payload, "object": _MARK}})
        covered = marked.replace(_text(_MARK), body)
        digest = hashlib.sha256(previous + covered).digest()
        whole = {**line, "payload": {**payload, "object": _MARK}, "hash": _hash(digest)}
        whole["prev"] = _hash(previous)
        written.append(_text(whole).replace(_text(_MARK), body) + b"\n")
        previous = digest
        if line["type"] in _ABOUT_OBJECTS:
            key = tuple(payload[part] for part in ("group", "resource", "namespace", "name"))
            if all(isinstance(part, str) for part in key):
                if line["type"] == _GONE:
                    state.pop(key, None)
                else:
                    state[key] = hashlib.sha256(body).digest()
    content = b"".join(written)
    folded = hashlib.sha256()
    for key in sorted(state):
        folded.update(_text(list(key)))
        folded.update(state[key])
    whole = {
        "bundle": "dra-history",
        "version": 1,
        "events": len(lines),
        "first_revision": 1,
        "last_revision": len(lines),
        "chain_head": _hash(previous),
        "state_hash": "sha256:" + folded.hexdigest(),
        "redaction": None,
        "created_by": "a test",
        "name": "story",
        "seed": 1,
        "settings": settings,
        "sources": [],
        "checks": {"files": {"events.jsonl": "sha256:" + hashlib.sha256(content).hexdigest()}},
    } | manifest
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", _text(whole))
        archive.writestr("events.jsonl", content, compress_type=zipfile.ZIP_DEFLATED)
    return path


_MARK = "the object stands here"


def _hash(digest):
    return "sha256:" + digest.hex()


def _text(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
