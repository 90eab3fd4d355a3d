"""Stories as text: a command, dashes, what the log then tells.

A block is one command line and its transcript. Each command is carried out on a cluster in memory
with virtual time; the controllers work until they are at rest; what they appended is told in one
line per event. Generated names and uids derive from a seed, so a story reads the same every time.
"""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from app.domain.controllers import releases
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.binding_cycle.delayed_binding import (
    FixedBindDelay,
)
from app.domain.errors import Rejected, TooManyRequests
from app.domain.log import Event, ObjectKey
from app.domain.objects.profile import Profile
from app.domain.objects.write import eviction
from app.domain.objects.write.commands import RecordFact
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND
from tests.cluster import DRIVER, T0, USER, Cluster, claim_spec

SEPARATOR = "----"
RULES_IN_V1_SINCE = 37
PROTECTION = "resource.kubernetes.io/delete-protection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One command with its transcript; `lead` are the comments and blank lines before it."""

    lead: str
    command: str
    transcript: str


def parse(text: str) -> list[Block]:
    """The blocks of a story. A transcript ends at a blank line."""
    blocks: list[Block] = []
    lead: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.startswith("#"):
            lead.append(line)
            continue
        assert next(lines, "") == SEPARATOR, f"{SEPARATOR} is missing after {line!r}"
        told: list[str] = []
        for found in lines:
            if not found.strip():
                break
            told.append(found)
        blocks.append(Block(lead="\n".join(lead), command=line, transcript="\n".join(told)))
        lead = [""]
    return blocks


def tell(path: Path) -> str:
    """The story as it goes now."""
    story = Story()
    parts: list[str] = []
    for number, block in enumerate(parse(path.read_text(encoding="utf-8"))):
        if number or block.lead:
            parts.append(block.lead)
        parts.extend((block.command, SEPARATOR, story.run(block.command) or "(nothing)"))
    return "\n".join(parts) + "\n"


class Story:
    """A cluster that is spoken to in lines."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._told = 0
        self._refused = 0
        self._seen: dict[str, dict[str, str]] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster, made at the first command."""
        if self._cluster is None:
            self._cluster = Cluster()
        return self._cluster

    def begin(self, cluster: Cluster) -> None:
        """Go on with another cluster, of which nothing has been told."""
        self._cluster = cluster
        self._told = 0
        self._refused = 0
        self._seen = {}

    def skip_news(self) -> None:
        """What has happened needs no telling."""
        self.cluster.settle()
        self._news()

    def run(self, line: str) -> str:
        """Carry out one command and tell what followed."""
        verb, *words = shlex.split(line)
        handler = _HANDLERS[verb]
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            shown = handler(self, *plain, **options)
        except Rejected as refusal:
            shown = f"refused: {refusal}"
        self.cluster.settle()
        lines = [] if shown is None else [shown]
        return "\n".join(lines + self._news())

    def _refusals(self) -> list[str]:
        """What the API has refused to controllers; failed attempts of the scheduler say so."""
        refusals = self.cluster.line.refusals[self._refused :]
        self._refused += len(refusals)
        texts = [f"refused to {p.controller}: {text}" for p, text in refusals]
        return [text for text in dict.fromkeys(texts) if "to scheduling:" not in text]

    def _news(self) -> list[str]:
        events = self.cluster.line.events[self._told :]
        self._told += len(events)
        found: list[str] = []
        for event in events:
            text = self._text(event)
            if text:
                found.append(f"{(event.stamp.time - T0) / SECOND:9.3f}  {text}")
        return found + self._refusals()

    def _text(self, event: Event) -> str:
        tree = event.object
        if event.type == "DecisionRecorded":
            return _decision(tree)
        kind = event.key.resource
        name = event.key.name
        if kind == "events":
            if event.type == "ObjectDeleted":
                return f'is forgotten about {tree["involvedObject"]["name"]}: "{tree["message"]}"'
            if event.type == "ObjectUpdated":
                count = tree.get("count") or json_tree.get(tree, "series", "count")
                return f"repeats ({count}) about {tree['involvedObject']['name']}"
            return f'says about {tree["involvedObject"]["name"]}: "{tree["message"]}"'
        if kind not in _FACTS:
            return ""
        place = f"{kind}/{name}"
        if event.type == "ObjectDeleted":
            self._seen.pop(place, None)
            return f"{place} is gone"
        facts = {label: read(tree) for label, read in _FACTS[kind].items()}
        before = self._seen.get(place, {})
        self._seen[place] = facts
        news = [f"{label}={text}" for label, text in facts.items() if before.get(label, "") != text]
        return f"{place} {' '.join(news) if news else '(no change to tell)'}"


