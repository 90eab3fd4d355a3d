"""Incidents that are in no list, made by machine: their names are drawn, their causes are known.

All of `told` has to stand on one page. It names what each incident is made to suffer from, in
words that pages had or were given when the incident was looked at.
"""

import random
from dataclasses import dataclass

from app.analysis.incidents.incident import Incident, IncidentCluster, IncidentStep

RULES = "resource.k8s.io/v1beta2"
DRA = "resource.k8s.io/v1"


@dataclass(frozen=True, kw_only=True)
class Invented:
    """The steps of an incident, what a page has to tell, and the controllers that are off.

    `on` are gates that are on in its cluster, besides those of the release, and `closed` are gates
    that are off. `about` is what in namespace `lab` is asked why: a pod, or `KIND/NAME`.
    """

    told: tuple[str, ...]
    steps: tuple[dict, ...]
    off: tuple[str, ...] = ()
    about: str = ""
    profile: str = "1.37"
    on: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def incident(self):
        """The incident as it is played."""
        return Incident(
            title="invented", kind="trap",
            cluster=IncidentCluster(
                profile=self.profile, off=list(self.off),
                gates={**dict.fromkeys(self.on, True), **dict.fromkeys(self.closed, False)},
            ),
            steps=[IncidentStep(**step) for step in self.steps],
        )  # fmt: skip


class Names:
    """Names that no page can know."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def __call__(self, stem):
        return f"{stem}{self.chance.randrange(100, 1_000)}"


def node(name, labels=None, **spec):
    room = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    labels = {"kubernetes.io/hostname": name, **(labels or {})}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": spec, "status": {"allocatable": room, "capacity": room, "conditions": [ready]},
    }  # fmt: skip


def driver_pod(name, on):
    """The pod of a driver, in namespace `drivers`, on its node."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "drivers"},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "example.com/d:1"}]},
    }  # fmt: skip


def slice_of(name, driver, pool, devices, *, generation=1, of=1, **where):
    return {
        "apiVersion": DRA, "kind": "ResourceSlice", "metadata": {"name": name},
        "spec": {
            "driver": driver, "devices": devices, **where,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": of},
        },
    }  # fmt: skip


def class_of(name, driver):
    selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
    return {"apiVersion": DRA, "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"selectors": [selector]}}  # fmt: skip


def ask(class_name, name="dev", **more):
    return {"name": name, "exactly": {"deviceClassName": class_name, **more}}


def claim(name, namespace, *requests, **devices):
    return {"apiVersion": DRA, "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": {"requests": list(requests), **devices}}}  # fmt: skip


def template(name, namespace, *requests):
    return {"apiVersion": DRA, "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": list(requests)}}}}  # fmt: skip


def pod(name, namespace, *, claim="", template=""):
    wanted = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    container = {"name": "main", "image": "example.com/job:1",
                 "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "d"}]}}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": [container],
                     "resourceClaims": [{"name": "d", **wanted}]}}  # fmt: skip


