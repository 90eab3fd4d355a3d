"""Questions about devices, pools, slices, classes, patches, rules and nodes themselves."""

import random

from app.domain.values import timestamps
from tests.cluster import DRIVER, Cluster
from tests.worlds.planted.plant import Cause, Plant, Sow
from tests.worlds.planted.waiting import names, revision_of

PATIENT = 300


def _fleet(rng: random.Random, devices: int) -> tuple[Cluster, str]:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, devices)
    cluster.device_class()
    return cluster, node


def _at(cluster: Cluster) -> str:
    return timestamps.seconds_text(cluster.line.now)


def biography(rng: random.Random) -> Plant:
    """One device with three holders one after the other, and a taint by a rule."""
    cluster, node = _fleet(rng, 1)
    holders = names(rng, 3, "held")
    spans: list[tuple[str, str, str, int]] = []
    for name in holders:
        cluster.wait(rng.randint(10, 100))
        begin = _at(cluster)
        cluster.claim(name)
        cluster.pod(f"pod-of-{name}", claim=name)
        cluster.settle()
        revision = next(
            event.revision
            for event in cluster.line.events
            if event.key.name == name and "allocation" in event.object.get("status", {})
        )
        end = ""
        if name != holders[-1]:
            cluster.wait(rng.randint(10, 100))
            end = _at(cluster)
            cluster.finish(f"pod-of-{name}")
            cluster.settle()
        spans.append((name, begin, end, revision))
    rule = names(rng, 1, "rule")[0]
    cluster.rule(rule, effect="NoSchedule")
    made = revision_of(cluster, "devicetaintrules", rule)
    return Plant(
        cluster=cluster, kind="device", name=f"{DRIVER}/{node}/gpu-0",
        causes=(
            *(
                Cause(words=tuple(word for word in (name, begin, end) if word), revision=revision)
                for name, begin, end, revision in spans
            ),
            Cause(words=("example.com/bad:NoSchedule", rule), revision=made),
        ),
    )  # fmt: skip


def attribute_changed(rng: random.Random) -> Plant:
    cluster, node = _fleet(rng, 1)
    old, new = rng.sample(range(100), 2)
    tree = cluster.must("resourceslices", f"{node}-slice")
    for value in (old, new):
        cluster.wait(10)
        device = {"name": "gpu-0", "attributes": {"firmware": {"int": value}}}
        spec = {**tree["spec"], "devices": [device]}
        tree = {**cluster.must("resourceslices", f"{node}-slice"), "spec": spec}
        cluster.update("resourceslices", tree)
    revision = revision_of(cluster, "resourceslices", f"{node}-slice")
    return Plant(
        cluster=cluster, kind="device", name=f"{DRIVER}/{node}/gpu-0",
        causes=(Cause(words=("firmware", str(old), str(new)), revision=revision),),
    )  # fmt: skip


def patch(cluster: Cluster, name: str, priority: int, model: str, device: str = "gpu-0") -> int:
    spec = {
        "devices": {
            "filter": {"driver": DRIVER, "device": device},
            "priority": priority,
            "attributes": {f"{DRIVER}/model": {"string": model}},
        }
    }
    cluster.create("resource.k8s.io/v1alpha3", "ResourceSlicePatch", name, spec=spec)
    return revision_of(cluster, "resourceslicepatches", name)


def patch_wins_and_loses(rng: random.Random) -> Plant:
    cluster, node = _fleet(rng, rng.randint(1, 3))
    strong, weak = names(rng, 2, "patch")
    high, low = rng.randint(50, 99), rng.randint(1, 49)
    winner = patch(cluster, strong, high, "right")
    patch(cluster, weak, low, "wrong")
    place = f"{DRIVER}/{node}/gpu-0"
    if rng.random() < 0.5:
        return Plant(
            cluster=cluster, kind="device", name=place,
            causes=(Cause(words=("model", "right", strong), revision=winner),),
        )  # fmt: skip
    asked, words = rng.choice(
        (
            (strong, (place, "model", "right")),
            (weak, (place, "model", "loses", strong, str(high), str(low))),
        )
    )
    return Plant(
        cluster=cluster, kind="resourceslicepatch", name=asked, causes=(Cause(words=words),)
    )


