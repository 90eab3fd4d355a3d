"""An answer names the part that is at fault, and no other of nearly the same name."""

import copy
import re
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

from app.analysis.explain.nearby import holders
from app.cli.explaining import page, parts
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.values.well_known import LAST_APPLIED
from tests import draws
from tests.api.serving import serving
from tests.web import misplaced_incidents, rollout_incidents
from tests.web.field_incidents import told_by_kubelet
from tests.web.invented import (
    Invented,
    Names,
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
from tests.web.more_incidents import quota
from tests.web.night_incidents import deployment
from tests.web.test_incident_stories import stored

DRIVER = "d.test"


async def why(steps, about="pod/job", profile="1.37", on=(), off=(), closed=(), **asked):
    """The text of the answer about an object in namespace `lab` after the steps."""
    kind, _, name = about.partition("/")
    asked = {"kind": kind, "namespace": "lab", "name": name, **asked}
    made = Invented(told=(), steps=steps, profile=profile, on=on, off=off, closed=closed).incident()
    async with serving(store=await stored(made)) as server:
        answer = await server.get(f"/redra/v1/histories/default/why?{urlencode(asked)}")
    return " ".join(line.strip("│├└─ ") for line in page(*parts(answer), 100))


async def test_pod_with_a_later_alternative_is_told_of_the_first():
    made = rollout_incidents.list_always_falls_to_the_last(Names(1))
    told = "alternative any of request dev was chosen, not large, which comes first"
    assert told in await why(made.steps)
    (applied, asked, wait) = made.steps
    (wanted, user) = copy.deepcopy(asked["apply"])
    wanted["spec"]["devices"]["requests"][0]["firstAvailable"].reverse()
    assert "comes first" not in await why((applied, {"apply": [wanted, user]}, wait))


@pytest.mark.parametrize(
    ("devices", "driver", "told"),
    [
        (("x0", "x1"), DRIVER, "has device x1 for request dev"),
        (("x0",), DRIVER, ""),  # the newer generation has it, too
        (("x1",), "other.test", ""),  # of no class that the pod asks for
    ],
)
async def test_older_slice_is_passed_over_only_where_its_devices_would_do(devices, driver, told):
    old = slice_of("old", driver, "n", [{"name": each} for each in devices], nodeName="n")
    newer = [slice_of(f"new-{one}", one, "n", [{"name": "x0"}], generation=2, nodeName="n")
             for one in dict.fromkeys((DRIVER, driver))]  # fmt: skip
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), *newer, old,
                   claim("first", "lab", ask("c")), pod("one", "lab", claim="first")]},
        {"wait": 5},
        {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert "allocated to lab/first" in text
    assert told in text
    assert ("passed over" in text) is bool(told)


def counters_of(name, *sets):
    """A slice of the fabric with these counter sets."""
    tree = slice_of(name, DRIVER, "fabric", [], of=3, allNodes=True)
    del tree["spec"]["devices"]
    tree["spec"]["sharedCounters"] = [
        {"name": each, "counters": {"t": {"value": "1"}}} for each in sets
    ]
    return tree


def devices_of(name, *devices, of=3):
    """A slice of the fabric with these devices."""
    return slice_of(name, DRIVER, "fabric", [{"name": one} for one in devices], of=of,
                    allNodes=True)  # fmt: skip


@pytest.mark.parametrize(
    ("slices", "told"),
    [
        ([devices_of("a", "x", "y"), devices_of("b", "z"), devices_of("c", "y")],
         "device y of pool d.test/fabric is in 2 slices: a (written by X), c (written by X)"),
        ([devices_of("a", "x"), devices_of("b", "x"), devices_of("c", "x")],
         "device x of pool d.test/fabric is in 3 slices: a (written by X), b (written by X), "
         "c (written by X)"),
        ([devices_of("a", "x"), counters_of("b", "s", "t"), counters_of("c", "t")],
         "counter set t of pool d.test/fabric is in 2 slices: b (written by X), c (written by X)"),
        ([devices_of("a", "x"), devices_of("b", "x")], ""),  # it is incomplete in the first place
        ([devices_of("a", "x"), devices_of("b", "y"), devices_of("c", "z")], ""),
    ],
)  # fmt: skip
async def test_slices_with_one_name_in_common_are_named_and_no_other(slices, told):
    large = cel(f"device.attributes['{DRIVER}'].?large.orValue(false)")
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), *slices]},
        {"apply": [claim("want", "lab", ask("c", selectors=large)),
                   pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert "Unschedulable" in text
    text = re.sub(r"by redra:incidents at \S+?Z", "by X", text)
    assert told in text
    assert (" slices: " in text) is bool(told)


def of_model(model, **meta):
    """The class `c` for devices of a model."""
    tree = class_of("c", DRIVER)
    tree["spec"]["selectors"] = cel(f"device.attributes['{DRIVER}'].?model.orValue('') == {model}")
    tree["metadata"] |= meta
    return tree


def with_model(name, model):
    return slice_of(f"s-{name}", DRIVER, name, [{"name": "x", "attributes": {
        "model": {"string": model}}}], nodeName=name)  # fmt: skip


SELECTED_BEFORE = "with its former selector it would select"
GIVEN_BACK = "give DeviceClass c the selector back that it had before revision"


@pytest.mark.parametrize(
    ("states", "model", "helps", "said"),
    [
        ((of_model("'a'"), of_model("'b'")), "a", True, f"{SELECTED_BEFORE} 1 of 1 device: "),
        ((of_model("'a'"), of_model("'b'"), of_model("'b'", labels={"by": "me"})), "a", True,
         f"{SELECTED_BEFORE} 1 of 1 device: "),
        # The selector before the last one would select it, and this one would not.
        ((of_model("'a'"), of_model("'b'"), of_model("'c'")), "a", False,
         f"{SELECTED_BEFORE} 0 of 1 device: "),
        ((of_model("'a'"), of_model("'b'")), "c", False, f"{SELECTED_BEFORE} 0 of 1 device: "),
        ((of_model("'b'"), of_model("'b'", labels={"by": "me"})), "a", False, ""),
    ],
)  # fmt: skip
async def test_class_tells_who_changed_its_selectors_and_what_it_selected(
    states, model, helps, said
):
    first, *later = states
    steps = (
        {"apply": [space("lab"), node("n"), with_model("n", model), first]},
        {"wait": 5},
        *({"apply": [tree]} for tree in later),
        {"wait": 5},
        {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    )
    about = await why(steps, "deviceclass/c")
    assert said in about
    assert ("its selectors were changed, by redra:incidents at" in about) is bool(said)
    assert "created, by redra:incidents at 2026-01-02T03:00:00Z" in about
    text = await why(steps, help="true")
    assert "Unschedulable" in text
    assert (GIVEN_BACK in text) is helps


@pytest.mark.parametrize(
    ("lost", "taints", "is_proposed"),
    [
        ({"rack": None}, [], True),
        ({"rack": "b"}, [], True),
        ({"row": None}, [], False),
        ({"rack": None}, [{"key": "k", "effect": "NoSchedule"}], False),  # it would not do alone
    ],
)
async def test_former_label_is_proposed_where_it_lets_the_pod_run(lost, taints, is_proposed):
    where = {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "rack", "operator": "In", "values": ["a"]}]}]}  # fmt: skip
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("far", {"rack": "z"}),
                   node("n", {"rack": "a", "row": "b"}),
                   slice_of("s", DRIVER, "p", [{"name": "x"}, {"name": "y"}],
                            nodeSelector=where),
                   claim("want", "lab", ask("c")), pod("one", "lab", claim="want")]},
        {"wait": 5},
        {"patch": {"metadata": {"labels": lost}, "spec": {"taints": taints}}, "of": "node/n"},
        {"apply": [claim("new", "lab", ask("c", count=2 if lost == {"row": None} else 1)),
                   pod("job", "lab", claim="new"), pod("second", "lab", claim="want")]},
        {"wait": 5},
    ), help="true")  # fmt: skip
    assert "Unschedulable" in text
    assert ("label node n with rack=a: then it fits on n" in text) is is_proposed
    assert "row" not in text
    assert "label node far" not in text


