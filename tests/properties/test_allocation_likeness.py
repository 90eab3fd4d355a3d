"""Equal nodes share one search, and get the same answers as nodes that are searched alone."""

import os
from random import Random

import pytest

from app.domain.allocation import (
    AllocatedState,
    Allocation,
    Allocator,
    Failure,
    search,
    similar_nodes,
)
from app.domain.devices.inventory import Inventory
from tests import draws
from tests.worlds.builders import (
    ALL_ON,
    COMPILER,
    DRIVER,
    claim,
    device,
    device_class,
    distinct,
    first_available,
    holding,
    match,
    node,
    request,
    resource_slice,
    result,
    taint,
    wish,
)

CLUSTERS = int(os.environ.get("REDRA_FUZZ_WORLDS", "240"))
NODES = 6
EXPRESSIONS = [
    f'device.driver == "{DRIVER}"',
    f'device.attributes["{DRIVER}"].kind == "x"',
    f'device.attributes["{DRIVER}"].index > 0',
    f'device.attributes["{DRIVER}"].numa == 1 && device.driver == "{DRIVER}"',
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("10Gi")) >= 0',
]
ODD = [
    f'device.attributes["{DRIVER}"].absent == "x"',
    "device.allowMultipleAllocations",
    'device.attributes.exists(domain, domain == "gpu.example.com")',
    "this is no expression",
]


def capacity(rng: Random) -> dict:
    """A capacity; some have a request policy that a request without an amount may break."""
    made: dict = {"value": rng.choice(["8Gi", "16Gi"])}
    if rng.random() < 0.3:
        made["requestPolicy"] = {
            "default": rng.choice(["4Gi", "32Gi"]),
            "validRange": {"min": "1Gi"},
        }
    return {"memory": made}


def design(rng: Random) -> list[dict]:
    """The devices of one type of node, without the parts that differ between nodes."""
    made = []
    for number in range(rng.randint(3, 6)):
        fields: dict = {"kind": rng.choice("xy"), "index": number, "numa": rng.randint(0, 1)}
        if rng.random() < 0.05:
            fields["tags"] = ["a", "b"]
        if rng.random() < 0.2:
            fields["taints"] = [taint(effect=rng.choice(["NoSchedule", "None"]))]
        if rng.random() < 0.3:
            fields["capacity"] = capacity(rng)
        if rng.random() < 0.02:
            fields["allowMultipleAllocations"] = True
        made.append(device(f"d{number}", **fields))
    return made


def cluster(rng: Random) -> list[dict]:
    """Slices of nodes of one or two types; each device has its own uuid."""
    makes = [design(rng) for _ in range(rng.randint(1, 2))]
    slices = []
    for number in range(NODES):
        devices = []
        for tree in rng.choice(makes):
            own = {"string": f"n{number}-{tree['name']}"}
            attributes = {**tree["attributes"], "uuid": own}
            devices.append({**tree, "attributes": attributes})
        if rng.random() < 0.2:
            one = devices[rng.randrange(len(devices))]
            match rng.randrange(5):
                case 0:
                    one["attributes"][rng.choice(["kind", "tags"])] = {"string": "z"}
                case 1:
                    one["capacity"] = capacity(rng)
                case 2:
                    one["taints"] = [taint(key=rng.choice("kl"))]
                case _:
                    one["attributes"]["numa"] = {"int": 7}
        slices.append(resource_slice(f"n{number}", *devices, pool=f"n{number}", node=f"n{number}"))
    if rng.random() < 0.2:
        extra = device("e0", kind="x", index=1, numa=0)
        slices.append(resource_slice("e", extra, pool="e", node=f"n{NODES - 1}", count=2))
    return slices


def wished(rng: Random) -> dict:
    """The fields of one request or alternative."""
    fields: dict = {}
    if rng.random() < 0.3:
        fields["tolerations"] = [{"key": "k", "operator": "Exists"}]
    if rng.random() < 0.15:
        fields["capacity"] = {"requests": {"memory": rng.choice(["4Gi", "12Gi"])}}
    chosen = rng.sample(EXPRESSIONS, rng.choice([0, 0, 1, 1, 2]))
    if rng.random() < 0.05:
        chosen.append(rng.choice(ODD))
    return wish(rng.choice([0, 1, 1, 2, 2, 2]), *chosen, **fields)


