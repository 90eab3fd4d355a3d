"""The landing page names the device causes of waiting pods: request, cause, number of devices."""

import re

import msgspec
import pytest

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.explain.pods import ExplainBounds
from app.analysis.incidents.incident import IncidentVariant
from app.api.server.limits import ApiLimits
from app.bootstrap.gallery import playing
from app.domain.controllers.registry import ControllerOptions
from app.domain.controllers.scheduling.plugins.volume_binding import UNBOUND
from app.domain.log import Draft, Head, Revision, chain
from tests import draws
from tests.api.serving import serving
from tests.cluster import Cluster
from tests.virtual_clock import VirtualClock
from tests.web import (
    apart_incidents,
    deeper_incidents,
    overlooked_incidents,
    withdrawn_incidents,
)
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
from tests.web.reading import read
from tests.web.test_incident_stories import HOME, stored, texts

D = "d.test"
NODES = ("n1", "n2")
HOST = "kubernetes.io/hostname"
BY_THEM = "by redra:incidents at 2026-01-02T03:00:07Z"
BEGUN = "by redra:incidents at 2026-01-02T03:00:00Z"


def hardware(count=2, *, each=lambda number: {}, **spec):
    """Two nodes with `count` devices each, and a class for them."""
    made = [space("lab"), class_of("c", D)]
    for name in NODES:
        devices = [{"name": f"x{number}", **each(number)} for number in range(count)]
        made += [node(name), slice_of(name, D, name, devices, nodeName=name, **spec)]
    return made


def wanting(*requests, name="want", user="job", **devices):
    return [claim(name, "lab", *requests, **devices), pod(user, "lab", claim=name)]


@pytest.mark.parametrize(
    "make",
    [*overlooked_incidents.OVERLOOKED, *withdrawn_incidents.WITHDRAWN],
    ids=lambda make: make.__name__,
)
async def test_object_that_nobody_looks_at_is_named(make):
    made = make(Names(7))
    async with serving(store=await stored(made.incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (item,) = (one for one in items if one["kind"] == "WaitingPods" and one["present"])
    for part in made.told:
        assert any(re.search(part, line) for line in item["causes"]), item["causes"]


LACKING = "the driver did not publish the others, or the recording lacks them"
CARD = withdrawn_incidents.card
GONE = "had device x1 for request dev of claim want until it was"


@pytest.mark.parametrize(
    ("steps", "is_told"),
    [
        ([{"apply": [CARD("s", D, "x0", generation=2)]}], True),
        ([{"delete": "resourceslice/s"}, {"apply": [CARD("t", D, "x0")]}], True),
        ([{"delete": "resourceslice/s"}, {"apply": [CARD("t", D, "x0", "x1")]}], False),
        ([{"apply": [CARD("s", D, "x0", "y", generation=2)]}], False),
        ([{"apply": [CARD(*one, generation=2, of=2) for one in (("s", D, "x0"), ("t", D, "x1"))]}],
         False),
        ([{"apply": [CARD("s", D, "x0", generation=2)]}, {"wait": 5},
          {"apply": [CARD("s", D, "x0", "x1", generation=3)]}], False),
    ],
    ids=["withdrawn", "made anew without it", "made anew", "renamed", "in another slice", "back"],
)  # fmt: skip
async def test_withdrawn_device_is_a_cause_unless_another_one_came(steps, is_told):
    """Other pods have what is there, so that the last one waits in each case."""
    made = [space("lab"), class_of("c", D), node("n"), CARD("s", D, "x0", "x1")]
    users = {name: wanting(ask("c"), name=name, user=f"of-{name}") for name in ("a", "b", "more")}
    played = ({"apply": made}, {"wait": 5}, {"apply": [*users["a"], *users["b"]]}, {"wait": 5},
              *steps, {"wait": 5}, {"apply": users["more"]}, {"wait": 5},
              {"apply": wanting(ask("c"))}, {"wait": 5})  # fmt: skip
    causes = await causes_on(await stored(Invented(told=(), steps=played).incident()))
    assert causes
    assert any(GONE in cause for cause in causes) == is_told, causes


def kinds_of(name, *devices, **more):
    """A slice of node `n` with devices that begin with their kind."""
    named = [{"name": each, "attributes": {"kind": {"string": each[:-1]}}} for each in devices]
    return slice_of(name, D, "n", named, nodeName="n", **more)


def of_kind(name):
    return ask("c", f"{name}s", selectors=cel(f"device.attributes['{D}'].kind == '{name}'"))


@pytest.mark.parametrize(
    ("in_use", "expected"),
    [("nic", "slice t had device nic1 for request nics of claim"), ("gpu", "")],
    ids=["of the sort that is short", "of which another one is free"],
)
@pytest.mark.parametrize("are_apart", [False, True], ids=["one claim", "two claims"])
async def test_withdrawn_device_is_named_for_the_request_that_lacks_it(in_use, expected, are_apart):
    whole = [kinds_of("s", "gpu0", "nic0", of=2), kinds_of("t", "nic1", of=2)]
    made = [space("lab"), class_of("c", D), node("n"), *whole]
    job = pod("job", "lab", claim="want")
    wants = [claim("want", "lab", of_kind("gpu"), of_kind("nic"))]
    if are_apart:
        wants = [claim("want", "lab", of_kind("gpu")), claim("more", "lab", of_kind("nic"))]
        job["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "more"})
    steps = ({"apply": made}, {"wait": 5},
             {"apply": wanting(of_kind(in_use), name="held", user="first")}, {"wait": 5},
             {"apply": [kinds_of("s", "gpu0", "nic0", generation=2)]},
             {"delete": "resourceslice/t"}, {"wait": 5},
             {"apply": [*wants, job]}, {"wait": 5})  # fmt: skip
    causes = await causes_on(await stored(Invented(told=(), steps=steps).incident()))
    gone = [cause for cause in causes if cause.startswith("slice t had")]
    assert [cause[: len(expected)] for cause in gone] == [expected] * bool(expected), causes


async def test_later_alternative_without_a_configuration_is_named():
    made = overlooked_incidents.configuration_is_for_the_other_alternative(Names(7))
    async with serving(store=await stored(made.incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (item,) = (one for one in items if one["kind"] == "LaterAlternatives")
    assert re.search(made.told[0], item["causes"][0])


def shelf():
    """A pool of two devices that both nodes see."""
    devices = [{"name": "x0"}, {"name": "x1"}]
    return [space("lab"), class_of("c", D), *map(node, NODES),
            slice_of("s", D, "shelf", devices, allNodes=True)]  # fmt: skip


def closed(name, *taints, **spec):
    """A node with these taints."""
    return node(name, taints=list(taints), **spec)


def with_spec(made, **spec):
    return {**made, "spec": {**made["spec"], **spec}}


def full_of_cpu(name):
    """A pod without devices that has all cpu of a node."""
    container = {"name": "main", "image": "x.test/w", "resources": {"requests": {"cpu": "16"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "lab"},
            "spec": {"nodeName": name, "containers": [container]}}  # fmt: skip


UNMATCHED = "node(s) didn't match Pod's node affinity/selector"
ON_SECOND = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
            ]
        }
    }
}


def volume_claim(**spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "lab"},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}, **spec}}  # fmt: skip