def _decision(tree: JsonObject) -> str:
    summary = tree["summary"]
    parts = [f"{tree['controller']} decides {tree['outcome']} for {tree['name'] or 'all'}"]
    if summary.get("node"):
        parts.append(f"on {summary['node']}")
    for claim in json_tree.objects(summary, "claims"):
        parts.append(",".join(device.split("/", 1)[1] for device in claim["devices"]))
    if summary.get("removed"):
        parts.append("; ".join(f"{ref['name']}: {ref['why']}" for ref in summary["removed"]))
    return " ".join(parts)


def _refs(tree: JsonObject) -> str:
    found = json_tree.objects(tree, "status", "reservedFor")
    return ",".join(ref["name"] for ref in found) or "-"


def _devices(tree: JsonObject) -> str:
    found = json_tree.objects(tree, "status", "allocation", "devices", "results")
    return ",".join(f"{ref['pool']}/{ref['device']}" for ref in found) or "-"


def _condition(kind: str) -> Callable[[JsonObject], str]:
    def read(tree: JsonObject) -> str:
        for found in json_tree.objects(tree, "status", "conditions"):
            if found["type"] == kind:
                reason = found.get("reason", "")
                return f"{found['status']}/{reason}" if reason else str(found["status"])
        return "-"

    return read


def _message(tree: JsonObject) -> str:
    for found in json_tree.objects(tree, "status", "conditions"):
        return f'"{found["message"]}"'
    return "-"


def _ending(tree: JsonObject) -> str:
    return "yes" if "deletionTimestamp" in tree["metadata"] else "-"


def _statuses(tree: JsonObject) -> str:
    found = [
        *json_tree.objects(tree, "status", "resourceClaimStatuses"),
        json_tree.mapping(tree, "status", "extendedResourceClaimStatus"),
    ]
    return ",".join(ref["resourceClaimName"] for ref in found if ref) or "-"


_FACTS: dict[str, dict[str, Callable[[JsonObject], str]]] = {
    "pods": {
        "phase": lambda tree: json_tree.text(tree, "status", "phase"),
        "claims": _statuses,
        "nominated": lambda tree: json_tree.text(tree, "status", "nominatedNodeName") or "-",
        "node": lambda tree: json_tree.text(tree, "spec", "nodeName") or "-",
        "scheduled": _condition("PodScheduled"),
        "disrupted": _condition("DisruptionTarget"),
        "terminating": _ending,
    },
    "resourceclaims": {
        "finalizers": lambda tree: str(len(json_tree.texts(tree, "metadata", "finalizers"))),
        "devices": _devices,
        "reserved": _refs,
        "terminating": _ending,
    },
    "devicetaintrules": {
        "effect": lambda tree: json_tree.text(tree, "spec", "taint", "effect"),
        "condition": _condition("EvictionInProgress"),
        "message": _message,
    },
    "deployments": {
        "replicas": lambda tree: str(json_tree.integer(tree, "spec", "replicas")),
        "ready": lambda tree: str(json_tree.integer(tree, "status", "readyReplicas") or 0),
        "progressing": _condition("Progressing"),
    },
    "jobs": {
        "active": lambda tree: str(json_tree.integer(tree, "status", "active") or 0),
        "failed": lambda tree: str(json_tree.integer(tree, "status", "failed") or 0),
        "complete": _condition("Complete"),
        "gave-up": _condition("Failed"),
    },
    "poddisruptionbudgets": {
        "expected": lambda tree: str(tree["status"]["expectedPods"]),
        "healthy": lambda tree: str(tree["status"]["currentHealthy"]),
        "wanted": lambda tree: str(tree["status"]["desiredHealthy"]),
        "allowed": lambda tree: str(tree["status"]["disruptionsAllowed"]),
        "announced": lambda tree: ",".join(tree["status"].get("disruptedPods") or {}) or "-",
        "condition": _condition("DisruptionAllowed"),
    },
    "replicasets": {
        "replicas": lambda tree: str(json_tree.integer(tree, "spec", "replicas")),
        "ready": lambda tree: str(json_tree.integer(tree, "status", "readyReplicas") or 0),
    },
}


# Commands