@pytest.mark.parametrize("label", ["rack", "row"])
async def test_only_a_lost_label_for_which_a_claim_is_allocated_is_named(label):
    where = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n", {"rack": "a", "row": "b"}),
                   slice_of("s", DRIVER, "p", [{"name": "x"}], nodeSelector=where),
                   claim("want", "lab", ask("c")), pod("one", "lab", claim="want")]},
        {"wait": 5},
        {"patch": {"metadata": {"labels": {label: None}},
                   "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, "of": "node/n"},
        {"apply": [node("far"), pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert ("node n had rack=a until that was taken away" in text) is (label == "rack")
    assert "row" not in text


async def test_resource_that_a_node_lacks_is_not_another_that_begins_with_its_name():
    card, large = "x.test/card", "x.test/card-large"
    tree = class_of("c", DRIVER)
    tree["spec"]["extendedResourceName"] = card
    served = node("n")
    for amounts in ("allocatable", "capacity"):
        served["status"][amounts] = {**served["status"][amounts], card: "1"}
    wanted = pod("job", "lab", claim="no")
    del wanted["spec"]["resourceClaims"]
    amounts = {card: "1", large: "1"}
    wanted["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    text = await why((
        {"apply": [space("lab"), tree, served,
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")]},
        {"apply": [wanted]},
        {"wait": 5},
    ))  # fmt: skip
    assert f"Insufficient {large}" in text
    assert f"no DeviceClass stands for {large}" in text
    assert "device plugin" not in text, "the node has enough of the shorter name"


async def test_selector_that_failed_is_named_and_not_that_of_another_request():
    broken = cel(f"device.attributes['{DRIVER}'].nope == 1")
    sound = cel(f"device.driver == '{DRIVER}'")
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}, {"name": "y"}], nodeName="n")]},
        {"apply": [claim("want", "lab", ask("c", "first", selectors=sound),
                         ask("c", "second", selectors=broken)),
                   pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert f"selector #0 of request second of claim want: {broken[0]['cel']['expression']}" in text
    assert "of request first" not in text


async def test_alternative_whose_selector_failed_is_named_with_its_request():
    broken = cel(f"device.attributes['{DRIVER}'].nope == 1")
    sound = cel(f"device.driver == '{DRIVER}' && false")
    alternatives = [
        {"name": name, "deviceClassName": "c", "selectors": chosen}
        for name, chosen in (("large", sound), ("small", broken))
    ]
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")]},
        {"apply": [claim("want", "lab", {"name": "dev", "firstAvailable": alternatives}),
                   pod("job", "lab", claim="want")]},
        {"wait": 5},
    ))  # fmt: skip
    assert "selector #0 of request dev/small of claim want: device.attributes" in text
    assert "selector #0 of request dev/large" not in text