def storage_class(name):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "x.test/p"}  # fmt: skip


def volume_for(name):
    where = {"key": HOST, "operator": "In", "values": [name]}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                     "local": {"path": "/d"}, "nodeAffinity": {"required": {
                         "nodeSelectorTerms": [{"matchExpressions": [where]}]}}}}  # fmt: skip


def on_second_node(name):
    """A class that makes volumes for the second node, once a pod is there."""
    where = {"matchLabelExpressions": [{"key": HOST, "values": ["n2"]}]}
    delayed = {"volumeBindingMode": "WaitForFirstConsumer"}
    return {**storage_class(name), **delayed, "allowedTopologies": [where]}


def user_of_volume(name, **spec):
    """A pod without devices that uses the volume claim."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {"name": "main", "image": "x.test/w"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "lab"},
            "spec": {"containers": [container], "volumes": volumes, **spec}}  # fmt: skip


LARGE = cel(f"device.attributes['{D}'].gen\n  >= 4")
REFUSED = "cannot allocate all claims"
HOT = {"key": "x.test/hot", "effect": "NoSchedule"}
SMALL = {"attributes": {"gen": {"int": 3}}}


def books(sets=1):
    """A node with devices that draw more from their counters than there is."""
    names = [f"die-{number}" for number in range(sets)]
    declared = slice_of("books", D, "n1", [], of=2, nodeName="n1")
    del declared["spec"]["devices"]
    declared["spec"]["sharedCounters"] = [
        {"name": name, "counters": {"t": {"value": "4"}}} for name in names
    ]
    devices = [
        {"name": f"x-{name}",
         "consumesCounters": [{"counterSet": name, "counters": {"t": {"value": "8"}}}]}
        for name in names
    ]  # fmt: skip
    return [space("lab"), class_of("c", D), node("n1"), declared,
            slice_of("s", D, "n1", devices, of=2, nodeName="n1")]  # fmt: skip


WANTS = "request dev wants 1 of class c: "
FALSE = f"selector #0 of the request: device.attributes['{D}'].gen >= 4"
IS_SMALL = f"request dev: device.attributes['{D}'].gen is 3"

START = "2026-01-02T03:00:00Z"
UNSERVED = "node n2 has no slice of any driver, unlike 1 other node"
HEATED = (
    "rule hot taints {} devices x.test/hot:NoSchedule since it was written, by redra:incidents at "
    f"{START}"
)
ROWS = {
    "selector of the request": (
        hardware(each=lambda _: SMALL) + wanting(ask("c", selectors=LARGE)),
        [f"{WANTS}not selected ({FALSE}): 4 devices on 2 nodes", IS_SMALL],
    ),
    "selector of the class": (
        [*hardware(), class_of("other", "no.test"), *wanting(ask("other"))],
        ["request dev wants 1 of class other: not selected (selector #0 of class other: "
         "device.driver == 'no.test'): 4 devices on 2 nodes",
         "class other selects driver no.test, which publishes no slice here; slices here are of "
         "d.test"],
    ),
    "the only device of the class before all others, though they are more": (
        [*hardware(8), class_of("one", "one.test"),
         slice_of("one", "one.test", "one", [{"name": "y0"}], nodeName="n1"),
         *wanting(ask("one", selectors=cel("false")))],
        ["request dev wants 1 of class one: not selected (selector #0 of the request: false): "
         "1 device on 1 node; not selected (selector #0 of class one: "
         "device.driver == 'one.test'): 16 devices on 2 nodes"],
    ),
    "taint of a rule": (
        [*hardware(), rule("hot", D, key="x.test/hot", effect="NoSchedule"), *wanting(ask("c"))],
        [f"{WANTS}tainted (x.test/hot:NoSchedule): 4 devices on 2 nodes", HEATED.format(4)],
    ),
    "counter": (
        books() + wanting(ask("c")),
        [f"{WANTS}short of a counter (counter t of set die-0): 1 device on 1 node"],
    ),
    "what nearly fits before what is not selected": (
        [*hardware(each=lambda number: {} if number == 0 else SMALL),
         rule("hot", D, key="x.test/hot", effect="NoSchedule"),
         *wanting(ask("c", selectors=cel(f"!has(device.attributes['{D}'].gen)")))],
        [f"{WANTS}tainted (x.test/hot:NoSchedule): 2 devices on 2 nodes; not selected "
         f"(selector #0 of the request: !has(device.attributes['{D}'].gen)): 2 devices on 2 nodes",
         HEATED.format(2)],
    ),
    "several counters": (
        books(sets=3) + wanting(ask("c")),
        [f"{WANTS}short of a counter (counter t of set die-0 and 2 more): 3 devices"],
    ),
    "too few devices": (
        hardware() + wanting(ask("c", count=3)),
        ["request dev wants 3 of class c: suitable: 4 devices on 2 nodes, too few on each node"],
    ),
    "all devices, one of which is tainted": (
        hardware(each=lambda number: {"taints": [HOT]} if number else {})
        + wanting(ask("c", allocationMode="All")),
        ["request dev wants all of class c: suitable: 2 devices on 2 nodes; "
         "tainted (x.test/hot:NoSchedule): 2 devices on 2 nodes",
         *(f"the driver, slice {node} taints device {D}/{node}/x1 x.test/hot:NoSchedule since it "
           f"was written, by redra:incidents at {START}" for node in ("n1", "n2"))],
    ),
    "one of two requests": (
        hardware(each=lambda _: SMALL) + wanting(ask("c", "one"), ask("c", "two", selectors=LARGE)),
        [f"request two wants 1 of class c: not selected ({FALSE}): 4 devices on 2 nodes",
         IS_SMALL.replace("dev:", "two:")],
    ),
    "one pool that both nodes see, and that is not whole": (
        [*hardware(), slice_of("part", D, "shelf", [{"name": "y"}], of=2, allNodes=True),
         *wanting(ask("c", count=3))],
        ["request dev wants 3 of class c: suitable: 4 devices on 2 nodes "
         "(a device counts on each node that sees it)",
         "pool d.test/shelf cannot be used: incomplete: 1 of 2 slices are there",
         "pool d.test/shelf is incomplete since slice part was published with generation 1, by "
         f"redra:incidents at {START}: 1 of 2 slices is there (part), 1 is missing",
         "before, nothing of it was published"],
    ),
    "devices that both nodes see": (
        shelf() + wanting(ask("c", selectors=cel("false"))),
        [f"{WANTS}not selected (selector #0 of the request: false): 4 devices on 2 nodes "
         "(a device counts on each node that sees it)"],
    ),
    "no device at all": (
        [space("lab"), class_of("c", D), *map(node, NODES), *wanting(ask("c"))],
        ["no device can be used on 2 nodes", "no ResourceSlice is published"],
    ),
    "no device on one node, and no cpu on the one with devices": (
        [*hardware()[:4], node("n2"), full_of_cpu("n1"), *wanting(ask("c"))],
        ["its claims could be allocated on node n1, which refuses it: Insufficient cpu",
         "node n1 has 16 cpu, of which its pod requests 16; this pod requests 1",
         "no device can be used on 1 node; 1 other node refuses the pod for another reason",
         UNSERVED],
    ),
    "each request on another node": (
        [space("lab"), class_of("c", D), class_of("nic", "n.test"), *map(node, NODES),
         slice_of("n1", D, "n1", [{"name": "x0"}], nodeName="n1"),
         slice_of("n2", "n.test", "n2", [{"name": "p0"}], nodeName="n2"),
         *wanting(ask("c", "card"), ask("nic", "port"))],
        ["request card wants 1 of class c: suitable: 1 device on 1 node; not selected "
         f"(selector #0 of class c: device.driver == '{D}'): 1 device on 1 node",
         "request port wants 1 of class nic: suitable: 1 device on 1 node; not selected "
         "(selector #0 of class nic: device.driver == 'n.test'): 1 device on 1 node",
         "none of 2 nodes has enough suitable devices for all requests together"],
    ),
    "each request alone": (
        hardware() + wanting(ask("c", "one", count=2), ask("c", "two", count=2)),
        ["on 2 nodes each request could be satisfied alone, but not all together"],
    ),
    "a value that no two devices share": (
        hardware(each=lambda number: {"attributes": {"gen": {"int": number}}})
        + wanting(ask("c", count=2), constraints=[{"matchAttribute": f"{D}/gen"}]),
        ["on 2 nodes each device could be taken alone, but not as many together",
         f"together, their devices must have the same {D}/gen"],
    ),
    "a taint of a node": (
        [*hardware(), closed("n1", HOT | {"value": "a"}), closed("n2", HOT | {"value": "b"}),
         *wanting(ask("c"))],
        [f"nodes n1, n2 are tainted x.test/hot:NoSchedule (n1 {BEGUN})"],
    ),
    "a taint of one node, and devices of the other": (
        [*hardware(each=lambda _: SMALL), closed("n1", HOT | {"value": "a"}),
         *wanting(ask("c", selectors=LARGE))],
        [f"{WANTS}not selected ({FALSE}): 2 devices on 1 node",
         IS_SMALL,
         f"node n1 is tainted x.test/hot=a:NoSchedule, {BEGUN}"],
    ),
    "a taint that is tolerated, and a cordon": (
        [*hardware(), closed("n1", HOT, {"key": "x.test/warm", "effect": "PreferNoSchedule"}),
         closed("n2", unschedulable=True), claim("want", "lab", ask("c")),
         with_spec(pod("job", "lab", claim="want"), nodeSelector={HOST: "n2"},
                   tolerations=[{"key": "x.test/hot", "operator": "Exists"}])],
        [f"node n2 is cordoned, {BEGUN}",
         f"its claims could be allocated on node n1, which refuses it: {UNMATCHED}",
         f"the nodeSelector of the pod wants {HOST}=n2: node n1 has {HOST}=n1"],
    ),
    "no cpu on the only node": (
        [*hardware()[:4], full_of_cpu("n1"), *wanting(ask("c"))],
        ["its claims could be allocated on node n1, which refuses it: Insufficient cpu",
         "node n1 has 16 cpu, of which its pod requests 16; this pod requests 1"],
    ),
    "a pod of a DaemonSet for a node without devices": (
        [*hardware()[:4], node("n2"), claim("want", "lab", ask("c")),
         with_spec(pod("job", "lab", claim="want"), affinity=ON_SECOND)],
        ["no device can be used on 1 node; 1 other node refuses the pod for another reason",
         UNSERVED],
    ),
}  # fmt: skip


def played(objects):
    made = Invented(told=(), steps=({"apply": objects}, {"wait": 5})).incident()
    return made, list(playing.play(made, IncidentVariant.BROKEN).events)


async def recorded(objects, message="", without=""):
    """What a recording of another scheduler has of it: no decisions, and its conditions.

    A cut recording is without an object.
    """
    made, events = played(objects)
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    settings = {**made.cluster.settings(), "recorded": True}
    created = Head()
    info = await log.create_history(
        "default", seed=0, settings=settings, created=playing.START, hash=created.hash
    )
    sealed, previous = [], created.hash
    for event in events:
        is_lacking = without == f"{event.key.resource}/{event.key.name}"
        if event.is_about_object and event.key.resource != "events" and not is_lacking:
            text = event.body.decode().replace("cannot allocate all claims", message or REFUSED)
            draft = Draft(type=event.type, key=event.key, uid=event.uid, stamp=event.stamp,
                          tree=msgspec.json.decode(text))  # fmt: skip
            sealed.append(chain.seal(draft, Revision(len(sealed) + 1), previous))
            previous = sealed[-1].hash
    await log.append(info.id, expected=created, events=sealed)
    return store


async def causes_on(store):
    """The causes in the findings, each of which is on the landing page."""
    async with serving(store=store) as server:
        answer = await server.get("/redra/v1/histories/default/findings")
        page = read((await server.raw("GET", HOME)).text).one("main").text
    waiting = [item for item in answer["items"] if item["kind"] == "WaitingPods"]
    assert waiting
    told = [cause for item in waiting for cause in item["causes"]]
    assert all(cause in page for cause in told), page
    return told


@pytest.mark.parametrize("row", ROWS)
async def test_landing_page_names_request_cause_and_devices(row):
    objects, expected = ROWS[row]
    made, _ = played(objects)
    assert await causes_on(await stored(made)) == expected


@pytest.mark.parametrize("row", ROWS)
async def test_recording_without_decisions_has_the_same_causes(row):
    objects, expected = ROWS[row]
    causes = await causes_on(await recorded(objects))
    assert [one for one in causes if one != LACKING] == expected


async def test_class_that_a_cut_recording_lacks_is_not_called_absent():
    """Who says of nodes that they cannot allocate claims knew the class."""
    made = [*hardware(each=lambda _: SMALL), *wanting(ask("c", selectors=LARGE))]
    async with serving(store=await recorded(made, without="deviceclasses/c")) as server:
        history = "/redra/v1/histories/default"
        why = await server.get(f"{history}/why?kind=pod&namespace=lab&name=job")
        (waiting,) = (await server.get(f"{history}/findings"))["items"][:1]
    assert why["text"] == (
        "refused by the recorded scheduler; DeviceClass c was not recorded, so it cannot be tried "
        "again"
    )
    for text in (waiting["text"], *waiting["causes"], *texts(why["reasons"])):
        assert "does not exist" not in text


async def test_known_issue_because_of_which_binding_fails_is_named():
    wanted, user = wanting(ask("c"))
    user["spec"]["resourceClaims"].append({"name": "again", "resourceClaimName": "want"})
    steps = ({"apply": [*hardware(), wanted, user]}, {"wait": 20})
    assert await causes_on(await stored(Invented(told=(), steps=steps).incident())) == [
        "two entries of the pod name claim want: it is allocated for the first and refused for the "
        "second, so the pod is never bound (known issue C18)"
    ]


async def test_claim_that_is_allocated_for_another_node_is_named():
    shared = claim("want", "lab", ask("c"))
    first, second = (
        with_spec(pod(name, "lab", claim="want"), nodeSelector={HOST: on})
        for name, on in (("first", "n2"), ("second", "n1"))
    )
    steps = ({"apply": [*hardware(), shared, first]}, {"wait": 5},
             {"apply": [second]}, {"wait": 5})  # fmt: skip
    made = Invented(told=(), steps=steps).incident()
    assert await causes_on(await stored(made)) == [
        "claim lab/want is allocated on node n2, and reserved for first",
        f"the nodeSelector of the pod wants {HOST}=n1: node n2 has {HOST}=n2",
    ]


SECOND = (pod("second", "lab", claim="more"), claim("more", "lab", ask("c")))
GPU_ALONE = (space("lab"), class_of("c", D), node("n1"),
             slice_of("n1", D, "n1", [{"name": "x0"}], nodeName="n1"))  # fmt: skip
ONE = "request dev wants 1 of class c: allocated: 1 device on 1 node"
CRASHING = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 3,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (({"apply": [*SECOND]},), [ONE, "claim lab/want has d.test/n1/x0, for pod lab/job"]),
        (({"delete": "pod/lab/job"}, {"apply": [*SECOND]}),
         [ONE, "claim lab/want is reserved for pod lab/job, which was deleted and is to end by "
               "2026-01-02T03:00:40Z"]),
        (({"status": {"phase": "Running", "containerStatuses": [CRASHING]}, "of": "pod/lab/job"},
          {"apply": [*SECOND]}),
         [ONE, "claim lab/want is reserved for pod lab/job, which fails on its node: container "
               "main waits: CrashLoopBackOff and was restarted 3 times"]),
    ],
    ids=["in-use", "ending", "crashing"],
)  # fmt: skip
async def test_holder_of_the_only_device_is_named(steps, expected):
    wanted, user = wanting(ask("c"))
    user["metadata"]["annotations"] = {"redra.dev/stop-seconds": "25"}
    steps = ({"apply": [*GPU_ALONE, wanted, user]}, {"wait": 10}, *steps, {"wait": 5})
    store = await stored(Invented(told=(), steps=steps).incident())
    assert await causes_on(store) == expected


@pytest.mark.parametrize(
    ("gone", "left", "expected"),
    [
        (template("one", "lab", ask("c")), template("one", "other", ask("c")),
         ["there is a ResourceClaimTemplate one in namespace other, and a pod can only use "
          "templates of its own namespace", "ResourceClaimTemplate lab/one was deleted, by redra"]),
        (template("one", "lab", ask("c")), template("ones", "lab", ask("c")),
         ["there is no ResourceClaimTemplate one in namespace lab; do you mean ones?",
          "ResourceClaimTemplate lab/one was deleted, by redra"]),
        (class_of("cards", D), class_of("card", D),
         ["there is no device class cards; do you mean card?",
          "DeviceClass cards was deleted, by redra", "DeviceClass c has the selectors that cards "
          "had", "DeviceClass card has the selectors that cards had"]),
    ],
    ids=["template-of-another-namespace", "template-of-a-like-name", "class"],
)  # fmt: skip
async def test_what_a_pod_names_and_somebody_deleted_is_told(gone, left, expected):
    is_class = gone["kind"] == "DeviceClass"
    made = wanting(ask("cards")) if is_class else [pod("job", "lab", template="one")]
    steps = (
        {"apply": [*GPU_ALONE, space("other"), gone, left]}, {"wait": 5},
        {"delete": "deviceclass/cards" if is_class else "resourceclaimtemplate/lab/one"},
        {"apply": made}, {"wait": 20},
    )  # fmt: skip
    causes = await causes_on(await stored(Invented(told=(), steps=steps).incident()))
    assert [cause.partition(":incidents at ")[0] for cause in causes] == expected


@pytest.mark.parametrize(
    ("claimed", "told"),
    [
        ([], ["PersistentVolumeClaim lab/data does not exist"]),
        ([volume_claim(storageClassName="fast")],
         ["PersistentVolumeClaim lab/data is Pending, of StorageClass fast, which does not exist"]),
        ([volume_claim(storageClassName="fast"), storage_class("fast")],
         ["PersistentVolumeClaim lab/data is Pending, of StorageClass fast"]),
        ([volume_claim(storageClassName="fast"), on_second_node("fast")],
         ["PersistentVolumeClaim lab/data is Pending, of StorageClass fast, which is for nodes "
          f"with {HOST} In n2"]),
        ([volume_claim(volumeName="pv"), volume_for("n2")],
         ["PersistentVolumeClaim lab/data is Pending, with volume pv, which is for nodes with "
          f"{HOST} In n2"]),
        ([volume_claim(volumeName="pv", accessModes=["ReadWriteOncePod"]), volume_for("n1"),
          user_of_volume("first", nodeName="n1")],
         ["PersistentVolumeClaim lab/data is Pending, with volume pv, which is for nodes with "
          f"{HOST} In n1",
          "PersistentVolumeClaim lab/data is for one pod (ReadWriteOncePod), and pod lab/first "
          "uses it"]),
    ],
    ids=["missing", "class-missing", "pending", "class-elsewhere", "elsewhere", "in-use"],
)  # fmt: skip
async def test_volumes_for_which_a_recorded_scheduler_refused_a_pod_are_named(claimed, told):
    """Which of a pod's volumes it is, and why, no message of a scheduler says."""
    user = with_spec(
        pod("job", "lab", claim="want"),
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    objects = [space("lab"), class_of("c", D), node("n1"), *claimed,
               claim("want", "lab", ask("c")), user]  # fmt: skip
    store = await recorded(objects, "node(s) had volume node affinity conflict")
    async with serving(store=store) as server:
        answer = await server.get("/redra/v1/histories/default/why?kind=pod&namespace=lab&name=job")
    said = [text for text in texts(answer["reasons"]) if text.startswith("PersistentVolume")]
    assert said == told


@pytest.mark.parametrize(
    ("claimed", "why"),
    [
        ([], "does not exist"),
        ([volume_claim(storageClassName="fast")],
         "is not bound, and StorageClass fast does not exist"),
        ([volume_claim(storageClassName="fast"), storage_class("fast")], "is not bound"),
        ([volume_claim(storageClassName="fast"),
          {**storage_class("fast"), "volumeBindingMode": "WaitForFirstConsumer"}], ""),
        ([volume_claim(volumeName="pv"), volume_for("n2")],
         f"has volume pv, which is for nodes with {HOST} In n2"),
        ([volume_claim(volumeName="pv"), volume_for("n1")], ""),
        ([volume_claim(storageClassName="fast"), on_second_node("fast")],
         f"gets its volume from StorageClass fast, which is for nodes with {HOST} In n2"),
    ],
    ids=["missing", "class-missing", "pending", "waits-for-its-pod", "elsewhere", "here",
         "class-elsewhere"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["persistentVolumeClaim", "ephemeral"])
async def test_pod_that_redra_placed_without_regard_to_its_volumes_is_told(kind, claimed, why):
    """Nothing else says that a placement here says nothing about the volumes of the pod."""
    name = "data" if kind == "persistentVolumeClaim" else "job-v"
    if kind == "ephemeral" and why == "does not exist":
        why += ": the ephemeral volume controller, which makes it, is not imitated"
    claimed = [{**one, "metadata": {**one["metadata"], "name": name}}
               if one["kind"] == "PersistentVolumeClaim" else one for one in claimed]  # fmt: skip
    source = {"claimName": name} if kind == "persistentVolumeClaim" else {
        "volumeClaimTemplate": {"spec": volume_claim()["spec"]}}  # fmt: skip
    user = with_spec(pod("job", "lab", claim="want"), volumes=[{"name": "v", kind: source}])
    objects = [space("lab"), class_of("c", D), node("n1"), *claimed,
               slice_of("s", D, "n1", [{"name": "x0"}], nodeName="n1"),
               claim("want", "lab", ask("c")), user]  # fmt: skip
    made, _ = played(objects)
    async with serving(store=await stored(made)) as server:
        at = "/redra/v1/histories/default"
        answer = await server.get(f"{at}/why?kind=pod&namespace=lab&name=job")
        found = (await server.get(f"{at}/findings"))["items"]
    said = [*texts(answer["reasons"])]
    assert [text for text in said if "(A18)" in text] == [
        "redra's scheduler does not look at the volume claims of the pod, and a real one may "
        "refuse it for them (A18)"
    ]
    assert any(text.startswith(f"PersistentVolumeClaim lab/{name} ") for text in said)
    is_said = f"PersistentVolumeClaim lab/{name} {why}" in said
    assert is_said is why.startswith("does not exist")
    assert [one["text"] for one in found if one["kind"] == "UnjudgedVolumes"] == [
        "1 pod was placed without regard to its volumes (A18), and a real scheduler would refuse "
        f"it: PersistentVolumeClaim lab/{name} {why}"
    ] * bool(why)


async def test_only_the_later_user_of_a_volume_for_one_pod_would_be_refused():
    steps = ({"apply": [space("lab"), node("n1"), volume_for("n1"),
                        volume_claim(volumeName="pv", accessModes=["ReadWriteOncePod"]),
                        user_of_volume("first")]}, {"wait": 5},
             {"apply": [user_of_volume("another")]}, {"wait": 5})  # fmt: skip
    async with serving(store=await stored(Invented(told=(), steps=steps).incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (item,) = (one for one in items if one["kind"] == "UnjudgedVolumes")
    assert [each["name"] for each in item["objects"]] == ["another"]
    assert item["text"].endswith("(ReadWriteOncePod), and pod lab/first uses it")


async def test_pod_that_waits_for_something_else_is_tried_without_its_volumes():
    user = with_spec(
        pod("job", "lab", claim="want"),
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    )
    made, _ = played(
        [space("lab"), class_of("c", D), node("n1"), claim("want", "lab", ask("c")), user]
    )
    async with serving(store=await stored(made)) as server:
        answer = await server.get("/redra/v1/histories/default/why?kind=pod&namespace=lab&name=job")
    said = [*texts(answer["reasons"])]
    assert "PersistentVolumeClaim lab/data does not exist" in said
    assert len([text for text in said if text.endswith("may refuse it for them (A18)")]) == 1


async def test_write_of_a_slice_without_the_only_device_is_told():
    had = {"name": "x1", "attributes": {"gen": {"int": 4}}}
    first, later = (
        slice_of("s", D, "n1", devices, generation=number, nodeName="n1")
        for number, devices in enumerate(
            ([{"name": "x0", **SMALL}, had], [{"name": "x0", **SMALL}]), 1
        )
    )
    steps = ({"apply": [space("lab"), class_of("c", D), node("n1"), first]}, {"wait": 5},
             {"apply": [later]}, {"wait": 5}, {"apply": wanting(ask("c", selectors=LARGE))},
             {"wait": 5})  # fmt: skip
    causes = await causes_on(await stored(Invented(told=(), steps=steps).incident()))
    assert [cause.partition(" by redra")[0] for cause in causes] == [
        f"{WANTS}not selected ({FALSE}): 1 device on 1 node",
        IS_SMALL,
        "slice s had device x1 for request dev of claim want until it was written without it,",
    ]


async def test_causes_are_left_out_where_the_nodes_refuse_otherwise_than_recorded():
    objects, _ = ROWS["taint of a rule"]
    assert await causes_on(await recorded(objects, f"Insufficient cpu, 1 {REFUSED}")) == []


async def test_pods_that_differ_are_told_apart_and_those_that_do_not_together():
    objects = [
        *hardware(each=lambda _: SMALL),
        *wanting(ask("c", selectors=LARGE), name="a", user="one"),
        *wanting(ask("c", selectors=LARGE), name="b", user="two"),
    ]
    same = f"{WANTS}not selected ({FALSE}): 4 devices on 2 nodes"
    assert await causes_on(await stored(played(objects)[0])) == [same, IS_SMALL]
    objects += wanting(ask("c", count=3), name="more", user="three")
    assert sorted(await causes_on(await stored(played(objects)[0]))) == [
        "lab/three: request dev wants 3 of class c: suitable: 4 devices on 2 nodes, too few on "
        "each node",
        f"lab/two: {same}",
        f"lab/two: {IS_SMALL}",
    ]


async def test_cause_of_some_of_many_pods_is_told_as_theirs():
    objects = hardware(each=lambda _: SMALL)
    objects += wanting(ask("c", count=3), name="three", user="three")
    for number in range(6):
        same = ask("c", selectors=LARGE)
        objects += wanting(same, name=f"want-{number}", user=f"job-{number}")
    told = await causes_on(await stored(played(objects)[0]))
    assert told
    assert all(cause.startswith("lab/") for cause in told)


def many(count, name, *requests):
    """Bare pods with the claims of one template."""
    made = [pod(f"{name}-{number}", "lab", template=name) for number in range(count)]
    return [template(name, "lab", *requests), *made]


async def test_cause_of_one_of_many_pods_alike_is_that_of_all():
    objects = hardware(each=lambda _: SMALL) + many(22, "three", ask("c", count=3))
    few = f"{WANTS.replace('1 of', '3 of')}suitable: 4 devices on 2 nodes, too few on each node"
    assert await causes_on(await stored(played(objects)[0])) == [few]
    # One that came first and asks for something else is among those that are explained.
    other = wanting(ask("c", selectors=LARGE), name="large", user="large")
    objects[-22:-22] = other
    assert sorted(await causes_on(await stored(played(objects)[0]))) == [
        f"lab/large: {WANTS}not selected ({FALSE}): 4 devices on 2 nodes",
        f"lab/large: {IS_SMALL}",
        f"lab/three-21 and 21 like it: {few}",
    ]


async def test_pod_that_still_waits_is_named_before_later_ones_that_wait_no_more():
    later = [f"later-{number}" for number in range(6)]
    devices = [{"name": f"x{number}"} for number in range(6)]
    steps = (
        {"apply": [space("lab"), class_of("c", D), node("n1"),
                   *wanting(ask("c", selectors=cel("false")), name="never", user="old")]},
        {"wait": 5},
        {"apply": [one for name in later for one in wanting(ask("c"), name=name, user=name)]},
        {"wait": 5},
        {"apply": [slice_of("n1", D, "n1", devices, nodeName="n1")]},
        {"wait": 30},
    )  # fmt: skip
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (item,) = (one for one in items if one["kind"] == "WaitingPods" and one["present"])
    assert item["text"].startswith("7 pods waited, 1 still waits")
    assert item["objects"][0]["name"] == "old"
    assert any(cause.endswith("false): 6 devices on 1 node") for cause in item["causes"])


async def test_no_cause_is_told_of_a_pod_that_got_its_devices():
    objects = [*hardware(), *wanting(ask("c"))]
    made = Invented(told=(), steps=({"apply": objects}, {"wait": 5})).incident()
    async with serving(store=await stored(made)) as server:
        answer = await server.get("/redra/v1/histories/default/findings")
    assert [item["causes"] for item in answer["items"] if item["causes"]] == []


async def test_finalizer_that_keeps_a_claim_is_named_on_the_landing_page():
    made = deeper_incidents.claim_has_a_foreign_finalizer(Names(1))
    async with serving(store=await stored(made.incident())) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
        page = read((await server.raw("GET", "/ui/h/default/")).text).one("main").text
    (text,) = [item["text"] for item in items if item["kind"] == "StuckClaims"]
    assert re.fullmatch(
        r"1 claim: deletion waits for a finalizer, .*: \S+\.example\.com/hold", text
    )
    assert text in page


def tainting(*steps):
    """Pods on both nodes, then steps that taint their devices, each some seconds apart."""
    users = [f"job-{number}" for number in range(4)]
    made = [pod(user, "lab", template="one") for user in users]
    filled = [*hardware(), template("one", "lab", ask("c", tolerations=[PATIENT])), *made]
    waits = [part for step in steps for part in (step, {"wait": 3})]
    return Invented(told=(), steps=({"apply": filled}, {"wait": 5}, *waits)).incident()


PATIENT = {
    "key": "x.test/later", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60,
}  # fmt: skip


def of_pool(name, pool, **taint):
    made = rule(name, D, effect="NoExecute", **taint)
    made["spec"]["deviceSelector"]["pool"] = pool
    return {"apply": [made]}


def of_driver(pool, device, **taint):
    """The slice of a node again, with a taint on one of its devices."""
    taints = [{"effect": "NoExecute", **taint}]
    devices = [
        {"name": name, **({"taints": taints} if name == device else {})} for name in ("x0", "x1")
    ]
    return {"apply": [slice_of(pool, D, pool, devices, nodeName=pool, generation=2)]}


EVICTED = {
    "a rule, and a driver": (
        (of_pool("hot", "n1", key="x.test/hot"), of_driver("n2", "x1", key="x.test/e", value="2")),
        ["2 pods by rule hot, taint x.test/hot:NoExecute",
         "1 pod by driver d.test in slice n2, taint x.test/e=2:NoExecute"],
    ),
    "two rules at once": (
        ({"apply": [of_pool(name, "n1", key=f"x.test/{name}")["apply"][0] for name in "ab"]},),
        ["2 pods by rule a, taint x.test/a:NoExecute"],
    ),
    "a rule that is tolerated for a while, and one that is not": (
        (of_pool("later", "n1", key="x.test/later"), of_pool("hot", "n1", key="x.test/hot")),
        ["2 pods by rule hot, taint x.test/hot:NoExecute"],
    ),
    "a rule whose tolerated time is over": (
        (of_pool("later", "n1", key="x.test/later"), {"wait": 60}),
        ["2 pods by rule later, taint x.test/later:NoExecute"],
    ),
}  # fmt: skip


async def evicted_on(store):
    """What the findings tell of evictions; each line is on the landing page."""
    async with serving(store=store) as server:
        answer = await server.get("/redra/v1/histories/default/findings")
        page = read((await server.raw("GET", HOME)).text).one("main").text
    (item,) = [item for item in answer["items"] if item["kind"] == "EvictedPods"]
    assert all(cause in page for cause in item["causes"]), page
    return item["causes"]


@pytest.mark.parametrize("row", EVICTED)
async def test_taints_that_evicted_pods_are_named_with_the_number_of_pods(row):
    steps, expected = EVICTED[row]
    assert await evicted_on(await stored(tainting(*steps))) == expected


def changed(after, wanted=LARGE, later=()):
    """A pod that runs with a device, whose slice is written again with these devices."""
    first = [{"name": "x0", "attributes": {"gen": {"int": 4}}}]
    again = slice_of("n1", D, "n1", after, generation=2, nodeName="n1")
    return (
        {"apply": [space("lab"), class_of("c", D), node("n1"),
                   slice_of("n1", D, "n1", first, nodeName="n1")]},
        {"apply": wanting(ask("c", selectors=wanted))},
        {"wait": 5},
        {"apply": [again, *later]},
        {"wait": 5},
    )  # fmt: skip


OTHER = [{"name": "x0", "attributes": {"gen": {"int": 3}}}]
OUTGROWN = f"1 claim holds a device that its selectors exclude now: {D}/n1/x0 for request dev"


@pytest.mark.parametrize(
    ("after", "wanted", "expected"),
    [
        (OTHER, LARGE, [OUTGROWN]),
        ([{"name": "x0"}], LARGE, [OUTGROWN]),
        ([{"name": "x0", "attributes": {"gen": {"int": 5}}}], LARGE, []),
        (OTHER, [], []),
    ],
)
async def test_device_in_use_that_its_claim_would_not_get_now_is_a_finding(after, wanted, expected):
    store = await stored(Invented(told=(), steps=changed(after, wanted)).incident())
    async with serving(store=store) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    texts = [one["text"].partition(";")[0] for one in items if one["kind"] == "ChangedDevices"]
    assert texts == expected


def patch(name, driver=D, **gen):
    filtered = {"driver": driver}
    return {
        "apiVersion": "resource.k8s.io/v1alpha3",
        "kind": "ResourceSlicePatch",
        "metadata": {"name": name},
        "spec": {"devices": {"filter": filtered, "attributes": {f"{D}/gen": gen}}},
    }


def selecting(least):
    return {
        **class_of("c", D),
        "spec": {"selectors": cel(f"device.attributes['{D}'].gen >= {least}")},
    }


def aged(before, *after, gen=3, selectors=LARGE):
    """A pod that runs with a device of this generation, and what is done before and after."""
    devices = [{"name": "x0", "attributes": {"gen": {"int": gen}}}]
    first = [space("lab"), node("n1"), slice_of("n1", D, "n1", devices, nodeName="n1"), *before]
    return ({"apply": first}, {"wait": 2}, {"apply": wanting(ask("c", selectors=selectors))},
            {"wait": 5}, *after, {"wait": 2})  # fmt: skip


LIFTED = [class_of("c", D), patch("lift", int=4)]
OTHER_PATCH = patch("other", driver="e.test", int=1)
AGED = {
    "patch-deleted": (
        aged(LIFTED, {"delete": "resourceslicepatch/lift"}),
        [f"ResourceSlicePatch lift was deleted after the allocation, {BY_THEM}"]),
    "patch-sets-less": (
        aged(LIFTED, {"apply": [patch("lift", int=2)]}),
        [f"ResourceSlicePatch lift was written after the allocation, {BY_THEM}"]),
    "patch-of-another-driver-now": (
        aged(LIFTED, {"apply": [patch("lift", driver="e.test", int=4)]}),
        [f"ResourceSlicePatch lift was written after the allocation, {BY_THEM}"]),
    "another-patch-deleted": (
        aged([*LIFTED, OTHER_PATCH], {"delete": "resourceslicepatch/other"}), None),
    "patch-deleted-and-published": (
        aged(LIFTED, {"delete": "resourceslicepatch/lift"}, {"apply": [slice_of(
            "n1", D, "n1", [{"name": "x0", "attributes": {"gen": {"int": 4}}}], generation=2,
            nodeName="n1")]}), None),
    "another-patch-deleted-and-class-changed": (
        aged([selecting(3), OTHER_PATCH], {"delete": "resourceslicepatch/other"},
             {"apply": [selecting(5)]}, selectors=[]),
        [f"DeviceClass c was written after the allocation, {BY_THEM}"]),
    "class-made-anew-with-more": (
        aged([selecting(3)], {"delete": "deviceclass/c"}, {"apply": [selecting(5)]}, selectors=[]),
        [f"DeviceClass c was written after the allocation, {BY_THEM}"]),
    "class-made-anew-with-less": (
        aged([selecting(3)], {"delete": "deviceclass/c"}, {"apply": [selecting(2)]}, selectors=[]),
        None),
    "class-selected-more-before": (
        aged([selecting(5)], {"apply": [selecting(3)]}, {"wait": 90}, {"apply": [selecting(2)]},
             selectors=[]), None),
}  # fmt: skip


@draws.BY_DAY
@pytest.mark.parametrize("row", AGED)
async def test_claim_that_would_not_get_its_device_names_the_patch_or_class_that_changed(row):
    steps, expected = AGED[row]
    store = await stored(
        Invented(told=(), steps=steps, on=("DRAAdminControlledDeviceAttributes",)).incident()
    )
    async with serving(store=store) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
        page = read((await server.raw("GET", HOME)).text).one("main").text
    assert [one["causes"] for one in items if one["kind"] == "ChangedDevices"] == [
        each for each in [expected] if each
    ]
    assert all(line in page for line in expected or ()), page


async def test_running_pod_names_the_write_that_withdrew_its_device():
    store = await stored(Invented(told=(), steps=changed([{"name": "x1"}])).incident())
    async with serving(store=store) as server:
        path = "/redra/v1/histories/default/why?kind=pods&namespace=lab&name=job"
        said = [*texts((await server.get(path))["reasons"])]
    written = f"slice n1, which had {D}/n1/x0, was written without it, by redra"
    places = [number for number, text in enumerate(said) if text.startswith(written)]
    devices = [number for number, text in enumerate(said) if text.startswith("claim want")]
    assert places, said
    assert max(places) < min(devices), said


async def test_namespace_that_does_not_go_names_what_keeps_it():
    job = pod("job", "lab")
    del job["spec"]["resourceClaims"], job["spec"]["containers"][0]["resources"]["claims"]
    job["metadata"]["finalizers"] = ["x.test/backup"]
    steps = (
        {"apply": [space("lab"), node("n1"), job]},
        {"wait": 5},
        {"delete": "namespace/lab"},
        {"wait": 60},
    )
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store) as server:
        reasons = (await server.get("/redra/v1/histories/default/why?kind=namespaces&name=lab"))[
            "reasons"
        ]["children"]
    (first, *_) = reasons
    assert first["text"] == "pod job is still there: finalizer x.test/backup"


@pytest.mark.parametrize(("bound", "named"), [(2, ""), (3, "lab/second: "), (6, "both")])
async def test_nodes_asked_for_the_pods_of_one_answer_are_bounded(bound, named):
    """Each of three nodes may be asked about one pod with a bound of three, about two with six."""
    made = apart_incidents.node_with_the_devices_has_no_cpu_left(Names(1))
    steps = (*made.steps, {"apply": apart_incidents.wanting("second")}, {"wait": 10})
    limits = ApiLimits(explain=ExplainBounds(refusal_nodes_max=bound))
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store, limits=limits) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
    (item,) = (one for one in items if one["kind"] == "WaitingPods")
    told = [line for line in item["causes"] if apart_incidents.WOULD_DO in line]
    assert len(told) == bool(named)
    if named == "both":
        # All pods have the cause, so it stands without their names.
        assert told[0].startswith(apart_incidents.WOULD_DO)
    assert all(line.startswith(named) for line in told if named != "both")


@pytest.mark.parametrize("is_gone", [False, True])
async def test_former_causes_of_pods_that_all_still_wait_are_one_notice(is_gone):
    """A new node gives another message until it is opened; the devices lack all the time."""
    gone = ({"delete": "pod/lab/later"}, {"wait": 5}) if is_gone else ()
    steps = (
        {"apply": [*hardware(each=lambda _: SMALL), *wanting(ask("c", selectors=LARGE)),
                   *wanting(ask("c", count=5), name="many", user="later")]},
        {"wait": 20},
        {"apply": [node("n3", unschedulable=True)]}, {"wait": 20},
        {"patch": {"spec": {"unschedulable": None}}, "of": "node/n3"}, {"wait": 20},
        *gone,
    )  # fmt: skip
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store) as server:
        items = (await server.get("/redra/v1/histories/default/findings"))["items"]
        page = read((await server.raw("GET", HOME)).text).one("main").text
    told = {
        one["severity"]: (one["present"], one["text"], one["causes"])
        for one in items
        if one["kind"] == "WaitingPods"
    }
    other = f"2 pods: node(s) were unschedulable, {REFUSED}"
    if is_gone:
        # A pod that waits no more shows what happened then.
        assert told["warning"][:2] == (0, other.replace(":", " waited:"))
        assert "notice" not in told
        return
    assert told["error"][:2] == (2, f"2 pods wait: {REFUSED}")
    text = "2 pods that still wait were refused for another cause before"
    assert told["notice"] == (0, text, [other])
    assert text in page
    assert other in page


@pytest.mark.parametrize(
    ("change", "told", "helps"),
    [
        ("", ["PersistentVolumeClaim lab/data does not exist"],
         "create PersistentVolumeClaim data in namespace lab"),
        ("create", ["PersistentVolumeClaim lab/data is Pending, without a StorageClass"],
         "set spec.volumeName of PersistentVolumeClaim data, which no controller does here (A18)"),
        ("delete", ["PersistentVolumeClaim lab/data does not exist",
                    "PersistentVolumeClaim lab/data was deleted, by alice at 2026-01-02T03:00:00Z"],
         "create PersistentVolumeClaim data in namespace lab"),
    ],
)  # fmt: skip
async def test_volume_claim_for_which_a_pod_waits_is_named(change, told, helps):
    cluster = Cluster(options=ControllerOptions(checks_volumes=True), namespaces=("lab",))
    cluster.node("n1")
    if change:
        cluster.apply(volume_claim())
    if change == "delete":
        cluster.delete("persistentvolumeclaims", "data", "lab")
        cluster.settle()
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    cluster.create("v1", "Pod", "job", metadata={"name": "job", "namespace": "lab"}, spec=spec)
    events = cluster.settle().line.events
    store = MemoryStore()
    log = MemoryLog(store, MemoryWakeUp().grown)
    settings = {"controllers": {"volumeClaims": True}}
    info = await log.create_history("default", seed=1, settings=settings, created=playing.START)
    await log.append(info.id, expected=Head(), events=events)
    async with serving(store=store, clock=VirtualClock(cluster.line.now)) as server:
        at = "/redra/v1/histories/default"
        answer = await server.get(f"{at}/why?kind=pod&namespace=lab&name=job")
        helped = await server.get(f"{at}/why?kind=pod&namespace=lab&name=job&help=true")
        findings = (await server.get(f"{at}/findings"))["items"]
    cause = told[0].removeprefix("PersistentVolumeClaim lab/data ").startswith("does not exist")
    cause = 'persistentvolumeclaim "data" not found' if cause else UNBOUND
    assert answer["text"] == cause
    said = [text for text in texts(answer["reasons"]) if text.startswith("PersistentVolumeClaim l")]
    assert sorted(said) == told
    assert cause not in texts(answer["reasons"]), "the headline has it"
    assert helps in texts(helped["reasons"])
    assert [one["text"] for one in findings] == [f"1 pod waits: {cause}"]


def room(memory, **more):
    """A device that pods share, with so much memory."""
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}
    return slice_of("s", D, "n1", [{"name": "x0", **shared}], nodeName="n1", **more)


