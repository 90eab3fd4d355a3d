"""A scheduler that does wrong, one wrong in each namespace, through the API of a live history.

Each wrong is a function of a `Place`: two nodes, a class, a pool with shared counters. What must be
said of it follows from the rule that it breaks, as Kubernetes documents it, not from a judge. Its
twins do the same in the honest way. No controller runs: all that happens is written here.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx

from app.domain.log import Event, HistoryInfo, Revision
from app.domain.values.timestamps import SECOND, Instant
from tests.api.serving import serving
from tests.virtual_clock import VirtualClock

GROUP = "/apis/resource.k8s.io/v1"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
START = Instant(1_767_225_600 * SECOND)
FINALIZER = "resource.kubernetes.io/delete-protection"


@dataclass
class Place:
    """A namespace of its own with the objects that one wrong needs, named after it."""

    name: str
    client: httpx.AsyncClient
    clock: VirtualClock

    @property
    def driver(self):
        return f"{self.name}.example.com"

    async def post(self, path, tree, code=201):
        self.clock.advance_to(Instant(self.clock.now() + SECOND // 10))
        answer = await self.client.post(path, json=tree)
        assert answer.status_code == code, (path, answer.status_code, answer.text)
        return answer.json()

    async def put(self, path, tree, code=200):
        self.clock.advance_to(Instant(self.clock.now() + SECOND // 10))
        answer = await self.client.put(path, json=tree)
        assert answer.status_code == code, (path, answer.status_code, answer.text)
        return answer.json()

    async def get(self, path):
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def make(self):
        await self.post("/api/v1/namespaces", {"metadata": {"name": self.name}})
        for side in "ab":
            name = f"{self.name}-{side}"
            labels = {"kubernetes.io/hostname": name}
            await self.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        chosen = [{"cel": {"expression": f'device.driver == "{self.driver}"'}}]
        tree = {"metadata": {"name": self.name}, "spec": {"selectors": chosen}}
        await self.post(f"{GROUP}/deviceclasses", tree)
        uses = {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "6"}}}]}
        taints = {"taints": [{"key": "t", "effect": "NoSchedule"}]}
        devices = [
            self._device("big", "big"),
            self._device("big2", "big"),
            self._device("small", "small"),
            self._device("k1", "k", **uses),
            self._device("k2", "k", **uses),
            self._device("worn", "w", **taints),
        ]
        counters = [{"name": "c", "counters": {"m": {"value": "10"}}}]
        await self._slice("counters", sharedCounters=counters)
        await self._slice("devices", devices=devices)

    @staticmethod
    def _device(name, size, **more):
        return {"name": name, "attributes": {"size": {"string": size}}, **more}

    async def _slice(self, name, **content):
        pool = {"name": self.name, "generation": 1, "resourceSliceCount": 2}
        spec = {"driver": self.driver, "nodeName": f"{self.name}-a", "pool": pool, **content}
        tree = {"metadata": {"name": f"{self.name}-{name}"}, "spec": spec}
        await self.post(f"{GROUP}/resourceslices", tree)

    @property
    def claims(self):
        return f"{GROUP}/namespaces/{self.name}/resourceclaims"

    @property
    def pods(self):
        return f"/api/v1/namespaces/{self.name}/pods"

    async def claim(self, name, size="big", **exactly):
        text = f'device.attributes["{self.driver}"].size == "{size}"'
        exactly |= {"deviceClassName": self.name, "selectors": [{"cel": {"expression": text}}]}
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        await self.post(self.claims, {"metadata": {"name": name}, "spec": spec})

    async def pod(self, name, *claims, **spec):
        uses = {"resources": {"claims": [{"name": each} for each in claims]}}
        named = [{"name": each, "resourceClaimName": each} for each in claims]
        containers = [{"name": "c", "image": "i", **uses}]
        spec = {"containers": containers, "resourceClaims": named, **spec}
        await self.post(self.pods, {"metadata": {"name": name}, "spec": spec})

    async def user(self, pod):
        tree = await self.get(f"{self.pods}/{pod}")
        return {"resource": "pods", "name": pod, "uid": tree["metadata"]["uid"]}

    async def allocate(self, claim, *devices, pod="", node="a", finalizer=True, code=200, **result):
        """Allocate devices to a claim, reserved for a pod if one is named."""
        path = f"{self.claims}/{claim}"
        tree = await self.get(path)
        if finalizer and not tree["metadata"].get("finalizers"):
            tree["metadata"]["finalizers"] = [FINALIZER]
            tree = await self.put(path, tree)
        common = {"request": "r", "driver": self.driver, "pool": self.name, **result}
        field_of_node = {
            "key": "metadata.name",
            "operator": "In",
            "values": [f"{self.name}-{node}"],
        }
        allocation = {
            "devices": {"results": [{**common, "device": each} for each in devices]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field_of_node]}]},
        }
        tree["status"] = {**tree.get("status", {}), "allocation": allocation}
        if pod:
            tree["status"]["reservedFor"] = [await self.user(pod)]
        await self.put(f"{path}/status", tree, code)

    async def reserve(self, claim, *users):
        """Reserve an allocated claim for these users alone."""
        path = f"{self.claims}/{claim}"
        tree = await self.get(path)
        tree["status"]["reservedFor"] = list(users)
        await self.put(f"{path}/status", tree)

    async def free(self, claim):
        """Take the allocation away, and with it all reservations."""
        path = f"{self.claims}/{claim}"
        await self.put(f"{path}/status", {**await self.get(path), "status": {}})

    async def bind(self, pod, node="a", code=201):
        target = {"kind": "Node", "name": f"{self.name}-{node}"}
        await self.post(
            f"{self.pods}/{pod}/binding", {"metadata": {"name": pod}, "target": target}, code
        )

    async def honest(self, pod, claim, *devices, size="big", **exactly):
        """All that a scheduler does for a pod with one claim, in the right order."""
        await self.claim(claim, size, **exactly)
        await self.pod(pod, claim)
        await self.allocate(claim, *devices, pod=pod)
        await self.bind(pod)


@dataclass(frozen=True)
class Wrong:
    """A wrong, and what must be said: the rule `name`, or a kind of difference, about `objects`.

    Without a name nothing may be said, in releases before `since` as well. Not all that breaks a
    rule is a failure: whoever creates a pod on a node is no scheduler.
    """

    act: Callable[[Place], Awaitable[None]]
    name: str
    objects: tuple[str, ...]
    since: str
    is_failure: bool


WRONGS: dict[str, Wrong] = {}


def wrong(name="", *, about=("x",), since="", is_failure=True):
    def add(act):
        WRONGS[act.__name__.replace("_", "-")] = Wrong(act, name, about, since, is_failure)
        return act

    return add


@wrong()
async def honest_pods(place):
    await place.honest("q", "x", "big")
    await place.honest("q2", "y", "big2")
    await place.honest("q3", "z", "k1", size="k")


@wrong()
async def honest_sharing(place):
    await place.honest("q", "x", "big")
    await place.pod("q2", "x")
    await place.reserve("x", await place.user("q"), await place.user("q2"))
    await place.bind("q2")


@wrong()
async def honest_refusals(place):
    """What the API refuses did not happen."""
    await place.honest("q", "x", "big")
    await place.bind("q", "b", code=409)
    await place.claim("y")
    await place.allocate("y", "big2", request="other", code=422)


@wrong("device-in-one-claim", about=("x", "y"))
async def device_given_twice(place):
    await place.honest("q", "x", "big")
    await place.honest("q2", "y", "big")


@wrong("violation")
async def device_that_the_selector_excludes(place):
    await place.honest("q", "x", "small")


@wrong("violation")
async def device_of_another_node(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big", pod="q", node="b")
    await place.bind("q", "b")


@wrong("pod-on-allocated-node", about=("q",))
async def pod_bound_where_its_device_is_not(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big", pod="q")
    await place.bind("q", "b")


@wrong("bound-pod-has-claims", about=("q",))
async def claim_not_allocated(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q",))
async def claim_not_reserved(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big")
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q",))
async def claim_reserved_after_the_binding(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big")
    await place.bind("q")
    await place.reserve("x", await place.user("q"))


@wrong("bound-pod-has-claims", about=("q",))
async def claim_that_does_not_exist(place):
    await place.pod("q", "x")
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q",))
async def one_of_two_claims(place):
    await place.claim("x")
    await place.claim("y")
    await place.pod("q", "x", "y")
    await place.allocate("x", "big", pod="q")
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q2",))
async def second_pod_not_reserved(place):
    await place.honest("q", "x", "big")
    await place.pod("q2", "x")
    await place.bind("q2")


@wrong("bound-pod-claims-made", about=("q",))
async def claim_never_made_from_its_template(place):
    exactly = {"name": "r", "exactly": {"deviceClassName": place.name}}
    spec = {"spec": {"devices": {"requests": [exactly]}}}
    path = f"{GROUP}/namespaces/{place.name}/resourceclaimtemplates"
    await place.post(path, {"metadata": {"name": "t"}, "spec": spec})
    named = [{"name": "x", "resourceClaimTemplateName": "t"}]
    await place.pod("q", resourceClaims=named)
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q",), is_failure=False)
async def pod_made_on_a_node(place):
    await place.claim("x")
    await place.pod("q", "x", nodeName=f"{place.name}-a")


@wrong("counters-not-overdrawn", about=("x", "y"))
async def counters_overdrawn(place):
    await place.honest("q", "x", "k1", size="k")
    await place.honest("q2", "y", "k2", size="k")


@wrong("placement-respects-taints")
async def taint_of_the_driver_ignored(place):
    await place.honest("q", "x", "worn", size="w")


@wrong("placement-respects-taints", since="1.37")
async def taint_rule_ignored(place):
    selector = {"driver": place.driver, "pool": place.name, "device": "big"}
    spec = {"deviceSelector": selector, "taint": {"key": "t", "effect": "NoSchedule"}}
    await place.post(RULES, {"metadata": {"name": place.name}, "spec": spec})
    place.clock.advance_to(Instant(place.clock.now() + 17 * SECOND))
    await place.honest("q", "x", "big")


@wrong("tolerations-copied")
async def tolerations_not_in_the_allocation(place):
    tolerations = [{"key": "t", "operator": "Exists"}]
    await place.honest("q", "x", "worn", size="w", tolerations=tolerations)


@wrong("request-satisfied")
async def more_devices_than_requested(place):
    await place.honest("q", "x", "big", "big2")


@wrong("request-satisfied")
async def fewer_devices_than_requested(place):
    await place.honest("q", "x", "big", count=2)


@wrong("device-in-one-claim")
async def device_twice_in_one_claim(place):
    await place.honest("q", "x", "big", "big", count=2)


@wrong("allocated-device-existed")
async def device_that_does_not_exist(place):
    await place.honest("q", "x", "nothing")


@wrong("allocated-device-existed")
async def device_of_an_unknown_driver(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big", pod="q", driver="unknown.example.com")
    await place.bind("q")


@wrong("allocation-has-finalizer")
async def no_finalizer(place):
    await place.claim("x")
    await place.pod("q", "x")
    await place.allocate("x", "big", pod="q", finalizer=False)
    await place.bind("q")


@wrong("reservation-names-pod")
async def reserved_for_a_pod_that_does_not_exist(place):
    await place.honest("q", "x", "big")
    ghost = {"resource": "pods", "name": "ghost", "uid": "5c1e4f0a-0000-4000-8000-000000000001"}
    await place.reserve("x", await place.user("q"), ghost)


@wrong("reserved-pod-names-claim")
async def reserved_for_a_pod_that_does_not_use_it(place):
    await place.claim("x")
    await place.pod("q")
    await place.allocate("x", "big", pod="q")
    await place.bind("q")


@wrong("bound-pod-has-claims", about=("q", "x"))
async def devices_taken_from_a_running_pod(place):
    await place.honest("q", "x", "big")
    await place.free("x")


@wrong("bound-pod-has-claims", about=("q", "x"))
async def reservation_taken_from_a_running_pod(place):
    await place.honest("q", "x", "big")
    await place.reserve("x")


@dataclass(frozen=True)
class Run:
    """A history with wrongs in it, and the time at which each of them was done."""

    info: HistoryInfo
    events: list[Event]
    done: dict[str, Instant]


async def play(profile, names):
    """Do these wrongs one after the other, and let half a minute pass."""
    clock = VirtualClock(START)
    done = {}
    async with serving(profile=profile, clock=clock) as server:
        runtime = await server.histories.open("default")
        for name in names:
            place = Place(name, server.client, clock)
            await place.make()
            await WRONGS[name].act(place)
            done[name] = clock.now()
            clock.advance_to(Instant(clock.now() + 5 * SECOND))
        for number in range(2):
            clock.advance_to(Instant(clock.now() + 15 * SECOND))
            await place.post("/api/v1/namespaces", {"metadata": {"name": f"later-{number}"}})
        log = await runtime.log.read(runtime.info.id, after=Revision(0), limit=10**6)
        return Run(info=runtime.info, events=log, done=done)