@pytest.mark.parametrize(
    ("profile", "patience", "is_named"),
    [("1.36.2", [], True), ("1.36.2", [{"operator": "Exists", "effect": "NoExecute"}], False),
     ("1.37", [], False)],
)  # fmt: skip
async def test_change_that_leads_under_an_unseen_rule_names_the_rule(profile, patience, is_named):
    tree = rule("hot", DRIVER, key="x.test/hot", effect="NoExecute")
    wanted = ask("c", tolerations=patience, selectors=cel("false"))
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"), tree]},
        {"apply": [claim("want", "lab", wanted), pod("job", "lab", claim="want")]},
        {"wait": 5},
    ), profile=profile, on=("DRADeviceTaintRules",), help="true")  # fmt: skip
    assert "drop selector #0 (false)" in text
    said = "does not see rule hot, which taints 1 device x.test/hot:NoExecute"
    assert (said in text) is is_named
    assert ("C24" in text) is is_named


async def test_claim_that_is_taken_away_from_a_running_pod_is_named_with_who_has_its_device():
    steps = (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n"),
                   claim("one", "lab", ask("c")), pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"apply": [claim("two", "lab", ask("c")), pod("next", "lab", claim="two")]},
        {"wait": 5},
        {"status": {"allocation": None, "reservedFor": None}, "of": "resourceclaim/lab/one"},
        {"wait": 5},
    )  # fmt: skip
    text = await why(steps)
    assert "runs on node n and has lost claim one" in text
    assert "claim one was taken away from it while it runs, by " in text
    assert f"it goes on with {DRIVER}/n/x, which claim lab/two got meanwhile" in text
    assert "cannot start" not in text
    made = Invented(told=(), steps=steps).incident()
    async with serving(store=await stored(made)) as server:
        scanned = await server.get("/redra/v1/histories/default/scan")
    assert [one["incident"] for one in scanned["items"]] == [], "its scheduler chose its devices"