def _cluster(
    story: Story,
    *,
    profile: str = "1.37",
    kubelet: str = "off",
    off: str = "",
    gates: str = "",
    bind: str = "0",
    ttl: str = "0",
    **quirks: str,
) -> None:
    """A new cluster. `off` names controllers that stand still, `gates` those that are on, `bind`
    the milliseconds that a binding takes, `ttl` the seconds that Events stay.
    """
    switches = {name: value == "on" for name, value in quirks.items()}
    stopped = frozenset(off.split(",")) if off else frozenset()
    delay = FixedBindDelay(int(bind) * 1000) if bind != "0" else None
    enabled = dict.fromkeys(gates.split(","), True) if gates else {}
    imitated = Profile(version=profile, gates=enabled)
    chosen = replace(releases.quirks_of(imitated), **switches)
    life = int(ttl) * SECOND or None
    options = ControllerOptions(quirks=chosen, off=stopped, bind_delay=delay, event_ttl=life)
    story.begin(
        Cluster(
            profile=imitated,
            options=options,
            kubelet=kubelet == "on",
        )
    )


def _world(story: Story, *, nodes: str = "1", devices: str = "1", **request: str) -> str:
    """Nodes with devices, class `gpu` and template `gpu`, without a word about how they came."""
    for number in range(1, int(nodes) + 1):
        _node(story, f"n{number}", devices=devices)
    if int(devices):
        _class(story, "gpu")
        _template(story, "gpu", **request)
    story.skip_news()
    return f"{nodes} node(s) with {devices} device(s) each"


def _node(story: Story, name: str, **labels: str) -> None:
    devices = int(labels.pop("devices", "0"))
    story.cluster.node(name, **labels)
    if devices:
        story.cluster.slice(name, devices=devices)


def _class(story: Story, name: str, *, cel: str = "", extended: str = "") -> None:
    if extended:
        spec = {"extendedResourceName": extended}
        story.cluster.create("resource.k8s.io/v1", "DeviceClass", name, spec=spec)
    else:
        story.cluster.device_class(name, selector=cel)


def _slice(story: Story, node: str, **attributes: str) -> None:
    """One device with whole numbers as attributes."""
    told = {name: {"int": int(value)} for name, value in attributes.items()}
    story.cluster.slice(node, devices=[{"name": "gpu-0", "attributes": told}])


def _publish(story: Story, node: str, *, taint: str = "", effect: str = "NoExecute") -> str:
    """The driver writes its slice again, with a taint on each device that names no time."""
    tree = json_tree.copy(story.cluster.must("resourceslices", f"{node}-slice"))
    for device in tree["spec"]["devices"]:
        device.pop("taints", None)
        if taint:
            device["taints"] = [{"key": taint, "effect": effect}]
    story.cluster.update("resourceslices", tree)
    stored = story.cluster.must("resourceslices", f"{node}-slice")["spec"]["devices"][0]
    return f"timeAdded={stored['taints'][0]['timeAdded']}" if taint else "no taints"


