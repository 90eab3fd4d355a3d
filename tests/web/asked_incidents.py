"""Incidents whose objects other people changed, made with kubectl first, then written down."""

from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    rule,
    slice_of,
    space,
    template,
)
from tests.web.reported_incidents import lab, one

BY = r"by \S+ at 20\S+"


def patch_removes_what_a_selector_reads(new):
    """An administrator's patch removes the attribute that the selector of a request reads."""
    driver, hide, key = f"{new('d')}.test", new("hide"), new("model")
    cards = [{"name": name, "attributes": {key: {"string": "large"}}} for name in ("g0", "g1")]
    filtered = {"filter": {"driver": driver}, "attributes": {f"{driver}/{key}": {"null": {}}}}
    patch = {"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlicePatch",
             "metadata": {"name": hide}, "spec": {"devices": filtered}}  # fmt: skip
    wanted = ask("c", selectors=cel(f"device.attributes['{driver}'].{key} == 'large'"))
    return Invented(
        about="job",
        told=(rf"patch {hide} .{{0,80}}attribute {driver}/{key}.{{0,20}}\blarge\b.{{0,120}}"
              rf"request dev of claim want",),
        on=("DRAAdminControlledDeviceAttributes",),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", cards, nodeName="n"))},
            {"apply": [claim("kept", "lab", wanted), pod("before", "lab", claim="kept")]},
            {"wait": 20},
            {"apply": [patch]},
            {"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def patch_removes_what_a_held_device_was_chosen_for(new):
    """The same, asked about the claim that has one of the devices already."""
    made = patch_removes_what_a_selector_reads(new)
    (hide,) = (step["apply"][0]["metadata"]["name"] for step in made.steps[3:4])
    return Invented(
        about="resourceclaim/kept",
        told=(rf"no longer matches request dev.{{0,80}}patch {hide}\b",),
        on=made.on,
        steps=made.steps,
    )


def attachment_fails_each_time(new):
    """The switch of a fabric refuses a device at each try, and the next try is under way."""
    driver, why = f"{new('fabric')}.test", f"port {new('')} is down"
    card = {"name": "f0", "bindingConditions": ["x.test/attached"], "bindsToNode": True,
            "bindingFailureConditions": ["x.test/attach-failed"]}  # fmt: skip
    failed = {"type": "x.test/attach-failed", "status": "True", "reason": "PortDown",
              "message": why, "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    report = {"driver": driver, "pool": "n", "device": "f0", "conditions": [failed]}
    tries = ({"status": {"devices": [report]}, "of": "resourceclaim/lab/want"}, {"wait": 12})
    return Invented(
        about="job",
        told=(rf"its binding failed 2 times, last.{{0,80}}device binding failed.{{0,60}}{why}",),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [card], nodeName="n"))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 2},
            *tries,
            *tries,
        ),
    )


def deadline_passes_while_a_pod_waits(new):
    """The deadline of a Job passes while its pod waits for the device of another pod."""
    driver, other = f"{new('d')}.test", new("notebook")
    run = {**pod("x", "lab", template="t")["spec"], "restartPolicy": "Never"}
    job = {"apiVersion": "batch/v1", "kind": "Job",
           "metadata": {"name": "train", "namespace": "lab"},
           "spec": {"activeDeadlineSeconds": 60, "template": {"spec": run}}}  # fmt: skip
    return Invented(
        about="job/train",
        told=(r"\bFailed\b", "DeadlineExceeded", rf"x: allocated|allocated to lab/{other}"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template("t", "lab", ask("c"))]},
            {"apply": [claim(other, "lab", ask("c")), pod("first", "lab", claim=other)]},
            {"wait": 10},
            {"apply": [job]},
            {"wait": 100},
        ),
    )  # fmt: skip


def device_taint_asks_no_budget(new):
    """A rule evicts a pod of a budget that allows no eviction."""
    driver, keep, name = f"{new('d')}.test", new("keep"), new("rule")
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
              "metadata": {"name": keep, "namespace": "lab"},
              "spec": {"minAvailable": 1,
                       "selector": {"matchLabels": {"app": "serve"}}}}  # fmt: skip
    run = pod("serve", "lab", claim="want")
    run["metadata"]["labels"] = {"app": "serve"}
    return Invented(
        about="serve",
        told=(rf"PodDisruptionBudget lab/{keep} .{{0,80}}taints of devices",),
        steps=(
            {"apply": lab(driver, one(driver), budget)},
            {"apply": [claim("want", "lab", ask("c")), run]},
            {"wait": 20},
            {"apply": [rule(name, driver, key="x.test/old", effect="NoExecute")]},
            {"wait": 60},
        ),
    )