def asked(rng: Random) -> list[dict]:
    """The claims of one pod."""
    made = []
    for number in range(rng.randint(1, 2)):
        requests: list[dict] = []
        for index in range(rng.randint(1, 2)):
            if rng.random() < 0.2:
                requests.append(first_available(f"r{index}", a=wished(rng), b=wished(rng)))
            else:
                requests.append({**request(f"r{index}"), "exactly": wished(rng)})
        fields: dict = {}
        if rng.random() < 0.6:
            fields["constraints"] = [rng.choice([match, distinct])(rng.choice(["numa", "kind"]))]
        made.append(claim(*requests, name=f"c{number}", **fields))
    return made


def in_use(rng: Random) -> list[dict]:
    """Claims that hold the first device of some nodes."""
    return [
        {**holding(result("d0", pool=f"n{number}")), "metadata": {"name": f"h{number}"}}
        for number in range(NODES)
        if rng.random() < 0.3
    ]


def shown(answer: object) -> object:
    """The parts of an answer that users see."""
    if isinstance(answer, Allocation):
        return answer.allocation_results(lambda: "share"), answer.steps
    if isinstance(answer, Failure):
        return answer.text, answer.scope
    return "none"


def answers(slices: list[dict], held: list[dict], claims: list[dict], *, alone: bool) -> list:
    """The answer for every node: in one attempt, or with a new allocator for each node."""
    classes = {"gpu": device_class()}
    collected = []
    allocator = None
    for number in range(NODES):
        if allocator is None or alone:
            state = AllocatedState.of_claims(held)
            inventory = Inventory.of_slices(slices)
            allocator = Allocator(inventory, classes, state, ALL_ON, compiler=COMPILER)
        collected.append(shown(allocator.allocate(node(f"n{number}"), claims)))
    return collected


@draws.in_turn("ways")
@pytest.mark.parametrize("unlike", [similar_nodes.UNLIKE_MAX, 1], ids=["patient", "giving up"])
def test_like_nodes_answer_as_if_each_were_asked_alone(
    monkeypatch: pytest.MonkeyPatch, unlike: int
) -> None:
    patient = unlike == similar_nodes.UNLIKE_MAX
    monkeypatch.setattr(similar_nodes, "UNLIKE_MAX", unlike)
    searches = 0
    run = search.run

    def counted(*arguments: object, **how: object) -> object:
        nonlocal searches
        searches += 1
        return run(*arguments, **how)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(search, "run", counted)
    counts = {True: 0, False: 0}
    for seed in range(CLUSTERS):
        rng = Random(f"likeness-{seed}")
        world = cluster(rng), in_use(rng), asked(rng)
        collected = {}
        for alone in (True, False):
            searches = 0
            collected[alone] = answers(*world, alone=alone)
            counts[alone] += searches
        assert collected[False] == collected[True], f"seed {seed}"
    if patient:
        assert counts[False] < 0.85 * counts[True], "nodes that look alike are searched one by one"


def test_likeness_is_not_looked_for_where_every_node_is_different(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forms = 0
    form = similar_nodes._form

    def counted(*arguments: object) -> object:
        nonlocal forms
        forms += 1
        return form(*arguments)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(similar_nodes, "_form", counted)
    count = 3 * similar_nodes.UNLIKE_MAX
    slices = [
        resource_slice(f"n{n}", device("d0", index=n), pool=f"n{n}", node=f"n{n}")
        for n in range(count)
    ]
    wanted = [claim(request("r0", 1, f'device.attributes["{DRIVER}"].index >= 0'))]
    allocator = Allocator(
        Inventory.of_slices(slices),
        {"gpu": device_class()},
        AllocatedState(),
        ALL_ON,
        compiler=COMPILER,
    )
    for number in range(count):
        assert isinstance(allocator.allocate(node(f"n{number}"), wanted), Allocation)
    assert forms <= similar_nodes.UNLIKE_MAX + 3