def space(name, **labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def rule(name, driver, **taint):
    return {"apiVersion": RULES, "kind": "DeviceTaintRule", "metadata": {"name": name},
            "spec": {"deviceSelector": {"driver": driver}, "taint": taint}}  # fmt: skip


def cel(expression):
    return [{"cel": {"expression": expression}}]


def cordoned_node_has_the_only_device(new):
    driver, space_, here, there = f"{new('d')}.test", new("ns"), new("node"), new("other")
    card = [{"name": "card-0", "attributes": {"gen": {"int": 4}}}]
    old = [{"name": "card-0", "attributes": {"gen": {"int": 3}}}]
    wanted = ask("c", selectors=cel(f"device.attributes['{driver}'].gen >= 4"))
    return Invented(
        told=(rf"{here}: node\(s\) were unschedulable", "but for that the pod would fit"),
        steps=(
            {"apply": [space(space_), class_of("c", driver), node(here, unschedulable=True),
                       node(there), slice_of("a", driver, here, card, nodeName=here),
                       slice_of("b", driver, there, old, nodeName=there)]},
            {"apply": [claim("want", space_, wanted), pod("job", space_, claim="want")]},
        ),
    )  # fmt: skip


def quota_leaves_no_claim(new):
    driver, space_, quota = f"{new('d')}.test", new("ns"), new("quota")
    hard = {"c.deviceclass.resource.k8s.io/devices": "1"}
    return Invented(
        told=(f"exceeded quota: {quota}",),
        steps=(
            {"apply": [space(space_), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n"),
                       {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard},
                        "metadata": {"name": quota, "namespace": space_}}]},
            {"wait": 5},
            {"apply": [template("one", space_, ask("c")), pod("first", space_, template="one")]},
            {"wait": 5},
            {"apply": [pod("second", space_, template="one")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def claim_is_reserved_for_a_deleted_pod(new):
    driver, space_, left = f"{new('d')}.test", new("ns"), new("left")
    return Invented(
        told=(f"claim {space_}/{left} holds devices that nobody uses", "pod that does not exist"),
        off=("claims",),
        steps=(
            {"apply": [space(space_), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       claim(left, space_, ask("c")), pod("old", space_, claim=left)]},
            {"wait": 5},
            {"delete": f"pod/{space_}/old", "now": True},
            {"wait": 30},
            {"apply": [claim("want", space_, ask("c")), pod("next", space_, claim="want")]},
            {"wait": 30},
        ),
    )  # fmt: skip


def pool_is_published_halfway(new):
    driver, rack, behind = f"{new('d')}.test", new("rack"), new("slow")
    return Invented(
        told=(rf"{driver}/{rack} of generation 2 is incomplete: 1 of 2",
              f"slice {behind} of generation 1"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"), node("m"),
                       slice_of("fast", driver, rack, [{"name": "x"}], of=2, nodeName="n"),
                       slice_of(behind, driver, rack, [{"name": "y"}], of=2, nodeName="m")]},
            {"patch": {"spec": {"pool": {"name": rack, "generation": 2, "resourceSliceCount": 2}}},
             "of": "resourceslice/fast"},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def device_cannot_be_attached(new):
    driver, port = f"{new('d')}.test", new("port")
    failed = {
        "type": "x.test/failed",
        "status": "True",
        "reason": "PortDown",
        "message": f"{port} is down",
        "lastTransitionTime": "2026-01-02T03:00:02Z",
    }
    nic = {"name": "nic-0", "bindingConditions": ["x.test/attached"], "bindsToNode": True,
           "bindingFailureConditions": ["x.test/failed"]}  # fmt: skip
    said = [{"driver": driver, "pool": "fab", "device": "nic-0", "conditions": [failed]}]
    return Invented(
        told=("device binding failed: claim=want", f"{port} is down"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "fab", [nic], nodeName="n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 2},
            {"status": {"devices": said}, "of": "resourceclaim/lab/want"},
            {"wait": 3},
        ),
    )  # fmt: skip


def tolerated_time_is_over(new):
    driver, hot = f"{new('d')}.test", new("hot")
    patience = {"key": "x.test/hot", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 60}  # fmt: skip
    return Invented(
        told=(f"by rule {hot}", "tolerated until 2026-01-02T03:01:10Z", "for 60 s"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       claim("want", "lab", ask("c", tolerations=[patience])),
                       pod("job", "lab", claim="want")]},
            {"wait": 10},
            {"apply": [rule(hot, driver, key="x.test/hot", effect="NoExecute")]},
            {"wait": 120},
        ),
    )  # fmt: skip


def namespace_lost_its_label(new):
    driver, space_ = f"{new('d')}.test", new("ns")
    label = "resource.kubernetes.io/admin-access"
    return Invented(
        told=(f"requires the `{label}: true` label on the containing namespace",),
        steps=(
            {"apply": [space(space_, **{label: "true"}), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       template("see", space_, ask("c", adminAccess=True))]},
            {"patch": {"metadata": {"labels": {label: None}}}, "of": f"namespace/{space_}"},
            {"apply": [pod("monitor", space_, template="see")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def class_was_deleted(new):
    driver, name = f"{new('d')}.test", new("class")
    return Invented(
        told=(f"device class {name} does not exist", f"DeviceClass {name} was deleted, by redra"),
        steps=(
            {"apply": [space("lab"), class_of(name, driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")]},
            {"delete": f"deviceclass/{name}"},
            {"apply": [claim("want", "lab", ask(name)), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def share_is_larger_than_what_is_left(new):
    driver, first = f"{new('d')}.test", new("big")
    nic = {"name": "eth1", "allowMultipleAllocations": True, "capacity": {"bw": {"value": "10Gi"}}}
    return Invented(
        told=(rf"capacity bw: needs 4Gi, 2Gi of 10Gi is free, held by lab/{first}",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [nic], nodeName="n"),
                       claim(first, "lab", ask("c", capacity={"requests": {"bw": "8Gi"}})),
                       pod("one", "lab", claim=first)]},
            {"wait": 5},
            {"apply": [claim("more", "lab", ask("c", capacity={"requests": {"bw": "4Gi"}})),
                       pod("two", "lab", claim="more")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def partition_blocks_the_whole(new):
    driver, small = f"{new('d')}.test", new("small")

    def part(name, tiles):
        drawn = {"counterSet": "die", "counters": {"tiles": {"value": str(tiles)}}}
        return {"name": name, "consumesCounters": [drawn], "attributes": {"tiles": {"int": tiles}}}

    counters = slice_of("counters", driver, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    tiles = {"tiles": {"value": "8"}}
    counters["spec"]["sharedCounters"] = [{"name": "die", "counters": tiles}]
    parts = [part("whole", 8), part("quarter", 2)]
    picks = {n: cel(f"device.attributes['{driver}'].tiles == {n}") for n in (2, 8)}
    return Invented(
        told=(rf"counter tiles of set die in {driver}/n: needs 8, 6 is left, held by lab/{small}",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"), counters,
                       slice_of("s", driver, "n", parts, of=2, nodeName="n"),
                       claim(small, "lab", ask("c", selectors=picks[2])),
                       pod("one", "lab", claim=small)]},
            {"wait": 5},
            {"apply": [claim("large", "lab", ask("c", selectors=picks[8])),
                       pod("two", "lab", claim="large")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def slices_are_for_a_label_that_no_node_has(new):
    driver, rack = f"{new('d')}.test", new("rack")
    wanted = {"key": "x.test/rack", "operator": "In", "values": [rack]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return Invented(
        told=(f"slice shelf is for nodes with x.test/rack In {rack}, and there is none",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n", {"x.test/rack": "other"}),
                       slice_of("shelf", driver, "p", [{"name": "x"}], nodeSelector=where),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def devices_hang_on_different_roots(new):
    driver, other = f"{new('d')}.test", f"{new('e')}.test"
    root = "resource.kubernetes.io/pcieRoot"

    def at(name, value):
        return [{"name": name, "attributes": {root: {"string": value}}}]

    return Invented(
        told=("resource.kubernetes.io/pcieRoot is pci0000:80, which does not match pci0000:00",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), class_of("e", other), node("n"),
                       slice_of("s", driver, "n", at("card", "pci0000:00"), nodeName="n"),
                       slice_of("t", other, "n", at("nic", "pci0000:80"), nodeName="n"),
                       claim("pair", "lab", ask("c", "card"), ask("e", "nic"),
                             constraints=[{"matchAttribute": root}]),
                       pod("job", "lab", claim="pair")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def toleration_has_another_value(new):
    driver, name = f"{new('d')}.test", new("rule")
    meant = {"key": "x.test/m", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
    return Invented(
        told=(rf"taint x.test/m=yes:NoSchedule by rule {name} is not tolerated",
              "tolerates x.test/m=true:NoSchedule, which does not fit"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       rule(name, driver, key="x.test/m", value="yes", effect="NoSchedule"),
                       claim("want", "lab", ask("c", tolerations=[meant])),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def driver_has_published_nothing(new):
    return Invented(
        told=("no ResourceSlice is published",),
        steps=(
            {"apply": [space("lab"), class_of("c", f"{new('d')}.test"), node("n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def claim_is_in_another_namespace(new):
    driver, name, other = f"{new('d')}.test", new("shared"), new("other")
    return Invented(
        told=(f'could not find ResourceClaim "lab/{name}"',
              f"there is a claim {name} in namespace {other}"),
        steps=(
            {"apply": [space("lab"), space(other), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       claim(name, other, ask("c")), pod("job", "lab", claim=name)]},
            {"wait": 5},
        ),
    )  # fmt: skip


def driver_withdrew_a_device_in_use(new):
    driver, name = f"{new('d')}.test", new("slice")
    return Invented(
        told=(rf"slice {name}, which had {driver}/n/x, was deleted, by redra",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of(name, driver, "n", [{"name": "x"}], nodeName="n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"delete": f"resourceslice/{name}"},
            {"wait": 5},
            {"apply": [slice_of("new", driver, "n", [{"name": "x0"}], generation=2,
                                nodeName="n")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def healthy(new):
    """A cluster in which nothing is wrong: pods come, run and go, a node and a device rest."""
    driver, space_ = f"{new('d')}.test", new("ns")
    idle, busy, spare = new("idle"), new("busy"), new("spare")
    devices = [{"name": f"dev-{n}", "attributes": {"gen": {"int": n}}} for n in range(4)]
    resting = rule("rest", driver, key="example.com/rest", value="yes", effect="NoSchedule")
    resting["spec"]["deviceSelector"] = {"driver": driver, "pool": spare, "device": "dev-3"}
    names, users = ([new(stem) for _ in range(3)] for stem in ("job", "user"))
    later = slice_of(f"s-{spare}", driver, spare, devices, generation=2, nodeName=spare)
    return Invented(
        told=(),
        steps=(
            {"apply": [space(space_), class_of("c", driver), node(busy), node(spare),
                       node(idle, unschedulable=True)]},
            {"apply": [slice_of(f"s-{name}", driver, name, devices, nodeName=name)
                       for name in (busy, spare, idle)]},
            {"apply": [resting, template("t", space_, ask("c")),
                       claim("shared", space_, ask("c", selectors=cel(
                           f"device.attributes['{driver}'].gen < 3")))]},
            {"apply": [pod(name, space_, template="t") for name in names]},
            {"apply": [pod(name, space_, claim="shared") for name in users]},
            {"wait": 30},
            {"delete": f"pod/{space_}/{names[0]}"},
            {"wait": 120},
            {"apply": [later]},
            {"apply": [pod(new("late"), space_, template="t")]},
            {"wait": 30},
        ),
    )  # fmt: skip


INVENTED = (
    cordoned_node_has_the_only_device,
    quota_leaves_no_claim,
    claim_is_reserved_for_a_deleted_pod,
    pool_is_published_halfway,
    device_cannot_be_attached,
    tolerated_time_is_over,
    namespace_lost_its_label,
    class_was_deleted,
    share_is_larger_than_what_is_left,
    partition_blocks_the_whole,
    slices_are_for_a_label_that_no_node_has,
    devices_hang_on_different_roots,
    toleration_has_another_value,
    driver_has_published_nothing,
    claim_is_in_another_namespace,
    driver_withdrew_a_device_in_use,
)
