"""Incidents whose cause is a wish or a part of hardware that does not fit, and what mends each.

`told` has to stand in the answer about pod `lab/job`; after `mend`, the pod runs.
"""

from dataclasses import dataclass

from tests.web.invented import (
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


@dataclass(frozen=True, kw_only=True)
class Broken:
    """The steps of an incident, what is told of it, and the steps that mend it."""

    told: tuple[str, ...]
    steps: tuple[dict, ...]
    mend: tuple[dict, ...]


def _wanting(*requests, **devices):
    wanted = claim("want", "lab", *requests, **devices)
    return {"apply": [wanted, pod("job", "lab", claim="want")]}, {"wait": 20}


def _again(*requests, **devices):
    """A claim and its pod cannot be changed: they are made anew."""
    return ({"delete": "pod/lab/job"}, {"delete": "resourceclaim/lab/want"}, {"wait": 5},
            *_wanting(*requests, **devices))  # fmt: skip


def selector_of_a_slice_matches_no_node(new):
    """The label that a slice selects its nodes by was taken from the only one that had it."""
    driver, key = f"{new('d')}.test", f"x.test/{new('rack')}"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["r1"]}]}
    rack = slice_of("s", driver, "rack", [{"name": "x"}],
                    nodeSelector={"nodeSelectorTerms": [term]})  # fmt: skip
    return Broken(
        told=(f"slice s was for node n, which had {key}=r1 until that was taken away",),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n", {key: "r1"}), rack]},
            {"wait": 5},
            {"patch": {"metadata": {"labels": {key: None}}}, "of": "node/n"},
            {"wait": 5},
            *_wanting(ask("c")),
        ),
        mend=({"patch": {"metadata": {"labels": {key: "r1"}}}, "of": "node/n"}, {"wait": 20}),
    )  # fmt: skip


def class_was_made_anew_with_another_selector(new):
    driver, other = f"{new('d')}.test", f"{new('e')}.test"
    return Broken(
        told=(rf"class c selects driver {other}, which publishes no slice here",
              r"so written by \S+ at 20"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"wait": 5},
            {"delete": "deviceclass/c"},
            {"wait": 5},
            {"apply": [class_of("c", other)]},
            *_wanting(ask("c")),
        ),
        mend=({"patch": class_of("c", driver), "of": "deviceclass/c"}, {"wait": 20}),
    )  # fmt: skip


def step_rounds_a_request_up_beyond_what_is_left(new):
    """Of twelve lanes eight are used, and a request of 5 becomes one of 8."""
    driver = f"{new('d')}.test"
    policy = {"default": "4", "validRange": {"min": "4", "step": "4"}}
    card = {"name": "nic", "allowMultipleAllocations": True,
            "capacity": {"lanes": {"value": "12", "requestPolicy": policy}}}  # fmt: skip

    def lanes(amount):
        return ask("c", capacity={"requests": {"lanes": amount}})

    return Broken(
        told=(r"needs 8\b.{0,60}4 of 12 is free", r"\b5\b.{0,60}\brounded up\b|step of 4"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [card], nodeName="n"))},
            {"apply": [claim("first", "lab", lanes("8")), pod("first", "lab", claim="first")]},
            {"wait": 10},
            *_wanting(lanes("5")),
        ),
        mend=_again(lanes("4")),
    )


def attribute_of_a_constraint_is_missing_on_some(new):
    """Two devices must share an attribute which one of them lacks."""
    driver, key = f"{new('d')}.test", new("root")
    has = {"attributes": {key: {"string": "r0"}}}
    cards = [{"name": "a", **has}, {"name": "b"}]
    constraint = {"matchAttribute": f"{driver}/{key}", "requests": ["one", "two"]}
    return Broken(
        told=(rf"1 against a constraint \({driver}/{key} is missing\)",
              rf"b: has no attribute {driver}/{key}, which a constraint needs"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", cards, nodeName="n"))},
            *_wanting(ask("c", "one"), ask("c", "two"), constraints=[constraint]),
        ),
        mend=(
            {"patch": {"spec": {"devices": [{**one, **has} for one in cards]}},
             "of": "resourceslice/s"},
            {"wait": 20},
        ),
    )  # fmt: skip


