"""Incidents of what is counted: partitions, shares, seconds, retries, slices of a pool.

Their causes were written down before anybody looked at a page.
"""

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
from tests.web.reported_incidents import lab


def _part(driver, name, tiles):
    drawn = {"counterSet": "die", "counters": {"tiles": {"value": str(tiles)}}}
    return {"name": name, "consumesCounters": [drawn], "attributes": {"tiles": {"int": tiles}}}


def ending_pod_keeps_the_counters(new):
    """A pod with a partition ends for an hour, and another wants the whole device meanwhile."""
    driver, small, slow = f"{new('d')}.test", new("small"), new("slow")
    counters = slice_of("counters", driver, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [
        {"name": "die", "counters": {"tiles": {"value": "8"}}}]  # fmt: skip
    picks = {n: cel(f"device.attributes['{driver}'].tiles == {n}") for n in (2, 8)}
    kept = pod(slow, "lab", claim=small)
    kept["spec"]["terminationGracePeriodSeconds"] = 3600
    return Invented(
        about="job",
        told=(rf"needs 8, 6 is left, held by lab/{small}",
              rf"pod lab/{slow}, which was deleted and is to end by 2026-01-02T04:00:20Z"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver), counters,
                       slice_of("s", driver, "n", [_part(driver, "whole", 8),
                                                   _part(driver, "quarter", 2)], of=2,
                                nodeName="n")]},
            {"apply": [claim(small, "lab", ask("c", selectors=picks[2])), kept]},
            {"wait": 20},
            {"status": {"phase": "Running"}, "of": f"pod/lab/{slow}"},
            {"delete": f"pod/lab/{slow}"},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c", selectors=picks[8])),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def shares_are_used_up_by_rounding(new):
    """Three claims of 3Gi have 4Gi each of 12Gi, so the fourth does not fit beside 9Gi."""
    driver, names = f"{new('d')}.test", [new("one"), new("two"), new("three")]
    policy = {"default": "4Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}
    card = {"name": "x", "allowMultipleAllocations": True,
            "capacity": {"mem": {"value": "12Gi", "requestPolicy": policy}}}  # fmt: skip
    wanted = ask("c", capacity={"requests": {"mem": "3Gi"}})
    steps = [{"apply": lab(driver, slice_of("s", driver, "n", [card], nodeName="n"))}]
    for name in names:
        steps += [{"apply": [claim(name, "lab", wanted), pod(f"of-{name}", "lab", claim=name)]},
                  {"wait": 10}]  # fmt: skip
    steps += [{"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
              {"wait": 20}]  # fmt: skip
    return Invented(
        about="job",
        told=(r"needs 4Gi, 0 of 12Gi is free", r"3Gi is requested and rounded up",
              *(f"lab/{name}" for name in names)),
        steps=tuple(steps),
    )  # fmt: skip


def evicted_pod_fails_its_job(new):
    """A rule evicts a pod after its tolerated time, and its Job allows no second pod."""
    driver, hot = f"{new('d')}.test", new("hot")
    patience = [{"key": "x.test/hot", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 60}]  # fmt: skip
    run = pod("x", "lab", template="t")["spec"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "lab"},
        "spec": {"backoffLimit": 0, "template": {"spec": {**run, "restartPolicy": "Never"}}},
    }
    return Invented(
        about="job/train",
        told=(r"BackoffLimitExceeded|allows no more", rf"rule {hot}\b", r"x.test/hot"),
        steps=(
            {"apply": [*lab(driver, slice_of("s", driver, "n", [{"name": "x"}], nodeName="n")),
                       template("t", "lab", ask("c", tolerations=patience))]},
            {"apply": [job]},
            {"wait": 30},
            {"apply": [rule(hot, driver, key="x.test/hot", effect="NoExecute")]},
            {"wait": 300},
        ),
    )  # fmt: skip


def shelf_counts_a_slice_too_many(new):
    """A pool for all nodes says that it has three slices, and its driver writes two."""
    driver, shelf = f"{new('d')}.test", new("shelf")
    slices = [slice_of(f"{shelf}-{number}", driver, shelf, [{"name": f"x{number}"}], of=3,
                       allNodes=True) for number in range(2)]  # fmt: skip
    return Invented(
        about="job",
        told=(rf"pool {driver}/{shelf}\b.{{0,60}}incomplete", r"2 of 3 slices",
              rf"{shelf}-0.{{0,60}}{shelf}-1"),
        steps=(
            {"apply": [space("lab"), class_of("c", driver), node("n"), node("m"), *slices]},
            {"wait": 30},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def two_drivers_have_no_common_root(new):
    """A claim wants a card and a port on one root; the ports have the attribute in another form."""
    cards, ports, root = f"{new('g')}.test", f"{new('p')}.test", "resource.kubernetes.io/pcieRoot"
    port = class_of("port", ports)
    return Invented(
        about="job",
        told=(rf"matchAttribute {root}|{root}", r"pci0000:00", r"0000:00:1f"),
        steps=(
            {"apply": [*lab(cards, slice_of("s", cards, "n", [
                           {"name": "x", "attributes": {root: {"string": "pci0000:00"}}}],
                           nodeName="n")), port,
                       slice_of("t", ports, "n", [
                           {"name": "y", "attributes": {root: {"string": "0000:00:1f"}}}],
                           nodeName="n")]},
            {"wait": 10},
            {"apply": [claim("want", "lab", ask("c", "card"), ask("port", "port"),
                             constraints=[{"requests": ["card", "port"], "matchAttribute": root}]),
                       pod("job", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


COUNTED = (
    ending_pod_keeps_the_counters,
    shares_are_used_up_by_rounding,
    evicted_pod_fails_its_job,
    shelf_counts_a_slice_too_many,
    two_drivers_have_no_common_root,
)
