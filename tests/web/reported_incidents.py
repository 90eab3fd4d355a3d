"""Incidents after reports of the field, with the words of their causes, fixed before a look."""

from app.analysis.incidents.incident import IncidentVariant
from app.bootstrap.gallery import playing
from tests.web.field_incidents import told_by_kubelet
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


def lab(driver, *slices, on="n"):
    """A namespace, a class `c` of a driver, a node, and slices of it."""
    return [space("lab"), class_of("c", driver), node(on), *slices]


def one(driver, name="s", device="x", on="n", **fields):
    """A slice with one device of a node."""
    return slice_of(name, driver, on, [{"name": device, **fields}], nodeName=on)


def told_by(component, new, about, reason, message):
    """A warning that a component writes about a pod."""
    tree = told_by_kubelet(new, about, reason, message)
    tree["source"] = {"component": component}
    tree["reportingComponent"] = component
    return tree


def made_for_pods(steps):
    """The name of the one claim that the control plane makes in these steps."""
    played = playing.play(Invented(told=(), steps=steps).incident(), IncidentVariant.BROKEN)
    kinds = {event.key.name for event in played.events if event.key.resource == "resourceclaims"}
    (name,) = kinds
    return name


def attribute_changed_its_type(new):
    """A driver publishes as a version now what was a string, and the selector fails on it."""
    driver, name = f"{new('d')}.test", new("slice")
    of = f"device.attributes['{driver}'].release"
    wanted = cel(f"{of}.startsWith('570')")
    return Invented(
        about="job",
        told=(r"release\.startsWith\('570'\)", r"no such overload",
              rf"slice {name}\b.{{0,200}}release.{{0,80}}string.{{0,80}}version.{{0,80}}by redra"),
        steps=(
            {"apply": lab(driver, one(driver, name,
                                      attributes={"release": {"string": "570.1.0"}}))},
            {"wait": 60},
            {"apply": [slice_of(name, driver, "n", [
                {"name": "x", "attributes": {"release": {"version": "570.1.0"}}}],
                generation=2, nodeName="n")]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c", selectors=wanted)),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def selectors_of_class_and_request_exclude_each_other(new):
    """A class takes whole cards only, and the request asks it for a partition."""
    driver, name = f"{new('d')}.test", new("whole")
    of = f"device.attributes['{driver}'].type"
    tree = class_of(name, driver)
    tree["spec"]["selectors"] = cel(f"{of} == 'gpu'")
    devices = [{"name": f"{kind}-0", "attributes": {"type": {"string": kind}}}
               for kind in ("gpu", "mig")]  # fmt: skip
    return Invented(
        about="job",
        told=(rf"class {name}\b.{{0,120}}type == 'gpu'", r"type == 'mig'",
              r"mig-0\b.{0,160}type == 'gpu'", r"gpu-0\b.{0,160}type == 'mig'"),
        steps=(
            {"apply": [space("lab"), tree, node("n"),
                       slice_of("s", driver, "n", devices, nodeName="n")]},
            {"apply": [claim("want", "lab", ask(name, selectors=cel(f"{of} == 'mig'"))),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def rule_names_a_pool_that_is_not_there(new):
    """A rule is to take a node's devices out of use, but its pool is misspelled."""
    driver, pool, name = f"{new('d')}.test", new("rack"), new("repair")
    typo = f"{pool[:-1]}{'0' if pool[-1] != '0' else '1'}"
    tree = rule(name, driver, key="x.test/repair", effect="NoExecute")
    tree["spec"]["deviceSelector"]["pool"] = typo
    return Invented(
        about=f"devicetaintrule/{name}",
        told=(r"(selects|matches) no device", rf"pool {typo}\b", rf"\b{pool}\b"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, pool, [{"name": "x"}], nodeName="n"))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [tree]},
            {"wait": 60},
        ),
    )  # fmt: skip


def template_got_its_toleration_too_late(new):
    """A toleration is in the template by now, but the claim was made before, and its pod goes."""
    driver, name, hot = f"{new('d')}.test", new("template"), new("hot")
    patience = {"key": "x.test/hot", "operator": "Exists"}
    return Invented(
        about="job",
        told=(rf"rule {hot}\b", r"x\.test/hot:NoExecute",
              rf"template (lab/)?{name}\b.{{0,200}}(changed|anew|different)"),
        steps=(
            {"apply": [*lab(driver, one(driver)), template(name, "lab", ask("c"))]},
            {"apply": [pod("job", "lab", template=name)]},
            {"wait": 60},
            {"delete": f"resourceclaimtemplate/lab/{name}"},
            {"apply": [template(name, "lab", ask("c", tolerations=[patience]))]},
            {"wait": 60},
            {"apply": [rule(hot, driver, key="x.test/hot", effect="NoExecute")]},
            {"wait": 120},
        ),
    )  # fmt: skip


def autoscaler_says_that_it_cannot_help(new):
    """No node group of an autoscaler has the devices that a waiting pod wants."""
    driver, first = f"{new('d')}.test", new("first")
    said = "pod didn't trigger scale-up: 1 cannot allocate all claims"
    return Invented(
        about="job",
        told=("pod didn't trigger scale-up", "cluster-autoscaler", rf"allocated to lab/{first}"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim(first, "lab", ask("c")), pod("old", "lab", claim=first)]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"apply": [told_by("cluster-autoscaler", new, "job", "NotTriggerScaleUp", said)]},
            {"wait": 60},
        ),
    )  # fmt: skip


def claim_went_with_the_pod_that_owns_it(new):
    """A pod uses the claim that another pod got from a template; it goes with that pod."""
    driver, first = f"{new('d')}.test", new("owner")
    before = (
        {"apply": [*lab(driver, one(driver)), template("t", "lab", ask("c"))]},
        {"apply": [pod(first, "lab", template="t")]},
        {"wait": 20},
    )
    shared = made_for_pods(before)
    return Invented(
        about="second",
        told=(rf'could not find ResourceClaim "lab/{shared}"',
              rf"[Cc]laim (lab/)?{shared}\b.{{0,160}}deleted", rf"[Pp]od (lab/)?{first}\b"),
        steps=(
            *before,
            {"delete": f"pod/lab/{first}", "now": True},
            {"wait": 120},
            {"apply": [pod("second", "lab", claim=shared)]},
            {"wait": 20},
        ),
    )  # fmt: skip


def claim_is_deleted_while_it_is_in_use(new):
    """A shared claim was deleted; it stays as long as a pod uses it, and takes no other pod."""
    driver, shared, first = f"{new('d')}.test", new("shared"), new("first")
    return Invented(
        about="second",
        told=(rf'"{shared}" is being deleted',
              rf"(pod|reserved for) (lab/)?{first}\b"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim(shared, "lab", ask("c")), pod(first, "lab", claim=shared)]},
            {"wait": 20},
            {"delete": f"resourceclaim/lab/{shared}"},
            {"wait": 60},
            {"apply": [pod("second", "lab", claim=shared)]},
            {"wait": 20},
        ),
    )  # fmt: skip


