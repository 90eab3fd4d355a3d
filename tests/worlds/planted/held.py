"""Questions about claims: stuck, shared, allocated twice, unused; constraints and tolerations."""

import random

from tests.cluster import DRIVER, Cluster
from tests.worlds.planted.plant import Cause, Plant, Sow
from tests.worlds.planted.waiting import names, one, revision_of, spec_of

PROTECTION = "resource.kubernetes.io/delete-protection"


def stuck_in_deletion(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 2)
    cluster.device_class()
    cluster.claim("shared")
    users = names(rng, rng.randint(1, 3), "user")
    for user in users:
        cluster.pod(user, claim="shared")
    cluster.settle()
    cluster.delete("resourceclaims", "shared")
    revision = revision_of(cluster, "resourceclaims", "shared")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="resourceclaim", name="shared",
        causes=(
            Cause(words=("alice",), revision=revision),
            Cause(words=(PROTECTION, *users)),
        ),
    )  # fmt: skip


def reserved_by_many(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 2)
    cluster.device_class()
    cluster.claim("shared")
    users = names(rng, rng.randint(2, 4), "user")
    for user in users:
        cluster.pod(user, claim="shared")
        cluster.settle()
    return Plant(
        cluster=cluster, kind="resourceclaim", name="shared",
        causes=tuple(Cause(words=("reserved for", user)) for user in users),
    )  # fmt: skip


def device_in_two_claims(rng: random.Random) -> Plant:
    """A race of the past: the status of a second claim names an allocated device."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 1)
    cluster.device_class()
    first, second = names(rng, 2, "claim")
    cluster.claim(first)
    cluster.pod("pod", claim=first)
    cluster.settle()
    cluster.claim(second)
    cluster.settle()
    status = cluster.must("resourceclaims", first)["status"]
    tree = cluster.must("resourceclaims", second)
    written = {"allocation": status["allocation"]}
    cluster.update("resourceclaims", {**tree, "status": written}, subresource="status")
    revision = revision_of(cluster, "resourceclaims", second)
    asked = rng.choice((first, second))
    other = second if asked == first else first
    cause = Cause(words=("gpu-0", f"default/{other}"), revision=revision if other == second else 0)
    return Plant(cluster=cluster, kind="resourceclaim", name=asked, causes=(cause,))


def chosen_among_many(rng: random.Random) -> Plant:
    """The explanation names the chosen device, however many other devices were skipped."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    count = rng.randint(40, 90)
    chosen = rng.randint(20, count - 1)
    devices = [
        {"name": f"d{n:03d}", "attributes": {"kind": {"int": 1 if n == chosen else 1000 + n % 11}}}
        for n in range(count)
    ]
    cluster.slice(node, devices)
    cluster.device_class()
    refusals = [
        {"cel": {"expression": f'device.attributes["{DRIVER}"].kind != {1000 + n}'}}
        for n in range(11)
    ]
    cluster.claim("mine", selectors=refusals)
    cluster.pod("pod", claim="mine")
    cluster.settle()
    return Plant(
        cluster=cluster, kind="resourceclaim", name="mine",
        causes=(Cause(words=("why these and no others", f"d{chosen:03d}", "chosen")),),
    )  # fmt: skip


def constraint_is_met(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    numa = rng.randint(0, 99)
    cluster.slice(
        node, [{"name": f"d{n}", "attributes": {"numa": {"int": numa}}} for n in range(2)]
    )
    cluster.device_class()
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaim", "pair",
        spec=spec_of([one("a"), one("b")], [{"matchAttribute": f"{DRIVER}/numa"}]),
    )  # fmt: skip
    cluster.pod("pod", claim="pair")
    cluster.settle()
    words = ("matchAttribute", f"{DRIVER}/numa", str(numa))
    return Plant(
        cluster=cluster, kind="resourceclaim", name="pair", causes=(Cause(words=words),)
    )  # fmt: skip


def constraint_is_violated(rng: random.Random) -> Plant:
    """An allocation was written that the constraint of the claim forbids."""
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    numas = rng.sample(range(100), 2)
    cluster.slice(
        node, [{"name": f"d{n}", "attributes": {"numa": {"int": v}}} for n, v in enumerate(numas)]
    )
    cluster.device_class()
    cluster.create(
        "resource.k8s.io/v1", "ResourceClaim", "pair",
        spec=spec_of([one("a"), one("b")], [{"matchAttribute": f"{DRIVER}/numa"}]),
    )  # fmt: skip
    tree = cluster.must("resourceclaims", "pair")
    results = [
        {"request": r, "driver": DRIVER, "pool": node, "device": d}
        for r, d in (("a", "d0"), ("b", "d1"))
    ]
    status = {"allocation": {"devices": {"results": results}}}
    cluster.update("resourceclaims", {**tree, "status": status}, subresource="status")
    words = ("matchAttribute", "violated", str(numas[0]), str(numas[1]))
    return Plant(
        cluster=cluster, kind="resourceclaim", name="pair", causes=(Cause(words=words),)
    )  # fmt: skip


def tolerations_not_copied(rng: random.Random) -> Plant:
    cluster = Cluster()
    node = names(rng, 1, "node")[0]
    cluster.node(node)
    cluster.slice(node, 1)
    cluster.device_class()
    key = f"example.com/t{rng.randrange(1000)}"
    cluster.claim("mine", tolerations=[{"key": key, "operator": "Exists"}])
    tree = cluster.must("resourceclaims", "mine")
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}}
    cluster.update("resourceclaims", {**tree, "status": status}, subresource="status")
    return Plant(
        cluster=cluster, kind="resourceclaim", name="mine",
        causes=(Cause(words=("request gpu", key, "not copied")),),
    )  # fmt: skip


def nobody_uses_it(rng: random.Random) -> Plant:
    cluster = Cluster()
    cluster.device_class()
    name = names(rng, 1, "claim")[0]
    cluster.claim(name)
    cluster.settle()
    return Plant(
        cluster=cluster, kind="resourceclaim", name=name,
        causes=(Cause(words=("no pod uses the claim",)),),
    )  # fmt: skip


SOWN: tuple[Sow, ...] = (
    stuck_in_deletion,
    reserved_by_many,
    device_in_two_claims,
    chosen_among_many,
    constraint_is_met,
    constraint_is_violated,
    tolerations_not_copied,
    nobody_uses_it,
)
