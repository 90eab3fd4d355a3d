"""WRONG: devices that a correct scheduler could never have given to a claim."""

from collections.abc import Callable

from tests.adversary.catalogue import (
    AGREES,
    FAILS,
    MIG,
    QUICKSTART,
    SAME,
    SOAK,
    TAINTS,
    TPU,
    VERSIONS,
    alteration,
)
from tests.adversary.log import Json, Log, NotFound, results_of, uid_of

SHARED = "basic-shared-claim-across-pods"


def given(log: Log, claim: str, change: Callable[[Json], None], *, until: int | None = None) -> int:
    """Changes an allocation where it was written and in every later state of the claim."""
    number = log.allocation(claim)
    uid = uid_of(log.lines[number])

    def inside(body: Json) -> None:
        if results_of(body):
            change(body)

    log.alter(uid, inside, start=number, end=until)
    return number


def device(number: int, **fields: str) -> Callable[[Json], None]:
    """A change of one result."""
    return lambda claim: results_of(claim)[number].update(fields)


def end_after(log: Log, pod: str) -> None:
    """Ends the recording after the Event that says that a pod was assigned."""
    number = log.first("create", "events", where=lambda line: _assigned(line, pod))
    log.cut(number + 1)


def _assigned(line: Json, pod: str) -> bool:
    body = line["requestObject"]
    return body.get("reason") == "Scheduled" and body["regarding"]["name"] == pod


def slices(log: Log, pool: str, change: Callable[[Json], None], *, first_only: bool = True) -> None:
    """Changes what was published of a pool: in requests and responses."""
    done = 0
    for line in log.lines:
        if line["objectRef"]["resource"] != "resourceslices" or line["level"] == "Metadata":
            continue
        for side in ("requestObject", "responseObject"):
            body = line.get(side) or {}
            if body.get("spec", {}).get("pool", {}).get("name") == pool:
                change(body)
                done += 1
        if done and first_only:
            return
    if not done:
        raise NotFound(f"no slice of {pool}")


def tainted(name: str, effect: str) -> Callable[[Json], None]:
    """A change of a slice: one device has a taint from the beginning."""

    def change(body: Json) -> None:
        for one in body["spec"]["devices"]:
            if one["name"] == name:
                taint = {"key": "gpu.example.com/broken", "value": "true", "effect": effect}
                one.setdefault("taints", []).append({**taint, "timeAdded": "2026-11-21T07:00:00Z"})

    return change


@alteration("wrong", MIG, verify=FAILS, decide=FAILS)
def class_does_not_match(log: Log) -> None:
    """A claim for a whole GPU gets a MIG partition, which its class does not select (5.1)."""
    end_after(log, "w-00")
    given(log, "w-00", device(0, device="gpu-1-mig-1g-5gb-0"))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def selector_does_not_match(log: Log) -> None:
    """The request selects index 0 and gets the device with index 1 (allocator.md 5.1)."""
    end_after(log, "ns-0")
    given(log, "ns-0", device(0, device="gpu-1"))


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def device_never_published(log: Log) -> None:
    """The first allocated device is in no slice of its pool."""
    given(log, "", device(0, device="gpu-77"))


@alteration("wrong", (QUICKSTART, MIG, TPU, VERSIONS, SOAK), verify=FAILS, decide=FAILS)
def pool_never_published(log: Log) -> None:
    """The first allocated device is of a pool that no slice has."""
    given(log, "", device(0, pool="rack-99"))


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS, SOAK), verify=FAILS, decide=FAILS)
def driver_is_another(log: Log) -> None:
    """The result names a driver that publishes nothing."""
    given(log, "", device(0, driver="nic.example.com"))


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def device_in_two_claims(log: Log) -> None:
    """Two claims hold the exclusive device gpu-0 at one time (5.2, in use)."""
    given(log, "pod1", device(0, device="gpu-0"))


@alteration("wrong", MIG, verify=FAILS, decide=FAILS)
def counters_overdrawn(log: Log) -> None:
    """A partition of gpu-1 is given while w-00 holds the whole of gpu-1 (section 7)."""
    end_after(log, "t-00")
    given(log, "t-00", device(0, device="gpu-1-mig-3g-20gb-0"))


@alteration("wrong", MIG, verify=FAILS, decide=FAILS)
def constraint_violated(log: Log) -> None:
    """Four requests have to be on one parent GPU, and one is on another (section 6.1)."""
    end_after(log, "four-on-one")
    given(log, "four-on-one", device(3, device="gpu-7-mig-3g-20gb-4"))


