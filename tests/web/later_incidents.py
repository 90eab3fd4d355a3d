"""Incidents whose words were written down before anybody had looked at what redra says of them."""

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
)


def driver_went_with_its_slices(new):
    """The pod of a driver was evicted from a node, and what it had published was taken away."""
    driver, name, plugin, here = f"{new('d')}.test", new("slice"), new("plugin"), new("node")
    return Invented(
        about="job",
        told=(rf"slice {name}\b.{{0,80}}{here}.{{0,80}}was deleted, by redra",
              rf"pod drivers/{plugin}\b.{{0,120}}was deleted.{{0,40}}, by redra"),
        steps=(
            {"apply": [space("lab"), space("drivers"), class_of("c", driver), node(here),
                       slice_of(name, driver, here, [{"name": "x"}], nodeName=here),
                       driver_pod(plugin, here)]},
            {"wait": 60},
            {"delete": f"pod/drivers/{plugin}", "now": True},
            {"wait": 30},
            {"delete": f"resourceslice/{name}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def class_misspells_its_driver(new):
    """The selector of a class names a driver that nobody has: two letters changed places."""
    stem = new("gpu")
    driver, typo = f"{stem}.example.test", f"{stem}.exmaple.test"
    return Invented(
        about="job",
        told=(rf"device\.driver == '{typo}'", rf"device\.driver is .?{driver}"),
        steps=(
            {"apply": [space("lab"), class_of("c", typo), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}, {"name": "y"}], nodeName="n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def generation_began_anew_after_a_reboot(new):
    """A driver forgot its generation: what it publishes now is older than what it left behind."""
    driver, left, fresh = f"{new('d')}.test", new("left"), new("fresh")
    return Invented(
        about="job",
        told=(rf"{driver}/n of generation 5 is incomplete: 1 of 2",
              rf"slice {fresh} of generation 1",
              r"generation 1\b.{0,60}(older|lower|behind|below)"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of(left, driver, "n", [{"name": "a"}], generation=5, of=2,
                                nodeName="n"),
                       slice_of("gone", driver, "n", [{"name": "b"}], generation=5, of=2,
                                nodeName="n")]},
            {"wait": 60},
            {"delete": "resourceslice/gone"},
            {"apply": [slice_of(fresh, driver, "n", [{"name": "a"}, {"name": "b"}],
                                nodeName="n")]},
            {"wait": 10},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def binding_conditions_time_out(new):
    """The driver never says that a device is attached, so the pod gives it back and waits on."""
    driver, condition = f"{new('d')}.test", f"x.test/{new('attached')}"
    nic = {"name": "nic-0", "bindingConditions": [condition], "bindsToNode": True,
           "bindingFailureConditions": ["x.test/failed"]}  # fmt: skip
    return Invented(
        about="job",
        told=(condition, r"timed out|timeout", r"claim[ =](lab/)?want", rf"{driver}/fab/nic-0"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "fab", [nic], nodeName="n"),
                       claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 900},
        ),
    )  # fmt: skip


def two_classes_for_one_extended_resource(new):
    """A newer class of the same extended resource wins, and its driver has published nothing."""
    driver, older, newer = f"{new('d')}.test", new("older"), new("newer")
    resource = f"x.test/{new('card')}"
    first, second = class_of(older, driver), class_of(newer, f"{new('e')}.test")
    for tree in (first, second):
        tree["spec"]["extendedResourceName"] = resource
    wanted = pod("job", "lab", claim="no")
    del wanted["spec"]["resourceClaims"]
    wanted["spec"]["containers"][0]["resources"] = {
        "requests": {resource: "1"}, "limits": {resource: "1"},
    }  # fmt: skip
    return Invented(
        about="job",
        told=(rf"{resource}\b.{{0,80}}class {newer}", rf"class {older}\b"),
        steps=(
            {"apply": [space("lab"), first, node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")]},
            {"wait": 60},
            {"apply": [second]},
            {"wait": 60},
            {"apply": [wanted]},
            {"wait": 20},
        ),
    )  # fmt: skip


def finalizer_keeps_a_claim_with_its_device(new):
    """A claim was deleted, but a finalizer that nobody takes away keeps it and its device."""
    driver, left, keeper = f"{new('d')}.test", new("left"), f"x.test/{new('keep')}"
    kept = claim(left, "lab", ask("c"))
    kept["metadata"]["finalizers"] = [keeper]
    return Invented(
        about="next",
        told=(rf"allocated to lab/{left}", rf"{left}\b.{{0,120}}{keeper}"),
        off=("claims",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       kept, pod("old", "lab", claim=left)]},
            {"wait": 20},
            {"delete": "pod/lab/old", "now": True},
            {"delete": f"resourceclaim/lab/{left}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c")), pod("next", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def rule_without_a_driver(new):
    """A rule that was meant for one driver names none, and evicts from the other driver too."""
    driver, other, name = f"{new('d')}.test", f"{new('e')}.test", new("rule")
    tree = rule(name, driver, key="x.test/repair", effect="NoExecute")
    del tree["spec"]["deviceSelector"]
    return Invented(
        told=(rf"rule {name}", rf"{other}/n/y", r"(every|all) devices?|2 devices of 2 drivers"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), class_of("e", other), node("n"),
                       slice_of("s", driver, "n", [{"name": "x"}], nodeName="n"),
                       slice_of("t", other, "n", [{"name": "y"}], nodeName="n"),
                       claim("want", "lab", ask("e")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [tree]},
            {"wait": 60},
        ),
    )  # fmt: skip


def device_names_differ_in_one_selector(new):
    """A claim asks for more memory than any device has: the nearest lacks a little."""
    driver = f"{new('d')}.test"
    cards = [{"name": f"card-{n}", "capacity": {"memory": {"value": f"{n * 10}Gi"}}}
             for n in (2, 4)]  # fmt: skip
    wanted = cel(f"device.capacity['{driver}'].memory.isGreaterThan(quantity('40Gi'))")
    return Invented(
        about="job",
        told=(r"isGreaterThan\(quantity\('40Gi'\)\)", r"memory is .{0,30}\b40Gi"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", cards, nodeName="n"),
                       claim("want", "lab", ask("c", selectors=wanted)),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def selector_is_false_in_its_middle(new):
    """Of three conditions the second is false on every device."""
    driver = f"{new('d')}.test"
    cards = [{"name": f"card-{n}", "attributes": {"gen": {"int": 2}, "ok": {"bool": True}}}
             for n in range(2)]  # fmt: skip
    of = f"device.attributes['{driver}']"
    wanted = cel(f"{of}.ok && {of}.gen >= 3 && device.driver == '{driver}'")
    return Invented(
        about="job",
        told=(f"{of}.gen >= 3",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"),
                       slice_of("s", driver, "n", cards, nodeName="n"),
                       claim("want", "lab", ask("c", selectors=wanted)),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


LATER = (
    driver_went_with_its_slices,
    class_misspells_its_driver,
    generation_began_anew_after_a_reboot,
    binding_conditions_time_out,
    two_classes_for_one_extended_resource,
    finalizer_keeps_a_claim_with_its_device,
    rule_without_a_driver,
    device_names_differ_in_one_selector,
)