@pytest.mark.parametrize(
    ("before", "change", "wanted", "expected"),
    [
        (hardware(), {"delete": "resourceslice/n2"}, ask("c", count=3),
         "slice n2 of pool d.test/n2, for node n2, was deleted"),
        ([*GPU_ALONE[:3], room("80Gi")], {"apply": [room("20Gi", generation=2)]},
         ask("c", capacity={"requests": {"memory": "40Gi"}}),
         "slice s had 80Gi for capacity memory of x0 until it was written with 20Gi"),
    ],
    ids=["slice-deleted", "capacity-shrunk"],
)  # fmt: skip
async def test_landing_page_names_who_took_devices_or_amounts(before, change, wanted, expected):
    steps = ({"apply": before}, {"wait": 5}, change, {"apply": wanting(wanted)}, {"wait": 20})
    causes = await causes_on(await stored(Invented(told=(), steps=steps).incident()))
    assert [cause for cause in causes if cause.startswith(f"{expected}, by redra")]


def to(name, *made):
    """The claim and the pod `made`, with a node selector for one node."""
    return [made[0], with_spec(made[1], nodeSelector={HOST: name})]


@pytest.mark.parametrize(
    ("gone", "again", "wanted", "named"),
    [
        (["n2"], [], wanting(ask("c", count=3)), ["n2"]),
        (["n1", "n2"], [], wanting(ask("c")), ["n1", "n2"]),
        (["n2"], [], to("n2", *wanting(ask("c"))), ["n2"]),
        (["n2"], [], to("n1", *wanting(ask("c", count=3))), []),
        (["n2"], [], wanting(ask("c", selectors=LARGE)), []),
        (["n2"], [node("n2")], wanting(ask("c", count=3)), []),
    ],
    ids=["one", "all", "selected", "other-selected", "no-such-device", "is-back"],
)
async def test_deletion_of_a_node_together_with_its_slices_is_named(gone, again, wanted, named):
    deletions = [
        {"delete": f"{kind}/{name}"} for name in gone for kind in ("node", "resourceslice")
    ]
    steps = ({"apply": hardware(each=lambda _: SMALL)}, {"wait": 5}, *deletions,
             {"apply": [*again, *wanted]}, {"wait": 20})  # fmt: skip
    store = await stored(Invented(told=(), steps=steps).incident())
    async with serving(store=store) as server:
        at = "/redra/v1/histories/default"
        why = await server.get(f"{at}/why?kind=pod&namespace=lab&name=job")
    for told in (await causes_on(store), texts(why["reasons"])):
        expected = [
            f"node {name}, for which slice {name} had 2 devices that match request dev of claim "
            f"want, was deleted, by redra:incidents at 2026-01-02T03:00:05Z"
            for name in named
        ]
        assert sorted(text for text in told if re.match("node n., for which", text)) == expected


@pytest.mark.parametrize("message", ["cannot allocate all claims", "node(s) had disk pressure"])
async def test_recorded_refusal_stands_below_the_causes_that_it_agrees_with(message):
    """A refusal for another reason stands first: it is what the recording says of the pod."""
    objects = [space("lab"), class_of("c", D), node("n1"), claim("want", "lab", ask("c")),
               pod("job", "lab", claim="want")]  # fmt: skip
    async with serving(store=await recorded(objects, message)) as server:
        answer = await server.get("/redra/v1/histories/default/why?kind=pod&namespace=lab&name=job")
    lines = [one["text"] for one in answer["reasons"]["children"]]
    (said,) = [number for number, line in enumerate(lines) if line.startswith("the recorded sch")]
    (cause,) = [number for number, line in enumerate(lines) if line.startswith("n1: ")]
    assert (said > cause) is (message == "cannot allocate all claims"), lines