def _request(options: dict[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    if "count" in options:
        found["count"] = int(options["count"])
    if "class" in options:
        found["class_name"] = options["class"]
    if "cel" in options:
        found["selectors"] = [{"cel": {"expression": options["cel"]}}]
    if "tolerate" in options:
        toleration: JsonObject = {"operator": "Exists"}
        if options["tolerate"] != "any":
            effect, _, seconds = options["tolerate"].partition(":")
            toleration["effect"] = effect
            if seconds:
                toleration["tolerationSeconds"] = int(seconds)
        found["tolerations"] = [toleration]
    return found


def _template(story: Story, name: str, **options: str) -> None:
    spec = claim_spec(**_request(options))
    story.cluster.create("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec={"spec": spec})


def _claim(story: Story, name: str, **options: str) -> None:
    story.cluster.create(
        "resource.k8s.io/v1", "ResourceClaim", name, spec=claim_spec(**_request(options))
    )


def _pod(
    story: Story,
    name: str,
    *,
    node: str = "",
    both: str = "",
    templates: str = "",
    extended: str = "",
    cpu: str = "",
    priority: str = "",
    **options: str,
) -> None:
    spec: dict[str, object] = {}
    if cpu:
        spec["requests"] = {"cpu": cpu}
    if priority:
        spec["priorityClassName"] = priority
    if extended:
        amounts = {extended: "1"}
        resources = {"requests": amounts, "limits": amounts}
        spec["containers"] = [{"name": "main", "image": "busybox:1", "resources": resources}]
    if templates:
        spec["resourceClaims"] = [
            {"name": entry, "resourceClaimTemplateName": template}
            for entry, template in zip("ab", templates.split(","), strict=False)
        ]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if both:
        first, _, second = both.partition(",")
        spec["resourceClaims"] = [
            {"name": "a", "resourceClaimName": first},
            {"name": "b", "resourceClaimName": second},
        ]
    story.cluster.pod(name, **options, **spec)


def _priority(story: Story, name: str, value: str, *, policy: str = "") -> None:
    more = {"preemptionPolicy": policy} if policy else {}
    story.cluster.create("scheduling.k8s.io/v1", "PriorityClass", name, value=int(value), **more)


def _rule(
    story: Story, name: str, *, effect: str = "NoExecute", pool: str = "", all: str = ""
) -> None:
    selector: JsonObject = {"driver": DRIVER}
    if pool:
        selector["pool"] = pool
    spec: JsonObject = {"taint": {"key": "example.com/bad", "effect": effect}}
    if not all:
        spec["deviceSelector"] = selector
    version = "v1" if story.cluster.profile.minor >= RULES_IN_V1_SINCE else "v1beta2"
    story.cluster.create(f"resource.k8s.io/{version}", "DeviceTaintRule", name, spec=spec)


def _effect(story: Story, name: str, effect: str) -> None:
    story.cluster.patch("devicetaintrules", name, {"spec": {"taint": {"effect": effect}}})


def _delete(story: Story, place: str) -> None:
    """Delete an object; `web-a-*` is the first whose name begins so."""
    resource, _, name = place.partition("/")
    if name.endswith("*"):
        name = next(found for found in story.cluster.names(resource) if found.startswith(name[:-1]))
    story.cluster.delete(resource, name)


def _budget(story: Story, name: str, app: str, **spec: str) -> None:
    """A budget for the pods of an application; `least` or `most` are numbers or shares."""
    fields = {"least": "minAvailable", "most": "maxUnavailable", "unready": _UNREADY}
    told = {fields[key]: int(text) if text.isdigit() else text for key, text in spec.items()}
    selector = {"matchLabels": {"app": app}}
    story.cluster.create(
        "policy/v1", "PodDisruptionBudget", name, spec={"selector": selector, **told}
    )


_UNREADY = "unhealthyPodEvictionPolicy"


def _evict(story: Story, place: str) -> str | None:
    """What the eviction subresource does with a pod; `web-a-*` is the first that is not ending."""
    cluster = story.cluster
    name = _staying(cluster, place)
    key = ObjectKey("", "pods", "default", name)
    try:
        found = eviction.judge(cluster.line.views.objects, key, cluster.line.now)
    except TooManyRequests as refusal:
        return f"refused: {refusal.causes[0].message}"
    if found.write is not None:
        cluster.line.submit(found.write, actor=USER)
    cluster.delete("pods", name)
    return None


def _unready(story: Story, place: str) -> None:
    """The kubelet finds that a pod is not ready."""
    conditions = [{"type": "Ready", "status": "False"}]
    story.cluster.patch(
        "pods",
        _staying(story.cluster, place),
        {"status": {"conditions": conditions}},
        subresource="status",
    )


def _staying(cluster: Cluster, place: str) -> str:
    """The first pod of that beginning which nobody has deleted."""
    return next(
        name
        for name in cluster.names("pods")
        if name.startswith(place.rstrip("*"))
        and "deletionTimestamp" not in cluster.must("pods", name)["metadata"]
    )


def _lose(story: Story, name: str) -> None:
    """A node is not ready any more, and an administrator says that it will not come back."""
    conditions = [{"type": "Ready", "status": "False"}]
    story.cluster.patch("nodes", name, {"status": {"conditions": conditions}}, subresource="status")
    story.cluster.settle()
    tree = json_tree.copy(story.cluster.must("nodes", name))
    gone = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    tree["spec"]["taints"] = [*json_tree.objects(tree, "spec", "taints"), gone]
    story.cluster.update("nodes", tree)


def _finish(story: Story, name: str, phase: str = "Succeeded") -> None:
    story.cluster.finish(name, phase)


def _kill(story: Story, name: str) -> None:
    story.cluster.kill(name)


def _wait(story: Story, seconds: str) -> None:
    story.cluster.wait(float(seconds))


def _unreserve(story: Story, name: str) -> None:
    """Take all reservations from a claim, as a failed binding does."""
    tree = json_tree.copy(story.cluster.must("resourceclaims", name))
    tree["status"].pop("reservedFor", None)
    story.cluster.update("resourceclaims", tree, "status")


def _allocate(story: Story, name: str, device: str) -> None:
    """Allocate as another allocator does: without a time of allocation."""
    pool, _, device = device.partition("/")
    tree = json_tree.copy(story.cluster.must("resourceclaims", name))
    result = {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device}
    tree["status"] = {"allocation": {"devices": {"results": [result]}}}
    story.cluster.patch("resourceclaims", name, {"metadata": {"finalizers": [PROTECTION]}})
    tree["metadata"].pop("resourceVersion")
    story.cluster.update("resourceclaims", tree, "status")


def _crowd(story: Story, name: str, count: str) -> str:
    """Fill a claim with consumers that are no pods, which nobody removes."""
    tree = json_tree.copy(story.cluster.must("resourceclaims", name))
    jobs = [
        {"apiGroup": "batch", "resource": "jobs", "name": f"job-{n}", "uid": f"uid-{n}"}
        for n in range(int(count))
    ]
    tree["status"]["reservedFor"] = [*tree["status"]["reservedFor"], *jobs]
    story.cluster.update("resourceclaims", tree, "status")
    story.skip_news()
    return f"{len(tree['status']['reservedFor'])} consumers"


def _restart(story: Story) -> None:
    """The controller manager is started anew; what it only had in memory is gone."""
    fact = RecordFact(type="ControllerRestarted", key=ObjectKey("redra", "facts", "", ""), body={})
    story.cluster.line.submit(fact, actor=USER)


def _unprotect(story: Story, name: str) -> None:
    story.cluster.patch("resourceclaims", name, {"metadata": {"finalizers": None}})


def _show(story: Story, place: str) -> str:
    resource, _, name = place.partition("/")
    tree = story.cluster.get(resource, name)
    if tree is None:
        return f"{place} does not exist"
    found = [f"{label}={read(tree)}" for label, read in _FACTS[resource].items()]
    return f"{place} {' '.join(found)}"


def _why(story: Story, name: str) -> str:
    condition = story.cluster.pod_condition(name)
    return "no condition" if condition is None else str(condition.get("message", "scheduled"))


def _deployment(
    story: Story, name: str, *, replicas: str = "1", template: str = "", **notes: str
) -> None:
    labels = {"app": name}
    spec: JsonObject = {"containers": [{"name": "main", "image": "busybox:1"}]}
    if template:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    pod: JsonObject = {"metadata": {"labels": labels}, "spec": spec}
    if notes:
        annotations = {f"redra.dev/{note.replace('_', '-')}": text for note, text in notes.items()}
        pod["metadata"]["annotations"] = annotations
    story.cluster.create(
        "apps/v1",
        "Deployment",
        name,
        spec={"replicas": int(replicas), "selector": {"matchLabels": labels}, "template": pod},
    )


def _job(story: Story, name: str, *, template: str, ignore: str = "") -> None:
    """A Job whose pods run for ever and fail when they are ended; `ignore` is a condition."""
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    pod: JsonObject = {
        "metadata": {
            "annotations": {"redra.dev/run-seconds": "100000", "redra.dev/exit-code": "143"}
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "busybox:1"}],
            "resourceClaims": [entry],
        },
    }
    spec: JsonObject = {"template": pod, "backoffLimit": 0}
    if ignore:
        rule = {"action": "Ignore", "onPodConditions": [{"type": ignore}]}
        spec |= {"podFailurePolicy": {"rules": [rule]}, "podReplacementPolicy": "Failed"}
    story.cluster.create("batch/v1", "Job", name, spec=spec)


def _scale(story: Story, name: str, replicas: str) -> None:
    story.cluster.patch("deployments", name, {"spec": {"replicas": int(replicas)}})


_HANDLERS: dict[str, Callable[..., str | None]] = {
    "cluster": _cluster,
    "node": _node,
    "class": _class,
    "template": _template,
    "claim": _claim,
    "pod": _pod,
    "deployment": _deployment,
    "scale": _scale,
    "priority": _priority,
    "rule": _rule,
    "slice": _slice,
    "publish": _publish,
    "allocate": _allocate,
    "crowd": _crowd,
    "restart": _restart,
    "world": _world,
    "effect": _effect,
    "delete": _delete,
    "budget": _budget,
    "job": _job,
    "evict": _evict,
    "unready": _unready,
    "lose": _lose,
    "finish": _finish,
    "kill": _kill,
    "wait": _wait,
    "unreserve": _unreserve,
    "unprotect": _unprotect,
    "show": _show,
    "why": _why,
}