def pool_of_two_generations(rng: random.Random) -> Plant:
    cluster, node = _fleet(rng, 2)
    announced = rng.randint(2, 4)
    pool = {"name": node, "generation": 2, "resourceSliceCount": announced}
    cluster.create(
        "resource.k8s.io/v1", "ResourceSlice", "newer",
        spec={"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-9"}]},
    )  # fmt: skip
    revision = revision_of(cluster, "resourceslices", "newer")
    asked = rng.choice((f"{node}-slice", "newer"))
    words = (
        ("generation 1", "generation 2", "obsolete")
        if asked != "newer"
        else ("incomplete", f"1 of {announced} slices")
    )
    causes = [Cause(words=words)]
    if asked == "newer":
        causes.append(Cause(words=("alice", "published"), revision=revision))
    return Plant(cluster=cluster, kind="resourceslice", name=asked, causes=tuple(causes))


def class_and_its_users(rng: random.Random) -> Plant:
    cluster, node = _fleet(rng, 0)
    right, wrong = rng.randint(1, 4), rng.randint(1, 4)
    devices = [
        {"name": f"d{n}", "attributes": {"good": {"bool": n < right}}} for n in range(right + wrong)
    ]
    cluster.slice(node, devices, name="more", pool="more")
    cluster.device_class("picky", f'device.attributes["{DRIVER}"].good')
    users = names(rng, rng.randint(1, 3), "user")
    for name in users:
        cluster.claim(name, class_name="picky")
    total = right + wrong
    return Plant(
        cluster=cluster, kind="deviceclass", name="picky",
        causes=(
            Cause(words=(f"selects {right} of {total} devices",)),
            *(Cause(words=("used by", name)) for name in users),
        ),
    )  # fmt: skip


def rule_and_each_claim(rng: random.Random) -> Plant:
    """Three devices: an evicted pod's, a tolerating pod's, and one with an unused claim."""
    cluster, node = _fleet(rng, 3)
    patient = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENT}]
    cluster.claim("doomed")
    cluster.claim("spared", tolerations=patient)
    for name in ("doomed", "spared"):
        cluster.pod(f"pod-of-{name}", claim=name)
        cluster.settle()
    rule = names(rng, 1, "rule")[0]
    cluster.wait(rng.randint(1, 20))
    due = timestamps.seconds_text(cluster.line.now + PATIENT * timestamps.SECOND)
    cluster.rule(rule)
    cluster.wait(20)
    place = f"{DRIVER}/{node}"
    return Plant(
        cluster=cluster, kind="devicetaintrule", name=rule,
        causes=(
            Cause(words=(f"{place}/gpu-0", "doomed", "evicted")),
            Cause(words=(f"{place}/gpu-1", "spared", due)),
            Cause(words=(f"{place}/gpu-2", "no claim")),
        ),
    )  # fmt: skip


def node_and_its_devices(rng: random.Random) -> Plant:
    devices = rng.randint(2, 6)
    cluster, node = _fleet(rng, devices)
    used = rng.randint(1, devices - 1)
    for name in names(rng, used, "held"):
        cluster.claim(name)
        cluster.pod(f"pod-of-{name}", claim=name)
    cluster.settle()
    cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
    revision = revision_of(cluster, "nodes", node)
    return Plant(
        cluster=cluster, kind="node", name=node,
        causes=(
            Cause(words=("cordoned", "alice"), revision=revision),
            Cause(words=(f"{used} of {devices} devices",)),
        ),
    )  # fmt: skip


SOWN: tuple[Sow, ...] = (
    biography,
    attribute_changed,
    patch_wins_and_loses,
    pool_of_two_generations,
    class_and_its_users,
    rule_and_each_claim,
    node_and_its_devices,
)