def free_devices_are_on_different_links(new):
    """Two devices are free and two are wanted on one link, but each link has one in use."""
    driver, left, right = f"{new('d')}.test", new("left"), new("right")
    link = f"{driver}/link"
    cards = [{"name": f"card-{n}", "attributes": {"link": {"string": f"nvl-{n // 2}"}}}
             for n in range(4)]  # fmt: skip
    picks = {n: cel(f"device.attributes['{driver}'].link == 'nvl-{n}'") for n in (0, 1)}
    return Invented(
        about="job",
        told=(rf"card-0\b.{{0,80}}allocated to lab/{left}",
              rf"card-2\b.{{0,80}}allocated to lab/{right}",
              r"link is nvl-1, which does not match nvl-0"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", cards, nodeName="n"))},
            {"apply": [claim(left, "lab", ask("c", selectors=picks[0])),
                       pod("one", "lab", claim=left)]},
            {"wait": 10},
            {"apply": [claim(right, "lab", ask("c", selectors=picks[1])),
                       pod("two", "lab", claim=right)]},
            {"wait": 10},
            {"apply": [claim("pair", "lab", ask("c", count=2),
                             constraints=[{"matchAttribute": link}]),
                       pod("job", "lab", claim="pair")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def counter_set_is_misspelled(new):
    """The devices of a driver use a counter set that no slice of their pool declares."""
    driver, right = f"{new('d')}.test", new("die")
    typo = f"{right}x"
    counters = slice_of("counters", driver, "n", [], of=2, nodeName="n")
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [{"name": right, "counters": {"t": {"value": "8"}}}]
    drawn = [{"counterSet": typo, "counters": {"t": {"value": "2"}}}]
    device = {"name": "x", "consumesCounters": drawn}
    return Invented(
        about="job",
        told=(rf"{driver}/n\b", rf"counter set {typo}\b", rf"\b{right}\b"),
        steps=(
            {"apply": lab(driver, counters,
                          slice_of("s", driver, "n", [device], of=2, nodeName="n"))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def nic(policy, size):
    """A device that is shared by bandwidth."""
    return {"name": "eth1", "allowMultipleAllocations": True,
            "capacity": {"bw": {"value": size, "requestPolicy": policy}}}  # fmt: skip


def share_is_larger_than_the_policy_allows(new):
    """A claim may have 8Gi of a device at most, and asks for 12Gi of the 40Gi that are free."""
    driver = f"{new('d')}.test"
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "1Gi"}}
    return Invented(
        about="job",
        told=(r"bw\b.{0,80}12Gi", r"(max|at most|range).{0,40}8Gi"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [nic(policy, "40Gi")],
                                           nodeName="n"))},
            {"apply": [claim("want", "lab", ask("c", capacity={"requests": {"bw": "12Gi"}})),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def share_is_rounded_up(new):
    """Each claim asks for 3Gi and gets 4Gi, so that a third does not fit on 10Gi."""
    driver = f"{new('d')}.test"
    policy = {"default": "4Gi", "validValues": ["4Gi", "8Gi"]}

    def asking(name):
        return claim(name, "lab", ask("c", capacity={"requests": {"bw": "3Gi"}}))

    return Invented(
        about="job",
        told=(r"needs 4Gi", r"3Gi.{0,80}(rounded|raised)|(rounded|raised).{0,80}3Gi",
              r"2Gi of 10Gi is free", r"lab/first", r"lab/second"),
        steps=(
            {"apply": lab(driver, slice_of("s", driver, "n", [nic(policy, "10Gi")],
                                           nodeName="n"))},
            {"apply": [asking("first"), pod("one", "lab", claim="first")]},
            {"wait": 10},
            {"apply": [asking("second"), pod("two", "lab", claim="second")]},
            {"wait": 10},
            {"apply": [asking("third"), pod("job", "lab", claim="third")]},
            {"wait": 10},
        ),
    )  # fmt: skip


def namespace_goes_and_keeps_its_claim(new):
    """A namespace is being deleted, but its pod does not end, and keeps the device."""
    driver, gone = f"{new('d')}.test", new("gone")
    return Invented(
        about="next",
        told=(rf"allocated to {gone}/held", rf"namespace {gone}\b.{{0,120}}(delet|terminat)",
              rf"pod {gone}/old\b"),
        off=("kubelet",),
        steps=(
            {"apply": [*lab(driver, one(driver)), space(gone)]},
            {"apply": [claim("held", gone, ask("c")), pod("old", gone, claim="held")]},
            {"wait": 20},
            {"delete": f"namespace/{gone}"},
            {"wait": 120},
            {"apply": [claim("want", "lab", ask("c")), pod("next", "lab", claim="want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def spread_wants_the_node_whose_device_is_taken(new):
    """Pods are to be spread over nodes, but the other node's device is in use."""
    driver, here, there, first = f"{new('d')}.test", new("node"), new("other"), new("first")
    label = {"app": "web"}

    def spread(name, wanted):
        tree = pod(name, "lab", claim=wanted)
        tree["metadata"]["labels"] = label
        tree["spec"]["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
             "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": label}},
        ]  # fmt: skip
        return tree

    here_only = cel("device.driver != '' && device.attributes['x.test'].at == 'here'")
    cards = [{"name": f"card-{n}", "attributes": {"x.test/at": {"string": "here"}}}
             for n in range(2)]  # fmt: skip
    other = [{"name": "card-9", "attributes": {"x.test/at": {"string": "there"}}}]
    there_only = cel("device.attributes['x.test'].at == 'there'")
    return Invented(
        about="job",
        told=(rf"{here}: node\(s\) didn't match pod topology spread constraints",
              rf"card-9\b.{{0,80}}allocated to lab/{first}"),
        steps=(
            {"apply": [*lab(driver, on=here), node(there),
                       slice_of("a", driver, here, cards, nodeName=here),
                       slice_of("b", driver, there, other, nodeName=there)]},
            {"apply": [claim(first, "lab", ask("c", selectors=there_only)),
                       pod("old", "lab", claim=first),
                       claim("one", "lab", ask("c", selectors=here_only)), spread("web", "one")]},
            {"wait": 20},
            {"apply": [claim("want", "lab", ask("c")), spread("job", "want")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def slice_names_its_node_otherwise(new):
    """A driver publishes for the long name of a node, which is registered under a short one."""
    driver, here, name = f"{new('d')}.test", new("node"), new("slice")
    long = f"{here}.example.internal"
    return Invented(
        about="job",
        told=(rf"slice {name}\b.{{0,80}}node {long}\b.{{0,100}}(there is none|no such|not exist)",
              rf"\b{here}\b(?!\.example)"),
        steps=(
            {"apply": lab(driver, slice_of(name, driver, here, [{"name": "x"}], nodeName=long),
                          on=here)},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def container_asks_for_a_request_that_is_not_there(new):
    """A container names a request that its claim does not have, so it starts without a device."""
    driver, right, typo = f"{new('d')}.test", new("card"), new("crad")
    tree = pod("job", "lab", claim="want")
    tree["spec"]["containers"][0]["resources"]["claims"] = [{"name": "d", "request": typo}]
    return Invented(
        about="job",
        told=(rf"container main\b.{{0,120}}request {typo}\b", rf"\b{right}\b"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c", right)), tree]},
            {"wait": 20},
        ),
    )  # fmt: skip


def no_container_uses_the_claim(new):
    """A pod lists a claim that none of its containers names: it runs, and sees no device."""
    driver, wanted = f"{new('d')}.test", new("want")
    tree = pod("job", "lab", claim=wanted)
    del tree["spec"]["containers"][0]["resources"]["claims"]
    return Invented(
        about="job",
        told=(r"no container\b.{0,100}", rf"claim (lab/)?{wanted}\b"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim(wanted, "lab", ask("c")), tree]},
            {"wait": 20},
        ),
    )  # fmt: skip


def device_plugin_has_the_same_resource(new):
    """A node's device plugin goes before the driver's devices of the same extended resource."""
    driver, here, resource = f"{new('d')}.test", new("node"), f"x.test/{new('card')}"
    tree = class_of("c", driver)
    tree["spec"]["extendedResourceName"] = resource
    served = node(here)
    for amounts in ("allocatable", "capacity"):
        served["status"][amounts] = {**served["status"][amounts], resource: "1"}

    def asking(name):
        wanted = pod(name, "lab", claim="no")
        del wanted["spec"]["resourceClaims"]
        amounts = {resource: "1"}
        wanted["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        return wanted

    return Invented(
        about="second",
        told=(rf"Insufficient {resource}", rf"(node )?{here}\b.{{0,160}}device plugin"),
        steps=(
            {"apply": [space("lab"), tree, served, one(driver, on=here)]},
            {"apply": [asking("first")]},
            {"wait": 20},
            {"apply": [asking("second")]},
            {"wait": 20},
        ),
    )  # fmt: skip


def queue_never_lifts_its_gate(new):
    """A pod is gated by the queue of its team, whose quota does not cover the class."""
    driver, queue = f"{new('d')}.test", new("team")
    tree = pod("job", "lab", claim="want")
    tree["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    tree["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    return Invented(
        about="job",
        told=(r"gate kueue\.x-k8s\.io/admission", rf"queue.{{0,20}}{queue}\b"),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), tree]},
            {"wait": 300},
        ),
    )  # fmt: skip


def card_was_replaced(new):
    """A claim names a card by its number; the card was replaced and has another number."""
    driver, name, old, now = f"{new('d')}.test", new("slice"), new("GPU-a"), new("GPU-b")
    return Invented(
        about="job",
        told=(rf"uuid == '{old}'", rf"uuid is .?{now}",
              rf"slice {name}\b.{{0,200}}{old}.{{0,120}}{now}.{{0,120}}by redra"),
        steps=(
            {"apply": lab(driver, one(driver, name, attributes={"uuid": {"string": old}}))},
            {"wait": 60},
            {"apply": [slice_of(name, driver, "n", [
                {"name": "x", "attributes": {"uuid": {"string": now}}}],
                generation=2, nodeName="n")]},
            {"wait": 60},
            {"apply": [claim("want", "lab", ask("c", selectors=cel(
                           f"device.attributes['{driver}'].uuid == '{old}'"))),
                       pod("job", "lab", claim="want")]},
            {"wait": 5},
        ),
    )  # fmt: skip


def device_is_unhealthy(new):
    """The kubelet reports in the pod's status that its device is unhealthy; nothing evicts it."""
    driver = f"{new('d')}.test"
    ill = {"name": "main", "ready": True, "restartCount": 3, "image": "example.com/job:1",
           "imageID": "", "state": {"running": {}},
           "allocatedResourcesStatus": [{
               "name": "claim:d",
               "resources": [{"resourceID": f"{driver}/n/x", "health": "Unhealthy"}]}]}  # fmt: skip
    return Invented(
        about="job",
        told=(rf"{driver}/n/x\b.{{0,120}}[Uu]nhealthy", r"container main"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver))},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 20},
            {"status": {"phase": "Running", "containerStatuses": [ill]}, "of": "pod/lab/job"},
            {"wait": 60},
        ),
    )  # fmt: skip


def driver_cannot_make_the_partition(new):
    """A driver fails to prepare a device, which the kubelet says in its own words."""
    driver, here = f"{new('d')}.test", new("node")
    said = ("Failed to prepare dynamic resources: prepare devices for claim want: "
            "error creating GPU instance for '1g.20gb': Insufficient Resources")  # fmt: skip
    return Invented(
        about="job",
        told=("FailedPrepareDynamicResources", "error creating GPU instance for '1g.20gb'",
              rf"x of {driver}/{here}\b"),
        off=("kubelet",),
        steps=(
            {"apply": lab(driver, one(driver, on=here), on=here)},
            {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
            {"wait": 5},
            {"apply": [told_by_kubelet(new, "job", "FailedPrepareDynamicResources", said)]},
            {"wait": 300},
        ),
    )  # fmt: skip


REPORTED = (
    attribute_changed_its_type,
    selectors_of_class_and_request_exclude_each_other,
    rule_names_a_pool_that_is_not_there,
    template_got_its_toleration_too_late,
    autoscaler_says_that_it_cannot_help,
    claim_went_with_the_pod_that_owns_it,
    claim_is_deleted_while_it_is_in_use,
    free_devices_are_on_different_links,
    counter_set_is_misspelled,
    share_is_larger_than_the_policy_allows,
    share_is_rounded_up,
    namespace_goes_and_keeps_its_claim,
    spread_wants_the_node_whose_device_is_taken,
    slice_names_its_node_otherwise,
    container_asks_for_a_request_that_is_not_there,
    no_container_uses_the_claim,
    device_plugin_has_the_same_resource,
    queue_never_lifts_its_gate,
    card_was_replaced,
    device_is_unhealthy,
    driver_cannot_make_the_partition,
)