def on_node(*devices, name="s"):
    return slice_of(name, DRIVER, "n", [{"name": each} for each in devices], nodeName="n")


async def test_both_rules_that_taint_devices_of_one_request_are_named():
    of_one = [rule(name, DRIVER, key="x.test/hold", effect="NoSchedule") for name in ("a", "b")]
    for tree, device in zip(of_one, ("x", "y"), strict=True):
        tree["spec"]["deviceSelector"]["device"] = device
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x", "y"), *of_one]},
        {"apply": [claim("no", "lab", ask("c")), pod("job", "lab", claim="no")]},
        {"wait": 5},
    ))  # fmt: skip
    assert "x, y: taint x.test/hold:NoSchedule by rules a, b is not tolerated" in text


async def test_device_and_pool_tell_that_their_slice_was_gone_and_who_has_the_device():
    gone = (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x"),
                   claim("one", "lab", ask("c")), pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"delete": "resourceslice/s"},
        {"wait": 30},
    )  # fmt: skip
    pool = await why(gone, about=f"pool/{DRIVER}/n")
    assert "no slice of it is published any more" in pool
    assert "slice s with 1 device was deleted, by " in pool
    assert "still allocated are x: claim lab/one" in pool
    device = await why((*gone, {"apply": [on_node("x")]}), about=f"device/{DRIVER}/n/x")
    assert "published in slice s of pool generation 1, by " in device
    assert "before, published in slice s of pool generation 1 from " in device
    assert "until the slice was deleted, by " in device


async def test_taint_of_a_node_is_told_with_its_value():
    tree = node("n", taints=[{"key": "repair", "value": "now", "effect": "NoSchedule"}])
    assert "tainted repair=now:NoSchedule" in await why(({"apply": [tree]},), about="node/n")


async def test_pod_that_is_to_be_evicted_names_the_rule_that_comes_first():
    patient = [
        {"key": f"x.test/{key}", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": seconds}
        for key, seconds in (("soon", 60), ("late", 90))
    ]  # fmt: skip
    rules = [rule(key, DRIVER, key=f"x.test/{key}", effect="NoExecute") for key in ("soon", "late")]
    wanted = claim("one", "lab", ask("c", tolerations=patient))
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x"), wanted,
                   pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"apply": rules},
        {"wait": 5},
    ))  # fmt: skip
    _, planned = text.split("is to be evicted at ")
    assert planned.split()[1:3] == ["rule", "soon"]
    assert "rule late" not in planned.partition("claim one")[0]


HOST = "kubernetes.io/hostname"
OF_DB = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}


def near(name, kind="", **labels):
    """A pod with a claim, with labels and one required term of an affinity."""
    tree = pod(name, "lab", claim=name)
    tree["metadata"]["labels"] = labels
    if kind:
        wanted = {"requiredDuringSchedulingIgnoredDuringExecution": [OF_DB]}
        tree["spec"]["affinity"] = {kind: wanted}
    return [claim(name, "lab", ask("c")), tree]


@pytest.mark.parametrize(
    ("first", "job", "said"),
    [
        (near("first", app="db"), near("job", "podAntiAffinity"),
         f"anti-affinity of the pod keeps it apart from pod lab/first on node n, by {HOST}"),
        (near("first", "podAntiAffinity"), near("job", app="db"),
         f"the anti-affinity of pod lab/first on node n keeps this pod out, by {HOST}"),
        (near("first", app="web"), near("job", "podAffinity"),
         f"wants a pod that it selects in the same {HOST}: no such pod has a node"),
    ],
)  # fmt: skip
async def test_pods_that_keep_a_pod_from_a_node_are_named(first, job, said):
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x", "y"), *first]},
        {"wait": 5},
        {"apply": job},
        {"wait": 5},
    ))  # fmt: skip
    assert said in text