def daemon_has_the_only_device(new):
    """The pod of a DaemonSet took the only device of its node before the work came."""
    driver, agent, team = f"{new('d')}.test", new("agent"), new("watch")
    run = pod("x", team, template="t")["spec"]
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet",
              "metadata": {"name": agent, "namespace": team},
              "spec": {"selector": {"matchLabels": {"app": agent}},
                       "template": {"metadata": {"labels": {"app": agent}},
                                    "spec": run}}}  # fmt: skip
    return Invented(
        about="job",
        told=(rf"is used by pod {team}/{agent}-\w+ of DaemonSet {agent}\b",),
        steps=(
            {"apply": [*lab(driver, one(driver)), space(team), template("t", team, ask("c"))]},
            {"apply": [daemon]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def extended_resource_on_half_a_pool(new):
    """A driver has published one of two slices, and another node has one device too few."""
    driver, name = f"{new('d')}.test", f"{new('x')}.test/card"
    made = class_of("c", driver)
    made["spec"]["extendedResourceName"] = name
    cards = [{"name": "g0"}, {"name": "g1"}]
    amounts = {"cpu": "1", name: "2"}
    container = {"name": "main", "image": "example.com/job:1",
                 "resources": {"limits": amounts, "requests": amounts}}  # fmt: skip
    job = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job", "namespace": "lab"},
           "spec": {"containers": [container]}}  # fmt: skip
    return Invented(
        about="job",
        told=(rf"request container-0-request-1 \({name} of container main\) wants 2\b",),
        steps=(
            {"apply": [space("lab"), node("n"), node("m"), made,
                       slice_of("half", driver, "n", cards, of=2, nodeName="n"),
                       slice_of("s", driver, "m", cards[:1], nodeName="m")]},
            {"apply": [job]},
            {"wait": 20},
        ),
    )  # fmt: skip


def bandwidth_is_used_from_another_namespace(new):
    """A stream of another team has most of the bandwidth of a shared card."""
    driver, team, stream = f"{new('d')}.test", new("team"), new("stream")
    card = {"name": "nic", "allowMultipleAllocations": True,
            "capacity": {"bandwidth": {"value": "10G"}}}  # fmt: skip

    def wanting(amount):
        return ask("c", capacity={"requests": {"bandwidth": amount}})

    return Invented(
        about="job",
        told=(r"needs 4G, 1G of 10G is free",
              rf"of capacity bandwidth of {driver}/n/nic, {team}/{stream} has 8G, "
              r"lab/probe has 1G"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [card], nodeName="n")),
                       space(team)]},
            {"apply": [claim(stream, team, wanting("8G")), pod("sender", team, claim=stream)]},
            {"wait": 10},
            {"apply": [claim("probe", "lab", wanting("1G")), pod("probe", "lab", claim="probe")]},
            {"wait": 10},
            {"apply": [claim("want", "lab", wanting("4G")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def driver_left_all_nodes_that_have_other_devices(new):
    """The only slice of a driver was deleted; its node has devices of another driver, as well."""
    team = new("gpu")
    driver, other, mine = f"{team}.example.com", "cut.example.com", new("slice")
    return Invented(
        about="job",
        told=(rf"class c selects driver {driver}, which publishes no slice here; slices here are",
              rf"slice {mine} of pool {driver}/n, for node n, was deleted, {BY}"),
        steps=(
            {"apply": lab(driver, one(driver, mine), one(other, "cut"))},
            {"wait": 60},
            {"delete": f"resourceslice/{mine}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


ASKED = (
    driver_left_all_nodes_that_have_other_devices,
    patch_removes_what_a_selector_reads,
    patch_removes_what_a_held_device_was_chosen_for,
    attachment_fails_each_time,
    deadline_passes_while_a_pod_waits,
    device_taint_asks_no_budget,
    daemon_has_the_only_device,
    extended_resource_on_half_a_pool,
    bandwidth_is_used_from_another_namespace,
)