@alteration("wrong", MIG, verify=FAILS, decide=FAILS)
def requests_exchanged(log: Log) -> None:
    """The devices of two requests with different selectors are exchanged."""
    end_after(log, "four-on-one")

    def change(claim: Json) -> None:
        results = results_of(claim)
        results[2]["device"], results[3]["device"] = results[3]["device"], results[2]["device"]

    given(log, "four-on-one", change)


@alteration("wrong", SOAK, verify=FAILS, decide=FAILS)
def numa_nodes_differ(log: Log) -> None:
    """Two devices with one NUMA node are asked for; the second is of the other NUMA node."""
    log.cut(log.allocation("two-") + 6)

    def change(claim: Json) -> None:
        results_of(claim)[1]["device"] = "gpu-2"

    given(log, "two-", change)


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def tainted_device_taken(log: Log) -> None:
    """The device had a NoSchedule taint since before, and the request tolerates none (9)."""
    slices(log, "worker-2", tainted("gpu-0", "NoSchedule"))


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def rule_forbids_the_device(log: Log) -> None:
    """The NoSchedule rule is of the pool whose devices plain claims then get (section 13)."""
    rule = log.first("create", "devicetaintrules", "pool-ns")
    first = log.lines[rule]
    for body in (first["requestObject"], *log.of(uid_of(first))):
        body.get("spec", {}).get("deviceSelector", {}).update(pool="worker-2")


@alteration("wrong", TAINTS, verify=FAILS, decide=FAILS)
def tolerations_not_copied(log: Log) -> None:
    """A result has the tolerations of its request (10.1); this one has none."""
    end_after(log, "ns-0")
    given(log, "ns-0", lambda claim: results_of(claim)[0].pop("tolerations"))


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def tolerations_invented(log: Log) -> None:
    """A result has a toleration that its request does not have (10.1)."""

    def change(claim: Json) -> None:
        results_of(claim)[0]["tolerations"] = [{"operator": "Exists", "effect": "NoExecute"}]

    given(log, "pod2", change)


@alteration("wrong", (QUICKSTART, VERSIONS), verify=FAILS, decide=FAILS)
def more_devices_than_asked(log: Log) -> None:
    """A request for one device gets two (section 4: d runs to the count)."""
    claim, more = ("p-b1", "gpu-3") if _has(log, "p-b1") else ("pod2", "gpu-3")
    if claim == "pod2":
        end_after(log, "pod5")
    given(
        log,
        claim,
        lambda body: results_of(body).append({**results_of(body)[0], "device": more}),
    )


def _has(log: Log, claim: str) -> bool:
    try:
        return log.allocation(claim) >= 0
    except NotFound:
        return False


@alteration("wrong", (VERSIONS, SOAK), verify=FAILS, decide=FAILS)
def fewer_devices_than_asked(log: Log) -> None:
    """A request for two devices gets one."""
    given(log, "flat" if _has(log, "flat") else "two-", lambda body: results_of(body).pop())


@alteration("wrong", (VERSIONS, SOAK), verify=FAILS, decide=FAILS)
def one_device_twice_in_a_claim(log: Log) -> None:
    """Both results of a request are the same exclusive device (section 4, combinations)."""

    def change(body: Json) -> None:
        results_of(body)[1]["device"] = results_of(body)[0]["device"]

    given(log, "flat" if _has(log, "flat") else "two-", change)


@alteration("wrong", (QUICKSTART, TPU, TAINTS, SOAK), verify=FAILS, decide=FAILS)
def result_of_unknown_request(log: Log) -> None:
    """The result names a request that the claim does not have (10.1)."""
    given(log, "", device(0, request="accelerator"))