async def test_device_that_was_there_before_the_allocation_is_no_successor():
    other = slice_of("t", DRIVER, "other", [{"name": "x"}], nodeName="n")
    wanted = claim("one", "lab", ask("c", selectors=cel(f"device.attributes['{DRIVER}'].here")))
    here = {"attributes": {"here": {"bool": True}}}
    held = slice_of("s", DRIVER, "n", [{"name": "x", **here}], nodeName="n")
    hardware = [space("lab"), class_of("c", DRIVER), node("n"), held]
    use = [wanted, pod("job", "lab", claim="one")]
    said = "pool d.test/other publishes a device of the same name x for the same node"
    for before, after, is_named in (([other], [], False), ([], [other], True)):
        text = await why((
            {"apply": [*hardware, *before]},
            {"wait": 5},
            {"apply": use},
            {"wait": 5},
            {"delete": "resourceslice/s"},
            {"apply": after},
            {"wait": 5},
        ))  # fmt: skip
        assert "runs on node n, with a device that is not published any more" in text
        assert "slice s, which had d.test/n/x, was deleted" in text
        assert (said in text) is is_named


@pytest.mark.parametrize(
    ("of_old", "of_new", "of_other", "is_named"),
    [
        ("sn-1", "sn-1", "sn-2", True),
        ("sn-1", "sn-3", "sn-2", False),
        # What several devices have, such as a product, tells none of them.
        ("sn-1", "sn-1", "sn-1", False),
    ],
)
async def test_renamed_device_is_known_by_what_it_alone_has(of_old, of_new, of_other, is_named):
    def published(name, serial):
        devices = [
            {"name": each, "attributes": {"serial": {"string": text},
                                          "size": {"int": 80}, "kind": {"string": "card"}}}
            for each, text in ((name, serial), ("other", of_other))
        ]  # fmt: skip
        return slice_of("s", DRIVER, "n", devices, nodeName="n", generation=len(name))

    wanted = cel(f"device.attributes['{DRIVER}'].serial == '{of_old}'")
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), published("x", of_old),
                   claim("one", "lab", ask("c", selectors=wanted)),
                   pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"apply": [published("renamed", of_new)]},
        {"wait": 5},
    ))  # fmt: skip
    assert "slice s, which had d.test/n/x, was written without it" in text
    said = "device d.test/n/renamed is published with the same serial sn-1, which another claim may"
    assert (said in text) is is_named


@pytest.mark.parametrize("is_withdrawn", [False, True], ids=["beside", "instead"])
@pytest.mark.parametrize(
    ("name", "where", "is_named"), [("x", "n", True), ("y", "n", False), ("x", "m", False)]
)
async def test_driver_that_has_another_name_now_is_named(is_withdrawn, name, where, is_named):
    """The slice of the new name is there before the one of the old name goes, or in its place."""
    said = f"Failed to prepare dynamic resources: DRA driver {DRIVER} is not registered"
    warning = told_by_kubelet(Names(1), "job", "FailedPrepareDynamicResources", said)
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), node("m"), on_node("x"),
                   claim("one", "lab", ask("c")), pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"apply": [slice_of("new", "renamed.test", where, [{"name": name}], nodeName=where)]},
        *([{"delete": "resourceslice/s"}] if is_withdrawn else [{"apply": [warning]}]),
        {"wait": 60},
    ), off=("kubelet",))  # fmt: skip
    told = "driver renamed.test publishes a device of the same name for the same node, x: "
    assert (f"{told}the driver may have been renamed" in text) is is_named