def all_devices_of_an_incomplete_pool(new):
    """All devices are wanted, and one of two slices of the pool has not been published."""
    driver = f"{new('d')}.test"
    half = slice_of("half", driver, "n", [{"name": "x"}], of=2, nodeName="n")
    rest = slice_of("rest", driver, "n", [{"name": "y"}], of=2, nodeName="n")
    return Broken(
        told=(rf"pool {driver}/n.{{0,40}}incomplete.{{0,40}}1 of 2",),
        steps=(
            {"apply": lab(driver, half)},
            *_wanting(ask("c", allocationMode="All")),
        ),
        mend=({"apply": [rest]}, {"wait": 20}),
    )


def admin_access_after_its_label_was_taken(new):
    """A template wants administrative access; its namespace lost the label that allows it."""
    driver, label = f"{new('d')}.test", "resource.kubernetes.io/admin-access"
    return Broken(
        told=(rf"{label}: true", r"FailedResourceClaimCreation"),
        steps=(
            {"apply": [space("lab", **{label: "true"}), class_of("c", driver), node("n"),
                       one(driver), template("admin", "lab", ask("c", adminAccess=True))]},
            {"wait": 5},
            {"patch": {"metadata": {"labels": {label: None}}}, "of": "namespace/lab"},
            {"apply": [pod("job", "lab", template="admin")]},
            {"wait": 20},
        ),
        mend=({"patch": {"metadata": {"labels": {label: "true"}}}, "of": "namespace/lab"},
              {"wait": 60}),
    )  # fmt: skip


def template_is_in_another_namespace(new):
    driver, team, name = f"{new('d')}.test", new("team"), new("t")
    return Broken(
        told=(rf"template.{{0,40}}{name}.{{0,60}}(not found|does not exist)", rf"namespace {team}"),
        steps=(
            {"apply": [*lab(driver, one(driver)), space(team), template(name, team, ask("c"))]},
            {"apply": [pod("job", "lab", template=name)]},
            {"wait": 20},
        ),
        mend=({"apply": [template(name, "lab", ask("c"))]}, {"wait": 60}),
    )


def name_of_a_claim_is_misspelt(new):
    driver, name = f"{new('d')}.test", new("training-set")
    near = name.replace("ining", "inign")
    return Broken(
        told=(f"there is no ResourceClaim {near} in namespace lab; do you mean {name}",),
        steps=(
            {"apply": [*lab(driver, one(driver)), claim(name, "lab", ask("c"))]},
            {"apply": [pod("job", "lab", claim=near)]},
            {"wait": 20},
        ),
        mend=({"delete": "pod/lab/job"}, {"wait": 5}, {"apply": [pod("job", "lab", claim=name)]},
              {"wait": 20}),
    )  # fmt: skip


def key_of_a_toleration_is_misspelt(new):
    """A request tolerates nearly the key of the taint that a rule gives each device."""
    driver, key = f"{new('d')}.test", f"x.test/{new('maintenance')}"
    near = key.replace("tenance", "tainance")

    def bearing(name):
        return ask("c", tolerations=[{"key": name, "operator": "Exists", "effect": "NoSchedule"}])

    return Broken(
        told=(rf"{key}:NoSchedule by rule old", rf"toler\w+ {near}.{{0,60}}(does not fit|not)"),
        steps=(
            {"apply": [*lab(driver, one(driver)),
                       rule("old", driver, key=key, effect="NoSchedule")]},
            {"wait": 5},
            *_wanting(bearing(near)),
        ),
        mend=_again(bearing(key)),
    )  # fmt: skip


def same_device_in_two_pools(new):
    """Two pools of a node have a device of one name; a claim wants one more than there are."""
    driver, key = f"{new('d')}.test", new("serial")
    card = [{"name": "g0", "attributes": {key: {"string": "s1"}}}]
    wanted = ask("c", selectors=cel(f"device.attributes['{driver}'].{key} == 's1'"), count=3)
    two = {**wanted, "exactly": {**wanted["exactly"], "count": 2}}
    return Broken(
        told=(r"wants 3.{0,80}2\b",),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", card, nodeName="n"),
                          slice_of("s-2", driver, "n-2", card, nodeName="n"))},
            *_wanting(wanted),
        ),
        mend=_again(two),
    )  # fmt: skip


BROKEN = (
    selector_of_a_slice_matches_no_node,
    class_was_made_anew_with_another_selector,
    step_rounds_a_request_up_beyond_what_is_left,
    attribute_of_a_constraint_is_missing_on_some,
    all_devices_of_an_incomplete_pool,
    admin_access_after_its_label_was_taken,
    template_is_in_another_namespace,
    name_of_a_claim_is_misspelt,
    key_of_a_toleration_is_misspelt,
    same_device_in_two_pools,
)
