"""Incidents of a night on call, with the words of their causes, fixed before a look."""

from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    driver_pod,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.reported_incidents import lab, one


def container_waits(reason, *, name="main", restarts=0):
    """The status of a container that waits."""
    return {"containerStatuses": [
        {"name": name, "ready": False, "restartCount": restarts, "image": "example.com/job:1",
         "imageID": "", "state": {"waiting": {"reason": reason}}}]}  # fmt: skip


def deployment(name, spec, replicas=1, **more):
    """A Deployment of pods with this spec in namespace `lab`."""
    label = {"app": name}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": label}, **more,
                 "template": {"metadata": {"labels": label}, "spec": spec}},
    }  # fmt: skip


def with_priority(tree, name, cpu):
    tree["spec"]["priorityClassName"] = name
    tree["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return tree


def driver_crash_loops(new):
    """The driver's pod on a node restarts again and again, and its slice has been taken away."""
    driver, plugin, here, name = f"{new('d')}.test", new("plugin"), new("node"), new("slice")
    return Invented(
        about="job",
        told=(rf"slice {name}\b.{{0,80}}was deleted, by redra",
              rf"pod drivers/{plugin}\b.{{0,120}}CrashLoopBackOff"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, one(driver, name, on=here), on=here), space("drivers"),
                       driver_pod(plugin, here)]},
            {"wait": 60},
            {"status": container_waits("CrashLoopBackOff", restarts=9),
             "of": f"pod/drivers/{plugin}"},
            {"wait": 30},
            {"delete": f"resourceslice/{name}"},
            {"wait": 30},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def slice_selects_a_label_that_is_misspelled(new):
    """A driver publishes for nodes with a label whose key is spelled in another way on nodes."""
    driver, name, zone, here = f"{new('d')}.test", new("slice"), new("zone"), new("node")
    wanted = {"key": "topology.kubernetes.io/zones", "operator": "In", "values": [zone]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return Invented(
        about="job",
        told=(rf"slice {name} is for nodes with topology.kubernetes.io/zones In {zone}, and there "
              "is none", rf"topology.kubernetes.io/zone={zone}\b"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver),
                       node(here, {"topology.kubernetes.io/zone": zone}),
                       slice_of(name, driver, "fab", [{"name": "x"}], nodeSelector=where)]},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def quota_counts_claims(new):
    """A namespace may have two claims, and the third pod's claim is not made."""
    driver, limit, third = f"{new('d')}.test", new("quota"), new("pod")
    hard = {"apiVersion": "v1", "kind": "ResourceQuota",
            "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "2"}},
            "metadata": {"name": limit, "namespace": "lab"}}  # fmt: skip
    devices = [{"name": f"x{number}"} for number in range(4)]
    return Invented(
        about=third,
        told=(f"exceeded quota: {limit}", r"count/resourceclaims\.resource\.k8s\.io"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", devices, nodeName="n")),
                       template("t", "lab", ask("c")), hard]},
            {"wait": 5},
            {"apply": [pod("one", "lab", template="t"), pod("two", "lab", template="t")]},
            {"wait": 20},
            {"apply": [pod(third, "lab", template="t")]},
            {"wait": 60},
        ),
    )  # fmt: skip


def rule_only_informs(new):
    """A rule was left with effect None after a trial, and no pod leaves the broken device."""
    driver, name = f"{new('d')}.test", new("drain")
    return Invented(
        about=f"devicetaintrule/{name}",
        told=(r"effect (is )?None", r"1 device\b", r"(nobody|no pod)\b.{0,60}evicted"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [rule(name, driver, key="x.test/broken", effect="None")]},
            {"wait": 120},
        ),
    )  # fmt: skip


def rule_by_pool_hits_another_driver(new):
    """A rule takes the cards of a node out of use by the name of their pool, and the NICs go too.

    Drivers name pools after their nodes, so pools of several drivers have one name.
    """
    cards, nics, here, name = f"{new('c')}.test", f"{new('n')}.test", new("node"), new("repair")
    tree = rule(name, cards, key="x.test/repair", effect="NoExecute")
    tree["spec"]["deviceSelector"] = {"pool": here}
    return Invented(
        about=f"devicetaintrule/{name}",
        told=(rf"{name}\b", rf"eth0 of {nics}/{here}|{nics}/{here}/eth0\b",
              r"x\.test/repair:NoExecute", rf"2 (devices|drivers)\b.{{0,120}}{cards}"),
        steps=(
            {"apply": [space("lab"), class_of("c", nics), node(here),
                       one(cards, "a", "card-0", on=here), one(nics, "b", "eth0", on=here)]},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [tree]},
            {"wait": 60},
        ),
    )  # fmt: skip