@pytest.mark.parametrize("kind", ["widget", "widgets", "widgets.x.test"])
async def test_kind_is_known_before_and_after_the_history_defines_it(kind):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.x.test"},
        "spec": {"group": "x.test", "scope": "Namespaced",
                 "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    }  # fmt: skip
    widget = {"apiVersion": "x.test/v1", "kind": "Widget",
              "metadata": {"name": "w", "namespace": "lab"}}  # fmt: skip
    steps = ({"apply": [space("lab"), definition]}, {"wait": 5}, {"apply": [widget]}, {"wait": 5},
             {"delete": "customresourcedefinition/widgets.x.test"}, {"wait": 5})  # fmt: skip
    made = Invented(told=(), steps=steps).incident()
    asked = urlencode({"kind": kind, "namespace": "lab", "name": "w"})
    async with serving(store=await stored(made)) as server:
        path = f"/redra/v1/histories/default/why?{asked}"
        before = await server.raw("GET", f"{path}&at=1")
        after = await server.get(path)
        unknown = await server.raw("GET", path.replace("kind=w", "kind=v"))
    assert (before.status_code, "one was created later" in before.text) == (404, True)
    assert after["text"] == "is gone"
    assert "there is no kind" in unknown.text


async def test_words_of_a_kubelet_before_the_deletion_do_not_keep_a_pod():
    warning = told_by_kubelet(Names(1), "job", "FailedMount", "no such volume")
    steps = (
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x"),
                   claim("one", "lab", ask("c")), pod("job", "lab", claim="one")]},
        {"wait": 5},
        {"apply": [warning]},
        {"wait": 60},
        {"delete": "pod/lab/job"},
        {"wait": 60},
    )  # fmt: skip
    text = await why(steps, off=("kubelet",))
    assert "waits for the kubelet of node n to stop the containers" in text
    assert "FailedMount" not in text


async def test_landing_page_names_the_pools_that_a_rollout_renamed():
    made = rollout_incidents.rollout_renames_the_pools(Names(1))
    async with serving(store=await stored(made.incident())) as server:
        (finding,) = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (cause,) = finding["causes"]
    assert "1 device of the same name is published for the same node in another pool" in cause
    assert cause.count(" → ") == 1


async def test_namespace_lists_the_claims_and_pods_that_are_refused_in_it():
    limit = quota("limit", "lab", **{"count/resourceclaims.resource.k8s.io": "0", "pods": "1"})
    spec = {"containers": [{"name": "main", "image": "example.com/web:1"}]}
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), on_node("x"), limit,
                   template("t", "lab", ask("c"))]},
        {"wait": 5},
        {"apply": [pod("job", "lab", template="t")]},
        {"wait": 5},
        {"apply": [deployment("web", spec)]},
        {"wait": 5},
    ), about="namespace/lab")  # fmt: skip
    assert "pod job waits for a claim that is refused: exceeded quota: limit" in text
    assert "pods of ReplicaSet lab/web-" in text
    assert "are refused: exceeded quota: limit, requested: pods=1" in text


APPLIED = '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","spec":{"devices":%s}}'
SHARED = '[{"name":"x","allowMultipleAllocations":true}]'


@pytest.mark.parametrize(
    ("text", "closed", "is_named"),
    [
        (APPLIED % SHARED, ("DRAConsumableCapacity",), True),
        (APPLIED % SHARED, (), False),
        (APPLIED.replace("/v1", "/v1beta1") % SHARED, ("DRAConsumableCapacity",), False),
        (APPLIED % '[1,"x",{"capacity":[1],"attributes":7}]', ("DRAConsumableCapacity",), False),
        (APPLIED % '"x"', ("DRAConsumableCapacity",), False),
        ("[", ("DRAConsumableCapacity",), False),
    ],
    ids=["dropped", "kept", "another version", "devices of a wrong form", "no list", "no JSON"],
)
async def test_applied_fields_that_are_not_stored_are_named(text, closed, is_named):
    published = slice_of("s", DRIVER, "n", [{"name": "x"}], nodeName="n")
    published["metadata"]["annotations"] = {LAST_APPLIED: text}
    said = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"), published,
                   template("one", "lab", ask("c"))]},
        {"apply": [pod("first", "lab", template="one")]},
        {"wait": 5},
        {"apply": [pod("job", "lab", template="one")]},
        {"wait": 5},
    ), closed=closed)  # fmt: skip
    assert "allocated to lab/first" in said
    named = "ResourceSlice s was applied with a field that is not stored"
    assert (named in said) is is_named