@alteration("wrong", (QUICKSTART, TPU, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def admin_access_not_asked(log: Log) -> None:
    """The result has admin access and its request does not ask for it (10.1)."""
    given(log, "", lambda body: results_of(body)[0].update(adminAccess=True))


def _ask_for_admin_access(log: Log) -> None:
    """All claims and templates ask for admin access from their creation on, and get it."""
    for line in log.lines:
        bodies = [line.get(side) or {} for side in ("requestObject", "responseObject")]
        for body in bodies:
            if body.get("kind") not in ("ResourceClaim", "ResourceClaimTemplate"):
                continue
            spec = body.get("spec", {})
            for request in spec.get("spec", spec).get("devices", {}).get("requests", ()):
                request.get("exactly", request)["adminAccess"] = True
            for result in results_of(body):
                result["adminAccess"] = True


@alteration("wrong", (QUICKSTART, TPU), verify=FAILS, decide=FAILS)
def admin_access_where_it_is_forbidden(log: Log) -> None:
    """Requests for admin access pass in a namespace without the label that allows it (5.2)."""
    _ask_for_admin_access(log)


@alteration("harmless", TPU, verify=SAME, decide="")
def admin_access_where_it_is_allowed(log: Log) -> None:
    """The namespaces have had the label since they were made, so admin access is given (5.2)."""
    _ask_for_admin_access(log)
    for number in log.find("create", "namespaces"):
        for side in ("requestObject", "responseObject"):
            labels = log.lines[number][side]["metadata"].setdefault("labels", {})
            labels["resource.kubernetes.io/admin-access"] = "true"


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def device_of_old_generation(log: Log) -> None:
    """A newer, complete generation of the pool has no gpu-0, which is given all the same (2.3)."""
    log.widen()
    place = log.first("create", "resourceslices", code=201)
    new = log.again(place, seconds=0.002, to=place + 1)
    version = str(log.version_before(place + 1))
    for body in (new["requestObject"], new["responseObject"]):
        body["metadata"]["name"] += "-b"
        body["spec"]["pool"]["generation"] = 2
        body["spec"]["devices"] = [d for d in body["spec"]["devices"] if d["name"] != "gpu-0"]
    new["responseObject"]["metadata"].update(
        uid="a1b7a3f0-0000-4000-8000-000000000001", resourceVersion=version
    )
    if "name" in new["objectRef"]:
        new["objectRef"]["name"] += "-b"


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def pool_incomplete(log: Log) -> None:
    """The pool says that it has two slices and has one: no device of it can be given (2.4)."""
    slices(
        log,
        "worker-1",
        lambda body: body["spec"]["pool"].update(resourceSliceCount=2),
        first_only=False,
    )


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def pool_invalid(log: Log) -> None:
    """Two slices of the pool have a device of the same name: the pool gives nothing (2.5 a)."""
    log.widen()
    place = log.first("create", "resourceslices", code=201)
    pool = log.lines[place]["requestObject"]["spec"]["pool"]["name"]
    slices(log, pool, lambda body: body["spec"]["pool"].update(resourceSliceCount=2))
    new = log.again(place, seconds=0.002, to=place + 1)
    version = str(log.version_before(place + 1))
    for body in (new["requestObject"], new["responseObject"]):
        body["metadata"]["name"] += "-b"
    new["responseObject"]["metadata"].update(
        uid="a1b7a3f0-0000-4000-8000-000000000002", resourceVersion=version
    )
    if "name" in new["objectRef"]:
        new["objectRef"]["name"] += "-b"


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def device_of_another_node(log: Log) -> None:
    """The pod runs on worker-2 and holds a device that only worker-1 has."""
    end_after(log, "pod2")
    given(log, "pod2", device(0, pool="worker-1", device="gpu-2"))


@alteration("wrong", (QUICKSTART, TAINTS, SOAK), verify=FAILS, decide=FAILS)
def node_selector_of_another_node(log: Log) -> None:
    """The allocation selects another node than that of its local device (10.3)."""

    def change(body: Json) -> None:
        field = body["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"]
        field[0]["values"] = ["node-05" if "node-" in field[0]["values"][0] else "worker-9"]

    given(log, "", change)


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS, SOAK), verify=FAILS, decide=FAILS)
def node_selector_missing(log: Log) -> None:
    """An allocation of a local device has no node selector (10.3)."""
    given(log, "", lambda body: body["status"]["allocation"].pop("nodeSelector"))