def preemption_frees_no_device(new):
    """Pods of low priority could go, and their processors with them, but they hold no device."""
    driver, first, victim = f"{new('d')}.test", new("holder"), new("low")
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    values = {"low": 1, "high": 100}
    classes = [
        {**kind, "value": values[name], "metadata": {"name": name}} for name in ("low", "high")
    ]
    plain = pod(victim, "lab", claim="no")
    del plain["spec"]["resourceClaims"], plain["spec"]["containers"][0]["resources"]["claims"]
    return Invented(
        about="urgent",
        told=(rf"allocated to lab/{first}", r"[Pp]reemption",
              r"(no(t| pod)|never)\b.{0,80}(free|give|preempt|evict)"),
        steps=(
            {"apply": [*lab(driver, one(driver)), *classes]},
            {"apply": [claim(first, "lab", ask("c")),
                       with_priority(pod("old", "lab", claim=first), "high", "1"),
                       with_priority(plain, "low", "8")]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")),
                       with_priority(pod("urgent", "lab", claim="want"), "high", "1")]},
            {"wait": 60},
        ),
    )  # fmt: skip


def one_slice_of_eight_is_gone(new):
    """Somebody deleted one of the slices of a large pool, so the whole pool counts as updated."""
    driver, rack, gone = f"{new('d')}.test", new("rack"), new("part")
    names = [gone if number == 3 else f"s{number}" for number in range(8)]
    parts = [
        slice_of(name, driver, rack, [{"name": f"x-{name}"}], of=8, nodeName="n") for name in names
    ]
    return Invented(
        about="job",
        told=(rf"{driver}/{rack}\b.{{0,60}}incomplete: 7 of 8",
              rf"slice {gone}\b.{{0,120}}was deleted, by redra"),
        steps=(
            {"apply": lab(driver, *parts)},
            {"wait": 60},
            {"delete": f"resourceslice/{gone}"},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c", allocationMode="All")),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def release_is_compared_as_text(new):
    """A release is published as text and compared as text, in which 570 is less than 8."""
    driver = f"{new('d')}.test"
    of = f"device.attributes['{driver}'].release"
    return Invented(
        about="job",
        told=(r"release >= '80\.0'", r"release (is|=|==) ['\"]?570\.12", r"(text|string)"),
        steps=(
            {"apply": lab(driver, one(driver, attributes={"release": {"string": "570.12"}}))},
            {"apply": [claim("want", "lab", ask("c", selectors=cel(f"{of} >= '80.0'"))),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def patch_promises_more_memory_than_there_is(new):
    """An administrator's patch says 80Gi where the driver says 40Gi, and the driver refuses."""
    driver, name = f"{new('d')}.test", new("patch")
    tree = {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlicePatch",
            "metadata": {"name": name},
            "spec": {"devices": {"filter": {"driver": driver},
                                 "capacity": {f"{driver}/memory": {"value": "80Gi"}}}}}  # fmt: skip
    wanted = cel(f"device.capacity['{driver}'].memory.compareTo(quantity('60Gi')) >= 0")
    said = "Failed to prepare dynamic resources: no device with 60Gi of memory"
    return Invented(
        about="job",
        told=("no device with 60Gi of memory", rf"80Gi by patch {name}\b", r"40Gi"),
        on=("DRAAdminControlledDeviceAttributes",),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, one(driver, capacity={"memory": {"value": "40Gi"}})), tree]},
            {"apply": [claim("want", "lab", ask("c", selectors=wanted)),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [told_by_kubelet(new, "job", "FailedPrepareDynamicResources", said)]},
            {"wait": 60},
        ),
    )  # fmt: skip


def node_was_registered_anew(new):
    """A node was deleted and came back under its name, and its driver has not published since."""
    driver, here, name = f"{new('d')}.test", new("node"), new("slice")
    return Invented(
        about="job",
        told=(rf"slice {name}\b.{{0,120}}was deleted, by redra",
              rf"node {here} was (deleted|made anew|registered anew|created)\b.{{0,80}}by redra"),
        steps=(
            {"apply": lab(driver, one(driver, name, on=here), on=here)},
            {"wait": 60},
            {"delete": f"node/{here}"},
            {"delete": f"resourceslice/{name}"},
            {"wait": 60},
            {"apply": [node(here)]},
            {"wait": 30},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def drivers_write_one_attribute_in_two_types(new):
    """A card and a NIC are on one root, which one driver writes as a number, the other as text."""
    cards, nics = f"{new('c')}.test", f"{new('n')}.test"
    root = "x.test/numa"
    return Invented(
        about="job",
        told=(r"numa\b.{0,120}(int|number)", r"numa\b.{0,120}(string|text)",
              "matchAttribute|match"),
        steps=(
            {"apply": [space("lab"), class_of("card", cards), class_of("nic", nics), node("n"),
                       one(cards, "a", "card-0", attributes={root: {"int": 0}}),
                       one(nics, "b", "eth0", attributes={root: {"string": "0"}})]},
            {"apply": [claim("want", "lab", ask("card", "card"), ask("nic", "nic"),
                             constraints=[{"matchAttribute": root}]),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def claim_is_in_another_namespace(new):
    """A pod names a claim that was made in the namespace of another team."""
    driver, other, name = f"{new('d')}.test", new("team"), new("claim")
    return Invented(
        about="job",
        told=(rf'could not find ResourceClaim "lab/{name}"|{name}" not found',
              rf"(namespace {other}\b|{other}/{name}\b)"),
        steps=(
            {"apply": [*lab(driver, one(driver)), space(other), claim(name, other, ask("c"))]},
            {"wait": 5},
            {"apply": [pod("job", "lab", claim=name)]},
            {"wait": 20},
        ),
    )  # fmt: skip


def class_is_misspelled(new):
    """A claim names a class with a typing error."""
    driver, name = f"{new('d')}.test", new("gpu-large-")
    typo = name.replace("large", "lagre")
    tree = lab(driver, one(driver))
    tree[1] = class_of(name, driver)
    return Invented(
        about="job",
        told=(rf"device class {typo} does not exist", rf"(mean|nearest|is there).{{0,40}}{name}"),
        steps=(
            {"apply": tree},
            {"apply": [claim("want", "lab", ask(typo)), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def toleration_is_misspelled(new):
    """A claim tolerates a key that differs from the taint's in one letter."""
    driver, hot, stem = f"{new('d')}.test", new("hot"), new("maintenance")
    key, typo = f"x.test/{stem}", f"x.test/{stem.replace('maint', 'miant')}"
    patience = {"key": typo, "operator": "Exists", "effect": "NoSchedule"}
    return Invented(
        about="job",
        told=(rf"tainted {key}:NoSchedule|taint {key}:NoSchedule", rf"rule {hot}\b",
              rf"tolerates {typo}\b"),
        steps=(
            {"apply": [*lab(driver, one(driver)), rule(hot, driver, key=key, effect="NoSchedule")]},
            {"apply": [claim("want", "lab", ask("c", tolerations=[patience])),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def rolling_update_waits_for_itself(new):
    """All devices are held by the old pods of a Deployment whose new pod has to run first."""
    driver, name = f"{new('d')}.test", new("serve")
    spec = pod("no", "lab", template="t")["spec"]
    again = {"spec": {"template": {"metadata": {"annotations": {"rolled": "again"}}}}}
    surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return Invented(
        told=(rf"deployment (lab/)?{name}\b", r"allocated|holds?\b",
              r"(old|earlier|former)\b.{0,80}(pod|replica)"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("t", "lab", ask("c"))]},
            {"apply": [deployment(name, spec, strategy=surge)]},
            {"wait": 60},
            {"patch": again, "of": f"deployment/lab/{name}"},
            {"wait": 120},
        ),
    )  # fmt: skip


def driver_taints_a_card_after_an_error(new):
    """A driver has found errors on a card, and tells so by a taint in its slice."""
    driver, name = f"{new('d')}.test", new("slice")
    taint = {"key": f"{driver}/ecc", "value": "uncorrectable", "effect": "NoSchedule"}
    return Invented(
        about="job",
        told=(rf"{driver}/ecc=uncorrectable:NoSchedule",
              rf"slice {name}\b.{{0,160}}by redra:incidents at 2026-01-02T03:01"),
        steps=(
            {"apply": lab(driver, one(driver, name))},
            {"wait": 60},
            {"apply": [one(driver, name, taints=[taint])]},
            {"wait": 30},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def new_node_has_no_driver(new):
    """A node joined, but the pod of the driver does not tolerate its taint, so it has no slice."""
    driver, old, fresh, plugin = f"{new('d')}.test", new("old"), new("fresh"), new("plugin")
    joined = node(fresh, taints=[{"key": "x.test/gpu", "value": "yes", "effect": "NoSchedule"}])
    label = {"app": plugin}
    daemons = {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": plugin, "namespace": "drivers"},
        "spec": {"selector": {"matchLabels": label}, "template": {
            "metadata": {"labels": label},
            "spec": {"containers": [{"name": "main", "image": "example.com/d:1"}]}}},
    }  # fmt: skip
    first = new("first")
    wanted = pod("job", "lab", claim="want")
    wanted["spec"]["tolerations"] = [{"key": "x.test/gpu", "operator": "Exists"}]
    return Invented(
        about="job",
        told=(rf"allocated to lab/{first}", rf"{fresh}\b.{{0,120}}no device",
              rf"no (slice|driver)\b.{{0,120}}{fresh}|{fresh}\b.{{0,160}}no (slice|driver)"),
        steps=(
            {"apply": [*lab(driver, one(driver, on=old), on=old), space("drivers"), daemons]},
            {"apply": [claim(first, "lab", ask("c")), pod("holder", "lab", claim=first)]},
            {"wait": 60},
            {"apply": [joined]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), wanted]},
            {"wait": 20},
        ),
    )  # fmt: skip


def node_is_full_of_pods(new):
    """A node has free devices and may have no further pod."""
    driver, here = f"{new('d')}.test", new("node")
    small = node(here)
    for amounts in ("allocatable", "capacity"):
        small["status"][amounts] = {**small["status"][amounts], "pods": "3"}
    plain = pod("web-{n}", "lab", claim="no")
    del plain["spec"]["resourceClaims"], plain["spec"]["containers"][0]["resources"]["claims"]
    return Invented(
        about="job",
        told=(rf"{here}: Too many pods", r"3 (of 3 )?pods"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), small, one(driver, on=here)]},
            {"apply": [plain], "repeat": 3},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def driver_ends_the_sharing_of_a_device(new):
    """A new version of a driver publishes a device without sharing, and it is given away whole.

    The claim that has a share of it stays.
    """
    driver, first, second = f"{new('d')}.test", new("first"), new("second")
    alone = {"name": "x", "capacity": {"memory": {"value": "40Gi"}}}
    wanted = ask("c", capacity={"requests": {"memory": "10Gi"}})

    def slice_at(generation, device):
        return slice_of("s", driver, "n", [device], generation=generation, nodeName="n")

    shared = slice_at(1, {**alone, "allowMultipleAllocations": True})
    return Invented(
        told=(rf"{driver}/n/x is allocated 2 times, 1 of them in shares", rf"lab/{first}\b",
              rf"lab/{second}\b"),
        on=("DRAConsumableCapacity",),
        steps=(
            {"apply": [*lab(driver, shared), claim(first, "lab", wanted),
                       pod("one", "lab", claim=first)]},
            {"wait": 10},
            {"apply": [slice_at(2, alone), claim(second, "lab", wanted),
                       pod("two", "lab", claim=second)]},
            {"wait": 20},
        ),
    )  # fmt: skip


NIGHT = (
    driver_ends_the_sharing_of_a_device,
    driver_crash_loops,
    slice_selects_a_label_that_is_misspelled,
    quota_counts_claims,
    rule_only_informs,
    rule_by_pool_hits_another_driver,
    preemption_frees_no_device,
    one_slice_of_eight_is_gone,
    release_is_compared_as_text,
    patch_promises_more_memory_than_there_is,
    node_was_registered_anew,
    drivers_write_one_attribute_in_two_types,
    claim_is_in_another_namespace,
    class_is_misspelled,
    toleration_is_misspelled,
    rolling_update_waits_for_itself,
    driver_taints_a_card_after_an_error,
    new_node_has_no_driver,
    node_is_full_of_pods,
)
