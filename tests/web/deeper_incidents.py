"""Incidents whose causes lie a step behind what nodes say, written down before a look."""

from tests.web.invented import (
    Invented,
    ask,
    cel,
    claim,
    class_of,
    node,
    pod,
    slice_of,
    space,
    template,
)
from tests.web.reported_incidents import lab, one

BY = r"by \S+ at 2026-01-02T03:\d\d:\d\d"
"""Who wrote something, and when."""


def driver_restarts_and_publishes_half(new):
    """A restarted driver has published one of two slices of its new generation."""
    driver, rack, first, second = f"{new('d')}.test", new("rack"), new("fast"), new("slow")
    pool = {"name": rack, "generation": 2, "resourceSliceCount": 2}
    return Invented(
        about="job",
        told=(rf"pool {driver}/{rack} is incomplete since slice {first} was published with "
              rf"generation 2, {BY}.{{0,9}}: 1 of 2 slices is there \({first}\), 1 is missing",
              rf"before, generation 1 was complete with 2 slices {first}, {second}",
              rf"slice {second} is still of generation 1"),
        steps=(
            {"apply": [*lab(driver), node("m"),
                       slice_of(first, driver, rack, [{"name": "x"}], of=2, nodeName="n"),
                       slice_of(second, driver, rack, [{"name": "y"}], of=2, nodeName="m")]},
            {"wait": 60},
            {"patch": {"spec": {"pool": pool}}, "of": f"resourceslice/{first}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def slice_of_a_complete_pool_is_deleted(new):
    """One of two slices of a pool was deleted, and the other one cannot be used without it."""
    driver, rack, left, lost = f"{new('d')}.test", new("rack"), new("fast"), new("slow")
    return Invented(
        about="job",
        told=(rf"pool {driver}/{rack} is incomplete since slice {lost} of generation 3 was "
              rf"deleted, {BY}.{{0,9}}: 1 of 2 slices is there \({left}\), 1 is missing",
              rf"before, generation 3 was complete with 2 slices {left}, {lost}"),
        steps=(
            {"apply": [*lab(driver), node("m"),
                       slice_of(left, driver, rack, [{"name": "x"}], of=2, generation=3,
                                nodeName="n"),
                       slice_of(lost, driver, rack, [{"name": "y"}], of=2, generation=3,
                                nodeName="m")]},
            {"wait": 60},
            {"delete": f"resourceslice/{lost}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def pool_was_never_complete(new):
    """A driver announces three slices and has published one since it came."""
    driver, rack, alone = f"{new('d')}.test", new("rack"), new("only")
    return Invented(
        about="job",
        told=(rf"pool {driver}/{rack} is incomplete since slice {alone} was published with "
              rf"generation 1, {BY}.{{0,9}}: 1 of 3 slices is there \({alone}\), 2 are missing",
              "before, nothing of it was published"),
        steps=(
            {"apply": [*lab(driver),
                       slice_of(alone, driver, rack, [{"name": "x"}], of=3, nodeName="n")]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def class_selects_a_misspelt_driver(new):
    """The class selects a driver whose name is nearly that of the driver that is there."""
    stem = new("accel")
    driver, typo, name = f"{stem}.example.com", f"{stem}.exmple.com", new("class")
    return Invented(
        about="job",
        told=(rf"class {name} selects driver {typo}, which publishes no slice here; "
              rf"do you mean {driver}\?",
              rf"class {name}.{{0,120}}so written {BY}"),
        steps=(
            {"apply": [*lab(driver, one(driver)), class_of(name, typo)]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask(name)), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def class_of_a_misspelt_driver(new):
    """The same, asked about the class."""
    made = class_selects_a_misspelt_driver(new)
    (name,) = {tree["metadata"]["name"] for tree in made.steps[0]["apply"][-1:]}
    return Invented(about=f"deviceclass/{name}", told=made.told, steps=made.steps)


def pool_asked_about(new):
    """The incomplete pool itself tells since when it is so."""
    made = slice_of_a_complete_pool_is_deleted(new)
    (left,) = {tree["metadata"]["name"] for tree in made.steps[0]["apply"][-2:-1]}
    return Invented(about=f"resourceslice/{left}", told=made.told, steps=made.steps)


def request_selects_a_misspelt_driver(new):
    """The request itself names the driver, with two letters exchanged, beside other conditions."""
    stem = new("accel")
    driver, typo = f"{stem}.example.com", f"{stem}.exmaple.com"
    wanted = cel(f"device.attributes['{driver}'].gen > 1 && '{typo}' == device.driver")
    return Invented(
        about="job",
        told=(rf"request dev of claim lab/want selects driver {typo}, which publishes no slice "
              rf"here; do you mean {driver}\?",
              rf"so written {BY}"),
        steps=(
            {"apply": lab(driver, one(driver, attributes={"gen": {"int": 2}}))},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c", selectors=wanted)),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def foreign_finalizer_keeps_the_holder(new):
    """A deleted claim keeps the device for its pod, and a backup tool has set a finalizer, too."""
    driver, left, tool = f"{new('d')}.test", new("left"), new("backup")
    hold = f"{tool}.example.com/hold"
    both = ["resource.kubernetes.io/delete-protection", hold]
    return Invented(
        about="job",
        told=(rf"claim lab/{left} was deleted and waits for finalizers",
              rf"finalizer {hold} keeps it: the client that set it must remove it; set {BY}"),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim(left, "lab", ask("c")),
                       pod("old", "lab", claim=left)]},
            {"wait": 20},
            {"patch": {"metadata": {"finalizers": both}}, "of": f"resourceclaim/lab/{left}"},
            {"wait": 20},
            {"delete": f"resourceclaim/lab/{left}"},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def claim_has_a_foreign_finalizer(new):
    """The pod has ended, too, and the claim does not go: who set the finalizer, and when."""
    made = foreign_finalizer_keeps_the_holder(new)
    (left,) = {step["of"].rpartition("/")[2] for step in made.steps if "of" in step}
    return Invented(
        about=f"resourceclaim/{left}",
        told=(r"finalizer \S+\.example\.com/hold keeps it: the client that set it must remove it; "
              rf"set {BY}",
              rf"deletion was asked for {BY}"),
        steps=(*made.steps, {"delete": "pod/lab/old", "now": True}, {"wait": 60}),
    )  # fmt: skip


def label_for_admin_access_gets_another_value(new):
    """The label of the namespace became `yes`, and only `true` counts."""
    driver, label = f"{new('d')}.test", "resource.kubernetes.io/admin-access"
    return Invented(
        about="monitor",
        told=(r"requires the `resource\.kubernetes\.io/admin-access: true` label",
              rf"namespace lab had the label {label}=true until it was changed, {BY}"),
        steps=(
            {"apply": [*lab(driver, one(driver))]},
            {"patch": {"metadata": {"labels": {label: "true"}}}, "of": "namespace/lab"},
            {"apply": [template("see", "lab", ask("c", adminAccess=True))]},
            {"wait": 20},
            {"patch": {"metadata": {"labels": {label: "yes"}}}, "of": "namespace/lab"},
            {"wait": 20},
            {"apply": [pod("monitor", "lab", template="see")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def _card(policy):
    return {"name": "card", "allowMultipleAllocations": True,
            "capacity": {"mem": {"value": "10Gi", "requestPolicy": policy}}}  # fmt: skip


def request_is_over_the_policy(new):
    """The device lets a claim have at most 4Gi, and the claim wants 6Gi."""
    driver = f"{new('d')}.test"
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "4Gi", "step": "1Gi"}}
    return Invented(
        about="job",
        told=(r"capacity mem: .{0,60}6Gi", r"4Gi"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [_card(policy)], nodeName="n"))]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c", capacity={"requests": {"mem": "6Gi"}})),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def request_is_rounded_up(new):
    """2Gi are left and 1Gi is wanted, which the policy rounds up to 4Gi."""
    driver, big = f"{new('d')}.test", new("big")
    policy = {"default": "4Gi", "validValues": ["4Gi", "8Gi"]}
    return Invented(
        about="job",
        told=(rf"needs 4Gi, 2Gi of 10Gi is free, held by lab/{big} \(1Gi is requested and rounded "
              "up by the request policy",),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [_card(policy)], nodeName="n")),
                       claim(big, "lab", ask("c", capacity={"requests": {"mem": "8Gi"}})),
                       pod("first", "lab", claim=big)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c", capacity={"requests": {"mem": "1Gi"}})),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def attachment_never_comes(new):
    """No controller reports that the device was attached, and the scheduler gives up in the end."""
    driver, cond = f"{new('d')}.test", f"{new('fab')}.test/attached"
    nic = {"name": "nic-0", "bindingConditions": [cond], "bindsToNode": True,
           "bindingFailureConditions": ["x.test/failed"]}  # fmt: skip
    return Invented(
        about="job",
        told=(rf"{cond}", r"(timeout|timed out|10m|600 s)"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [nic], nodeName="n"))]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 700},
        ),
    )  # fmt: skip


def counters_are_used_from_another_namespace(new):
    """A claim of another team has a partition of the device that is wanted as a whole."""
    driver, team, small = f"{new('d')}.test", new("team"), new("small")

    def part(name, tiles):
        drawn = {"counterSet": "die", "counters": {"tiles": {"value": str(tiles)}}}
        return {"name": name, "consumesCounters": [drawn], "attributes": {"tiles": {"int": tiles}}}

    counters = slice_of("counters", driver, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [
        {"name": "die", "counters": {"tiles": {"value": "8"}}}]  # fmt: skip
    picks = {n: cel(f"device.attributes['{driver}'].tiles == {n}") for n in (2, 8)}
    return Invented(
        about="job",
        told=(rf"counter tiles of set die in {driver}/n: needs 8, 6 is left, "
              rf"held by {team}/{small}",
              rf"claim {team}/{small} is used by pod {team}/theirs on node n"),
        steps=(
            {"apply": [*lab(driver), space(team), counters,
                       slice_of("s", driver, "n", [part("whole", 8), part("quarter", 2)], of=2,
                                nodeName="n")]},
            {"apply": [claim(small, team, ask("c", selectors=picks[2])),
                       pod("theirs", team, claim=small)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c", selectors=picks[8])),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def extended_resource_is_used_up(new):
    """Another pod has got the last device under the name of an extended resource."""
    driver, holder = f"{new('d')}.test", new("first")
    card = f"{new('x')}.test/card"
    tree = class_of("cards", driver)
    tree["spec"]["extendedResourceName"] = card

    def wanting(name):
        made = pod(name, "lab", claim="no")
        del made["spec"]["resourceClaims"]
        amounts = {card: "1"}
        made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        return made

    return Invented(
        about="job",
        told=(rf"{card} stands for devices of class cards", r"x: allocated to lab/\S+",
              rf"is used by pod lab/{holder} on node n"),
        steps=(
            {"apply": [*lab(driver, one(driver)), tree]},
            {"apply": [wanting(holder)]},
            {"wait": 20},
            {"apply": [wanting("job")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def two_schedulers_give_one_device(new):
    """Another scheduler has written the device into its claim, which this one did not know."""
    driver, theirs = f"{new('d')}.test", new("theirs")
    result = {"request": "dev", "driver": driver, "pool": "n", "device": "x"}
    return Invented(
        about="resourceclaim/ours",
        told=(rf"{driver}/n/x is allocated to claim lab/{theirs} too: one device in two claims",
              rf"in two claims; it was allocated there {BY}"),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim("ours", "lab", ask("c")),
                       pod("job", "lab", claim="ours"), claim(theirs, "lab", ask("c"))]},
            {"wait": 20},
            {"status": {"allocation": {"devices": {"results": [result]}}},
             "of": f"resourceclaim/lab/{theirs}"},
            {"wait": 20},
        ),
    )  # fmt: skip


def free_device_is_of_a_node_that_is_gone(new):
    """The other node had a free device and was deleted; its slice is still there."""
    driver, gone, left = f"{new('d')}.test", new("gone"), new("left")
    return Invented(
        about="job",
        told=(rf"node {gone}, which slice {left} is for, was deleted, {BY}",),
        steps=(
            {"apply": [*lab(driver, one(driver), one(driver, left, on=gone)), node(gone)]},
            {"wait": 20},
            {"delete": f"node/{gone}"},
            {"apply": [claim("first", "lab", ask("c")), pod("one", "lab", claim="first")]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def alternatives_fail_for_different_reasons(new):
    """No device is large enough for the first alternative, and the second one's is taken."""
    driver, holder = f"{new('d')}.test", new("holder")
    of = f"device.attributes['{driver}'].mem"
    wanted = {"name": "dev", "firstAvailable": [
        {"name": "large", "deviceClassName": "c", "selectors": cel(f"{of} >= 80")},
        {"name": "small", "deviceClassName": "c", "selectors": cel(f"{of} >= 40")},
    ]}  # fmt: skip
    return Invented(
        about="job",
        told=(r"request dev/large wants 1 device, 0 of 1", r"mem >= 80", r"mem is 40",
              rf"request dev/small wants 1 device, 0 of 1.{{0,60}}x: allocated to lab/{holder}"),
        steps=(
            {"apply": [*lab(driver, one(driver, attributes={"mem": {"int": 40}})),
                       claim(holder, "lab", ask("c")), pod("one", "lab", claim=holder)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


DEEPER = (
    driver_restarts_and_publishes_half,
    slice_of_a_complete_pool_is_deleted,
    pool_was_never_complete,
    class_selects_a_misspelt_driver,
    class_of_a_misspelt_driver,
    pool_asked_about,
    request_selects_a_misspelt_driver,
    foreign_finalizer_keeps_the_holder,
    claim_has_a_foreign_finalizer,
    label_for_admin_access_gets_another_value,
    request_is_over_the_policy,
    request_is_rounded_up,
    attachment_never_comes,
    counters_are_used_from_another_namespace,
    extended_resource_is_used_up,
    two_schedulers_give_one_device,
    free_device_is_of_a_node_that_is_gone,
    alternatives_fail_for_different_reasons,
)
