"""Further incidents that are in no list; what was changed before is a part of their causes."""

from tests.web.invented import (
    Invented,
    ask,
    claim,
    class_of,
    node,
    pod,
    slice_of,
    space,
    template,
)


def quota(name, namespace, **hard):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard},
            "metadata": {"name": name, "namespace": namespace}}  # fmt: skip


def with_cpu(tree, cpu):
    tree["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return tree


def node_was_labelled_anew(new):
    """The devices of a rack are for its nodes, and the only one was given another label."""
    driver, here = f"{new('d')}.test", new("node")
    rack, moved = new("rack"), new("moved")
    wanted = {"key": "x.test/rack", "operator": "In", "values": [rack]}
    where = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return Invented(
        about="job",
        told=(f"slice shelf is for nodes with x.test/rack In {rack}, and there is none",
              rf"node {here}\b.{{0,60}}{rack}.{{0,60}}{moved}.{{0,40}}by redra"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here, {"x.test/rack": rack}),
                       slice_of("shelf", driver, "p", [{"name": "x"}], nodeSelector=where)]},
            {"wait": 60},
            {"patch": {"metadata": {"labels": {"x.test/rack": moved}}}, "of": f"node/{here}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def device_shrank_below_its_use(new):
    """A driver publishes less bandwidth than a claim has already been given."""
    driver, first, name = f"{new('d')}.test", new("big"), new("slice")

    def nic(bandwidth):
        return {"name": "eth1", "allowMultipleAllocations": True,
                "capacity": {"bw": {"value": bandwidth}}}  # fmt: skip

    return Invented(
        about="two",
        told=(rf"bw\b.{{0,60}}of 6Gi.{{0,60}}held by lab/{first}",
              rf"slice {name}\b.{{0,120}}10Gi.{{0,60}}6Gi.{{0,60}}by redra"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of(name, driver, "n", [nic("10Gi")], nodeName="n"),
                       claim(first, "lab", ask("c", capacity={"requests": {"bw": "8Gi"}})),
                       pod("one", "lab", claim=first)]},
            {"wait": 5},
            {"apply": [slice_of(name, driver, "n", [nic("6Gi")], generation=2, nodeName="n")]},
            {"wait": 5},
            {"apply": [claim("more", "lab", ask("c", capacity={"requests": {"bw": "1Gi"}})),
                       pod("two", "lab", claim="more")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def two_nodes_publish_one_pool(new):
    """The driver's instances on two nodes name their pools and devices alike."""
    driver, pool, first = f"{new('d')}.test", new("pool"), new("first")
    here, there, left, right = new("node"), new("other"), new("left"), new("right")
    card = [{"name": "card-0"}]
    return Invented(
        about="second",
        told=(
            rf"card-0\b.{{0,60}}allocated to lab/{first}",
            rf"slice {left}.{{0,30}}{here}", rf"slice {right}.{{0,30}}{there}",
        ),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here), node(there),
                       slice_of(left, driver, pool, card, nodeName=here),
                       slice_of(right, driver, pool, card, nodeName=there)]},
            {"apply": [claim(first, "lab", ask("c")), pod("one", "lab", claim=first)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("second", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def alternative_is_over_the_quota(new):
    """A quota counts the largest alternative, which the namespace may never have."""
    driver, limit, large, small = f"{new('d')}.test", new("quota"), new("large"), new("small")
    tree = template("either", "lab")
    tree["spec"]["spec"]["devices"]["requests"] = [
        {"name": "dev", "firstAvailable": [
            {"name": large, "deviceClassName": "c", "allocationMode": "ExactCount", "count": 4},
            {"name": small, "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1},
        ]},
    ]  # fmt: skip
    return Invented(
        about="job",
        told=(f"exceeded quota: {limit}", rf"alternative {large}\b.{{0,80}}4"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n"),
                       quota(limit, "lab", **{"c.deviceclass.resource.k8s.io/devices": "2"})]},
            {"wait": 5},
            {"apply": [tree, pod("job", "lab", template="either")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def shared_claim_keeps_pods_on_a_full_node(new):
    """A claim that is used already lies on a node whose processors are taken."""
    driver, here, there = f"{new('d')}.test", new("node"), new("other")
    shared, first = new("shared"), new("first")
    return Invented(
        about="second",
        told=(rf"{here}: Insufficient cpu", rf"claim (lab/)?{shared} is allocated on node {here}",
              rf"reserved for {first}", rf"{there}: "),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node(here),
                       slice_of("s", driver, here, [{"name": "x"}], nodeName=here),
                       claim(shared, "lab", ask("c")),
                       with_cpu(pod(first, "lab", claim=shared), "12")]},
            {"wait": 20},
            {"apply": [node(there)]},
            {"apply": [with_cpu(pod("second", "lab", claim=shared), "8")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def extended_resource_has_another_name(new):
    """The class that stood for an extended resource stands for another one now."""
    driver, name = f"{new('d')}.test", new("class")
    old, now = f"x.test/{new('card')}", f"x.test/{new('gpu')}"
    tree = class_of(name, driver)
    tree["spec"]["extendedResourceName"] = old
    wanted = pod("job", "lab", claim="no")
    del wanted["spec"]["resourceClaims"]
    wanted["spec"]["containers"][0]["resources"] = {"requests": {old: "1"}, "limits": {old: "1"}}
    return Invented(
        about="job",
        told=(f"Insufficient {old}",
              rf"DeviceClass {name}\b.{{0,80}}{old}.{{0,80}}{now}.{{0,60}}by redra"),
        steps=(
            {"apply": [space("lab"), tree, node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")]},
            {"wait": 20},
            {"patch": {"spec": {"extendedResourceName": now}}, "of": f"deviceclass/{name}"},
            {"apply": [wanted]},
            {"wait": 20},
        ),
    )  # fmt: skip


def finished_jobs_use_up_the_quota(new):
    """Claims that jobs left behind when they were done count as much as those in use."""
    driver, limit, left = f"{new('d')}.test", new("quota"), new("left")
    return Invented(
        about="next",
        told=(f"exceeded quota: {limit}", rf"lab/{left}\b.{{0,120}}nobody uses"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n"),
                       quota(limit, "lab", **{"c.deviceclass.resource.k8s.io/devices": "1"})]},
            {"wait": 5},
            {"apply": [claim(left, "lab", ask("c")), pod("done", "lab", claim=left)]},
            {"wait": 20},
            {"status": {"phase": "Succeeded"}, "of": "pod/lab/done"},
            {"wait": 20},
            {"apply": [template("one", "lab", ask("c")), pod("next", "lab", template="one")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def extended_resource_uses_up_the_quota(new):
    """Devices of claims count under the name of the extended resource that their class has."""
    driver, limit, left, name = f"{new('d')}.test", new("quota"), new("left"), f"x.test/{new('g')}"
    tree = class_of("c", driver)
    tree["spec"]["extendedResourceName"] = name
    return Invented(
        about="next",
        told=(f"exceeded quota: {limit}", rf"lab/{left}\b.{{0,120}}nobody uses",
              rf"1 claim uses 1 of requests\.{name}"),
        steps=(
            {"apply": [space("lab"), tree, node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n"),
                       quota(limit, "lab", **{f"requests.{name}": "1"})]},
            {"wait": 5},
            {"apply": [claim(left, "lab", ask("c"))]},
            {"wait": 20},
            {"apply": [template("one", "lab", ask("c")), pod("next", "lab", template="one")]},
            {"wait": 20},
        ),
    )  # fmt: skip


MORE = (
    node_was_labelled_anew,
    device_shrank_below_its_use,
    two_nodes_publish_one_pool,
    alternative_is_over_the_quota,
    shared_claim_keeps_pods_on_a_full_node,
    extended_resource_has_another_name,
    finished_jobs_use_up_the_quota,
    extended_resource_uses_up_the_quota,
)