@alteration("wrong", TPU, verify=FAILS, decide=FAILS)
def node_selector_of_half_the_nodes(log: Log) -> None:
    """The device is on two nodes by its label selector; the allocation selects only one."""

    def change(body: Json) -> None:
        term = body["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]
        term["matchExpressions"][0]["values"] = term["matchExpressions"][0]["values"][:1]

    given(log, "second", change)


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def later_device_than_the_first(log: Log) -> None:
    """The search is first-fit in the published order; here it skips free devices (section 4)."""
    claim, pod = ("pod2", "pod2") if _has(log, "pod2") else ("plain-0", "plain-0")
    end_after(log, pod)
    given(log, claim, device(0, device="gpu-3"))


@alteration("wrong", SOAK, verify=FAILS, decide=FAILS)
def later_alternative_though_earlier_fits(log: Log) -> None:
    """The first alternative fits and got its device; the result names the last one (section 4)."""
    number = log.allocation("prio-16-0")
    log.cut(number + 4)
    given(log, "prio-16-0", device(0, request="g/any"))


@alteration("wrong", SOAK, verify=FAILS, decide=FAILS)
def alternative_with_a_device_of_the_other(log: Log) -> None:
    """The alternative for A100 has a result on the H100 device that the first one selects."""
    number = log.allocation("prio-16-0")
    log.cut(number + 4)
    given(log, "prio-16-0", device(0, request="g/a"))


def _shares(log: Log) -> list[int]:
    return [
        n for n in log.allocations() if "shareID" in results_of(log.lines[n]["responseObject"])[0]
    ]


def _consume(log: Log, amount: str) -> None:
    """The first share consumes another amount of each capacity."""
    claim = log.lines[_shares(log)[0]]["objectRef"]["name"]

    def change(body: Json) -> None:
        consumed = results_of(body)[0]["consumedCapacity"]
        for name in consumed:
            consumed[name] = amount

    given(log, claim, change)


@alteration("wrong", SOAK, verify=FAILS, decide=FAILS)
def share_consumes_more_than_there_is(log: Log) -> None:
    """One share consumes more than the capacity of the device (8.2)."""
    _consume(log, "900Gi")


@alteration("wrong", SOAK, verify=FAILS, decide=FAILS)
def share_consumes_less_than_asked(log: Log) -> None:
    """A share records less than the request consumes of the device (8.3)."""
    _consume(log, "1Gi")


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def share_of_an_exclusive_device(log: Log) -> None:
    """A device that does not allow multiple allocations is given as a share (10.1)."""
    share = "0a3f7c6e-1111-4222-8333-944445555666"
    given(log, "pod2", device(0, shareID=share))


@alteration("wrong", (QUICKSTART, TAINTS, VERSIONS), verify=FAILS, decide=FAILS)
def class_selects_nothing(log: Log) -> None:
    """The class selects another driver's devices, and its claims get devices all the same."""

    def change(body: Json) -> None:
        for selector in body.get("spec", {}).get("selectors", []):
            selector["cel"]["expression"] = "device.driver == 'fpga.example.com'"

    for number in list(log.find("create", "deviceclasses", code=201)):
        for side in ("requestObject", "responseObject"):
            change(log.lines[number][side])


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def class_selector_fails(log: Log) -> None:
    """The selector of the class ends in a CEL error on every device: nothing can be given (5.1)."""

    def change(body: Json) -> None:
        for selector in body.get("spec", {}).get("selectors", []):
            selector["cel"]["expression"] = "device.attributes['gpu.example.com'].absent == 1"

    for number in list(log.find("create", "deviceclasses", code=201)):
        for side in ("requestObject", "responseObject"):
            change(log.lines[number][side])


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def class_deleted_before(log: Log) -> None:
    """The class is deleted at once, and later claims of it get devices (3.3: no such class)."""
    log.widen()
    place = log.first("create", "deviceclasses", code=201)
    new = log.again(place, seconds=0.05)
    at = log.lines.index(new)
    new["verb"] = "delete"
    name = new["responseObject"]["metadata"]["name"]
    new["objectRef"]["name"] = name
    new["requestURI"] = f"/apis/resource.k8s.io/v1/deviceclasses/{name}"
    new["requestObject"] = {"kind": "DeleteOptions", "apiVersion": "resource.k8s.io/v1"}
    new["responseStatus"]["code"] = 200
    new["responseObject"]["metadata"]["resourceVersion"] = str(log.version_before(at))


@alteration("wrong", QUICKSTART, verify=FAILS, decide=FAILS)
def binding_conditions_not_in_the_result(log: Log) -> None:
    """The device has binding conditions, which a result copies (10.1) and this one lacks."""
    slices(log, "worker-2", _conditional("gpu-0"))


def _conditional(name: str) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        for one in body["spec"]["devices"]:
            if one["name"] == name:
                one["bindingConditions"] = ["example.com/attached"]
                one["bindingFailureConditions"] = ["example.com/failed"]

    return change


@alteration("wrong", QUICKSTART, verify=AGREES, decide=FAILS)
def bound_before_its_binding_conditions(log: Log) -> None:
    """The devices have binding conditions; pods are bound at once, without a report (3.8).

    The result copies the conditions, so the allocation itself is right and `verify`, which judges
    no placements, has nothing to say.
    """
    end_after(log, "pod7")
    for number in range(4):
        slices(log, "worker-2", _conditional(f"gpu-{number}"))
    for name in ("pod2", "pod3", "pod4", "pod7"):
        given(
            log,
            name,
            lambda body: results_of(body)[0].update(
                bindingConditions=["example.com/attached"],
                bindingFailureConditions=["example.com/failed"],
            ),
        )