async def test_what_would_help_stays_on_a_page_that_is_cut():
    """On a cluster of many kinds of nodes their answers fill the page."""
    made = misplaced_incidents.free_devices_are_scattered(Names(1))
    driver, later = f"{Names(1)('d')}.test", []
    for number in range(4):
        taints = [{"key": f"x.test/of-{number}", "effect": "NoSchedule"}]
        devices = [{"name": f"y{one}", "taints": taints} for one in range(number + 1)]
        name = f"m{number}"
        made_later = slice_of(name, driver, name, devices, nodeName=name)
        later += [{"apply": [node(name), made_later]}, {"wait": 20}]
    text = await why((*made.steps, *later), help="true")
    assert "more; -o json has all of them" in text, "the page is cut"
    assert "what would help, each proved by allocating again" in text
    assert "lower count to 1 in request dev of claim lab/want" in text


def kept_for(least, **meta):
    tree = class_of("c", DRIVER)
    tree["metadata"] |= meta
    return {
        **tree,
        "spec": {"selectors": cel(f"device.attributes['{DRIVER}'].gen >= {least}")},
    }


GONE = {"delete": "deviceclass/c"}
RECLASSED = {
    "made-anew-with-more": ([GONE, {"apply": [kept_for(5)]}], 3, "made anew"),
    "changed": ([{"apply": [kept_for(5)]}], 3, "changed"),
    "changed-then-labelled": (
        [{"apply": [kept_for(5)]}, {"apply": [kept_for(5, labels={"a": "b"})]}], 3, "changed"),
    "made-anew-for-what-was-never-there": ([GONE, {"apply": [kept_for(9)]}], 7, ""),
    "labelled": ([{"apply": [kept_for(5, labels={"a": "b"})]}], 5, ""),
}  # fmt: skip


@draws.BY_DAY
@pytest.mark.parametrize("row", RECLASSED)
async def test_class_that_selected_a_device_before_is_named_with_the_write_that_ended_it(row):
    then, first, how = RECLASSED[row]
    device = {"name": "x0", "attributes": {"gen": {"int": 4}}}
    steps = (
        {"apply": [space("lab"), kept_for(first), node("n"),
                   slice_of("s", DRIVER, "n", [device], nodeName="n")]},
        {"wait": 2}, *then, {"wait": 2},
        {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
        {"wait": 5},
    )  # fmt: skip
    made = Invented(told=(), steps=steps).incident()
    async with serving(store=await stored(made)) as server:
        path = "/redra/v1/histories/default"
        answer = await server.get(f"{path}/why?kind=pod&namespace=lab&name=job")
        items = (await server.get(f"{path}/findings"))["items"]
    said = f"class c selected {DRIVER}/n/x0 for request dev of claim want until it was {how}, by"
    (waiting,) = (one for one in items if one["kind"] == "WaitingPods")
    named = [line for line in waiting["causes"] if "selected" in line and "until" in line]
    assert len(named) == bool(how)
    for text in (*named, " ".join(line.strip("│├└─ ") for line in page(*parts(answer), 100))):
        assert ("until it was" in text) is bool(how)
        assert (said in text) is bool(how)


async def test_all_objects_that_a_pod_lacks_are_to_be_created():
    wanted = pod("job", "lab", claim="first")
    wanted["spec"]["resourceClaims"].append({"name": "e", "resourceClaimTemplateName": "second"})
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n")]},
        {"apply": [wanted]},
        {"wait": 5},
    ), help="true")  # fmt: skip
    assert "create ResourceClaim first in namespace lab" in text
    assert "create ResourceClaimTemplate second in namespace lab" in text


@pytest.mark.parametrize(
    ("sets", "said"),
    [(0, "no device is published here"), (1, "no device is published here, only 1 counter set"),
     (2, "no device is published here, only 2 counter sets")],
)  # fmt: skip
async def test_slice_without_devices_counts_none(sets, said):
    counters = [{"name": f"s{number}", "counters": {"t": {"value": "1"}}} for number in range(sets)]
    empty = slice_of("s", DRIVER, "n", [], nodeName="n")
    if sets:
        del empty["spec"]["devices"]
        empty["spec"]["sharedCounters"] = counters
    text = await why(({"apply": [space("lab"), node("n"), empty]},), about="resourceslice/s")
    assert said in text
    assert "0 of" not in text
    assert ("only" in text) is bool(sets)


ENDED = {
    "gone": ((), ("namespace/lab",), "pod/job", True),
    "claim": ((), ("namespace/lab",), "resourceclaim/want", True),
    "ending": (("kubelet",), ("namespace/lab",), "pod/job", True),
    "deleted by itself": ((), ("pod/lab/job",), "pod/job", False),
    "deleted before its namespace": (("kubelet",), ("pod/lab/job", "namespace/lab"), "pod/job",
                                     False),
    "namespace deleted twice": ((), ("namespace/lab", "", "namespace/lab"), "pod/job", True),
}  # fmt: skip
"""The controllers that are off, what is deleted ("": made again), what is asked, the verdict."""


@draws.BY_DAY
@pytest.mark.parametrize("row", ENDED)
async def test_object_that_ends_with_its_namespace_says_who_deleted_that(row):
    off, deletions, about, is_named = ENDED[row]
    cluster = [class_of("c", DRIVER), node("n"),
               slice_of("s", DRIVER, "n", [{"name": "x0"}], nodeName="n")]  # fmt: skip
    objects = ({"apply": [space("lab")]},
               {"apply": [claim("want", "lab", ask("c")), pod("job", "lab", claim="want")]},
               {"wait": 20})  # fmt: skip
    steps = [{"apply": cluster}, *objects]
    for deleted in deletions:
        steps += [{"delete": deleted}, {"wait": 60}] if deleted else objects
    text = await why(tuple(steps), about=about, off=off)
    said = "the deletion of namespace lab with all in it was asked for by redra:incidents at "
    assert text.count("deletion of namespace") == text.count(said) == is_named


@pytest.mark.parametrize("count", [8, 9])
async def test_many_holders_of_devices_are_told_by_their_workloads(count):
    """Rows of eight or fewer claims are told by their pods; three of many say nothing."""
    devices = [{"name": f"x{number}"} for number in range(count)]
    spec = pod("web", "lab", template="one")["spec"]
    alone = [pod(f"p{number}", "lab", template="one") for number in range(2)]
    text = await why((
        {"apply": [space("lab"), class_of("c", DRIVER), node("n"),
                   slice_of("s", DRIVER, "n", devices, nodeName="n"),
                   template("one", "lab", ask("c"))]},
        {"apply": [deployment("web", spec, replicas=count - 2), *alone]},
        {"wait": 60},
        {"apply": [pod("job", "lab", template="one")]},
        {"wait": 5},
    ))  # fmt: skip
    told = "of 9 claims that have the devices, 7 of deployment lab/web, 2 of single pods of "
    assert (told in text) == (count == 9)
    assert ("is used by pod lab/" in text) == (count == 8)


def test_deployment_of_holders_rests_on_the_replica_set_that_names_it():
    """A reader who may not see ReplicaSets does not learn of the Deployment."""
    objects = {
        claim_key("lab", f"c{n}"): {"status": {"reservedFor": [
            {"resource": "pods", "name": f"p{n}", "uid": str(n)}]}}
        for n in range(9)
    } | {
        ObjectKey("", "pods", "lab", f"p{n}"): {"metadata": {"ownerReferences": [
            {"kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}]}}
        for n in range(9)
    }  # fmt: skip
    made = ObjectKey("apps", "replicasets", "lab", "web-1")
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    objects[made] = {"metadata": {"ownerReferences": [owner]}}
    names = [f"lab/c{n}" for n in range(9)]
    views = SimpleNamespace(objects=SimpleNamespace(get=objects.get))
    (reason,) = holders.users(views, names)
    assert reason.text == "all 9 claims that have the devices are of deployment lab/web"
    assert reason.rests_on == (made,)
