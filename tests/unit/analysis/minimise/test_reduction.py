"""The search: what it leaves is minimal, whatever is needed and however many are tried at once."""

from dataclasses import replace
from itertools import combinations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.analysis.minimise import trees
from app.analysis.minimise.material import CLOSED, END, Candidate, Material
from app.analysis.minimise.predicates import Sighting
from app.analysis.minimise.reduction import NEAR, Reduction
from app.analysis.replay.inputs import Input
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

USER = Actor(user="alice")


def step(number: int, resource: str, name: str, *, group: str = "", namespace: str = "", **fields):
    tree = {"metadata": {"name": name, "uid": name}, **fields}
    event = Event(
        revision=Revision(number + 1),
        type=EventType.OBJECT_CREATED,
        key=ObjectKey(group, resource, namespace, name),
        uid=name,
        body=canonical_json(tree),
        stamp=Stamp(time=Instant(number * SECOND), actor=USER, verb="create"),
    )
    return Input(event=event, before=None, time=event.stamp.time, author="alice", number=number)


def claim(number: int, name: str, device_class: str):
    requests = [{"name": "r", "exactly": {"deviceClassName": device_class}}]
    spec = {"devices": {"requests": requests}}
    return step(
        number,
        "resourceclaims",
        name,
        group="resource.k8s.io",
        namespace="n",
        spec=spec,
    )


def pod(number: int, name: str, claim_name: str):
    spec = {"resourceClaims": [{"name": "dev", "resourceClaimName": claim_name}]}
    # Every pod has an address of its own.
    status = {"podIP": f"10.0.0.{number}"}
    return step(number, "pods", name, namespace="n", spec=spec, status=status)


def world() -> Material:
    """A namespace, two classes, claims of each, a pod of each claim, and noise."""
    return Material(
        steps=[
            step(0, "namespaces", "n"),
            step(1, "deviceclasses", "gpu", group="resource.k8s.io"),
            step(2, "deviceclasses", "nic", group="resource.k8s.io"),
            claim(3, "a", "gpu"),
            claim(4, "b", "nic"),
            pod(5, "p", "a"),
            pod(6, "q", "b"),
            *(step(number, "configmaps", f"noise-{number}", namespace="n") for number in (7, 8, 9)),
        ]
    )


def whole(material: Material) -> Candidate:
    return Candidate(kept=frozenset(range(len(material.steps))), until=Instant(20 * SECOND))


def search(material, shows, *, sightings=(Sighting(),), controllers=(), **options):
    """The result of the search, with everything that was tried."""
    reduction = Reduction(material, whole(material), controllers, **options)
    return reduction, drive(reduction.steps(sightings), shows)


def drive(steps, shows):
    """Everything that a search tries."""
    tried = []
    try:
        batch = next(steps)
        while True:
            tried += batch
            batch = steps.send([shows(each) for each in batch])
    except StopIteration:
        return tried


def names(material: Material, candidate: Candidate) -> set[str]:
    return {key.name for key in material.keys(candidate)}


def has_whole(material: Material, name: str):
    """A predicate: the object is there with all of its fields."""
    (number,) = (n for n, each in enumerate(material.steps) if each.event.key.name == name)
    key = material.steps[number].event.key
    return lambda each: number in each.kept and key not in {cut for cut, _ in each.cuts}


def test_an_object_keeps_what_it_needs() -> None:
    material = world()
    reduction, _ = search(material, has_whole(material, "p"))
    # The claim itself is needed; what it asks for is not, and so neither is the class.
    assert names(material, reduction.best) == {"n", "a", "p"}
    assert reduction.is_minimal


def full_pool(count: int) -> Material:
    """A recording of a pool in which claims hold every device but the last."""
    devices = [{"name": f"gpu-{n}", "attributes": {"index": {"int": n}}} for n in range(count)]
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "devices": devices}
    published = step(0, "resourceslices", "slice", group="resource.k8s.io", spec=spec)
    results = [{"driver": "gpu.example.com", "pool": "pool", "request": "r"} for _ in devices]
    claims = [
        step(
            1 + n,
            "resourceclaims",
            f"claim-{n}",
            group="resource.k8s.io",
            status={"allocation": {"devices": {"results": [{**result, "device": f"gpu-{n}"}]}}},
        )
        for n, result in enumerate(results[:-1])
    ]
    return Material(steps=[published, *claims], is_recorded=True)


def free_and_held(material: Material, candidate: Candidate) -> tuple[set[str], set[str]]:
    """The names of devices that no claim holds, and of those that claims hold."""
    there, held = set(), set()
    for each in material.inputs(candidate):
        tree = each.event.object
        there |= {str(device.get("name")) for device in tree.get("spec", {}).get("devices", ())}
        devices = tree.get("status", {}).get("allocation", {}).get("devices", {})
        held |= {str(result.get("device")) for result in devices.get("results", ())}
    return there - held, held


def test_devices_go_with_the_claims_that_hold_them() -> None:
    material = full_pool(16)

    def is_last_the_only_free(candidate: Candidate) -> bool:
        free, held = free_and_held(material, candidate)
        return free == {"gpu-15"} and bool(held)

    reduction, _ = search(material, is_last_the_only_free)
    free, held = free_and_held(material, reduction.best)
    # Neither a claim nor a device can go by itself; both together can, down to one claim.
    assert (free, len(held), len(reduction.best.kept)) == ({"gpu-15"}, 1, 2)


def test_devices_go_before_fields_where_pods_must_fill_them() -> None:
    devices = [{"name": f"gpu-{n}"} for n in range(16)]
    spec = {"driver": "gpu.example.com", "pool": {"name": "pool"}, "devices": devices}
    published = step(0, "resourceslices", "slice", group="resource.k8s.io", spec=spec)
    material = Material(steps=[published, *(step(1 + n, "pods", f"p-{n}") for n in range(20))])

    def does_one_wait(candidate: Candidate) -> bool:
        trees_left = [each.event.object for each in material.inputs(candidate)]
        pools = [tree["spec"] for tree in trees_left if "devices" in tree.get("spec", {})]
        return bool(pools) and len(trees_left) - 1 > len(pools[0]["devices"]) > 0

    sizes = []
    report_progress = lambda news: sizes.append((news, len(reduction.best.kept)))  # noqa: E731
    reduction = Reduction(material, whole(material), (), report_progress=report_progress)
    drive(reduction.passes(), does_one_wait)
    first = next(size for news, size in sizes if getattr(news, "name", "") == "fields and items")
    assert first == 3
    assert reduction.is_minimal


def test_slice_goes_with_the_count_of_its_pool() -> None:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 9}
    spec = {"driver": "gpu.example.com", "pool": pool}
    names_of = [f"slice-{n}" for n in range(9)]
    other = {"driver": "gpu.example.com", "pool": {"name": "other", "resourceSliceCount": 1}}
    material = Material(
        steps=[
            *(
                step(n, "resourceslices", name, group="resource.k8s.io", spec=spec)
                for n, name in enumerate(names_of)
            ),
            step(9, "resourceslices", "other", group="resource.k8s.io", spec=other),
        ]
    )

    def is_complete(candidate: Candidate) -> bool:
        pools = [
            each.event.object["spec"]["pool"]
            for each in material.inputs(candidate)
            if "pool" in each.event.object.get("spec", {})
        ]
        mine = [
            each["resourceSliceCount"]
            for each in pools
            if each.get("name") == "pool" and "resourceSliceCount" in each
        ]
        return (
            {"slice-3", "slice-7"} <= names(material, candidate)
            and mine == [len(mine)] * len(mine)
            and len(mine) >= 2
        )

    reduction, _ = search(material, is_complete)
    assert names(material, reduction.best) == {"slice-3", "slice-7"}
    left = [each.event.object["spec"]["pool"] for each in material.inputs(reduction.best)]
    assert left == [{"name": "pool", "resourceSliceCount": 2}] * 2


def test_what_shares_no_device_with_a_sighting_is_left_out_first() -> None:
    material = full_pool(16)
    claim = ObjectKey("resource.k8s.io", "resourceclaims", "", "claim-3")
    reduction = Reduction(material, whole(material), ())
    tries = reduction.narrow([Sighting(objects=(claim,))])
    (first,) = next(tries)
    assert free_and_held(material, first) == (set(), {"gpu-3"})
    # Another device may be the one that it is about.
    other = Sighting(objects=(claim,), devices=(("gpu.example.com", "pool", "gpu-15"),))
    (first,) = next(Reduction(material, whole(material), ()).narrow([other]))
    assert free_and_held(material, first) == ({"gpu-15"}, {"gpu-3"})


@pytest.mark.parametrize(("count", "expected"), [(7, False), (6, False), (5, True)])
def test_what_lies_around_a_sighting_is_everything_of_a_small_history(
    count: int, expected: bool
) -> None:
    """With noise, with another claim, and with nothing but what the pod needs and a class."""
    material = world()
    order = (0, 1, 2, 3, 5, 4, 7)  # the claim of the other class comes last but one
    kept = Candidate(kept=frozenset(order[:count]), until=Instant(20 * SECOND))
    sighting = Sighting(objects=(ObjectKey("", "pods", "n", "p"),))
    assert Reduction(material, kept, ()).is_all([sighting], NEAR) is expected


def test_devices_that_share_counters_stay_with_a_sighting() -> None:
    material = full_pool(16)
    tree = material.steps[0].event.object
    for n, device in enumerate(tree["spec"]["devices"]):
        device["consumesCounters"] = [{"counterSet": f"gpu-{n // 4}", "counters": {}}]
    event = msgspec.structs.replace(material.steps[0].event, body=canonical_json(tree), tree=tree)
    material = replace(
        material, steps=[replace(material.steps[0], event=event), *material.steps[1:]]
    )
    claim = ObjectKey("resource.k8s.io", "resourceclaims", "", "claim-5")
    tries = Reduction(material, whole(material), ()).narrow([Sighting(objects=(claim,))])
    held = [free_and_held(material, each)[1] for each in next(tries)]
    while True:
        try:
            held += [free_and_held(material, each)[1] for each in tries.send([False])]
        except StopIteration:
            break
    assert {"gpu-5"} in held
    assert {"gpu-4", "gpu-5", "gpu-6", "gpu-7"} in held


def test_an_event_about_an_object_goes_and_stays_with_it() -> None:
    base = world()
    about = {"involvedObject": {"kind": "Pod", "namespace": "n", "name": "p", "uid": "p"}}
    said = step(10, "events", "p.1", namespace="n", **about)
    material = Material(steps=[*base.steps, said], is_recorded=True)
    pod_key = material.steps[5].event.key
    assert pod_key.name == "p"
    without = material.without(whole(material), material.by_key[pod_key])
    assert not names(material, without) & {"p", "p.1"}
    assert material.with_events({pod_key}) == {pod_key, said.event.key}


def test_event_about_an_object_of_unknown_uid_needs_none_that_has_none() -> None:
    """An object without a uid that goes first takes nothing along, at no time."""
    unnamed = step(1, "configmaps", "without-uid", namespace="n")
    unnamed = replace(unnamed, event=msgspec.structs.replace(unnamed.event, uid=""))
    about = step(2, "events", "e", namespace="n", involvedObject={"kind": "Pod", "name": "p"})
    material = Material(
        steps=[
            *(step(0, "namespaces", "n"), unnamed, about),
            *(step(number, "configmaps", f"noise-{number}", namespace="n") for number in (3, 4)),
        ],
        is_recorded=True,
    )
    reduction, _ = search(material, has_whole(material, "e"))
    assert names(material, reduction.best) == {"n", "e"}


def test_no_candidate_names_what_is_not_there() -> None:
    material = world()
    _, tried = search(material, has_whole(material, "q"))
    needs = {"a": "gpu", "b": "nic", "p": "a", "q": "b"}
    for candidate in tried:
        there = names(material, candidate)
        cut = {key.name for key, _ in candidate.cuts}
        for name in (there & needs.keys()) - cut:
            assert needs[name] in there, candidate


@settings(max_examples=draws.examples(25), deadline=None)
@given(st.sets(st.sampled_from(["gpu", "nic", "a", "b", "p", "q", "noise-7"]), max_size=4))
def test_no_object_can_go_alone_where_each_candidate_is_decided(needed) -> None:
    material = world()
    reduction, _ = search(material, lambda each: needed <= names(material, each), is_decided=True)
    # A namespace takes along what is in it; a class, a claim or a pod can go by itself.
    left = names(material, reduction.best)
    assert left - {"n"} == needed
    assert ("n" in left) == bool(needed - {"gpu", "nic"})
    assert (reduction.is_minimal, reduction.represented) == (True, 0)


def test_same_field_of_many_objects_goes_at_once() -> None:
    spec = {"w": {"a": 1, "b": 1}, "x": 1, "y": {"a": 1}, "z": 1}

    def successes(count: int) -> int:
        material = Material(
            steps=[
                step(n, "resourceslices", f"s-{n}", group="resource.k8s.io", spec=spec)
                for n in range(count)
            ]
        )

        def shows(candidate: Candidate) -> bool:
            left = [each.event.object.get("spec", {}) for each in material.inputs(candidate)]
            needed = [each for each in left if "x" in each and "b" in each.get("w", {})]
            return len(needed) == count

        reduction, tried = search(material, shows)
        for left in material.inputs(reduction.best):
            assert left.event.object["spec"] == {"w": {"b": 1}, "x": 1}
        return sum(shows(each) for each in tried)

    assert successes(3) == successes(9)


def crowd(count: int) -> Material:
    """Pods of one claim, and one pod whose name a predicate says, among noise."""
    return Material(
        steps=[
            step(0, "namespaces", "n"),
            step(1, "deviceclasses", "gpu", group="resource.k8s.io"),
            claim(2, "shared", "gpu"),
            *(pod(3 + n, f"p-{n}", "shared") for n in range(count)),
            pod(3 + count, "meant", "shared"),
            *(step(4 + count + n, "configmaps", f"c-{n}", namespace="n") for n in range(count)),
        ]
    )


@draws.in_turn("ways")
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize(("count", "needed"), [(80, 80), (80, 51), (80, 17)])
def test_bound_that_many_alike_reach_is_found_in_few_tries(count, needed, width) -> None:
    material = crowd(count)

    def shows(candidate: Candidate) -> bool:
        pods = [each for each in material.inputs(candidate) if each.event.key.resource == "pods"]
        users = [each for each in pods if each.event.object.get("spec", {}).get("resourceClaims")]
        return "meant" in names(material, candidate) and len(users) > needed

    reduction, tried = search(material, shows, width=width, is_decided=True)
    left = names(material, reduction.best)
    assert len({name for name in left if name.startswith("p-")}) == needed
    assert left - {f"p-{n}" for n in range(count)} == {"n", "meant"}
    assert reduction.is_minimal
    assert reduction.represented == needed + 1
    assert len(tried) < 2 * count * width


@settings(max_examples=draws.examples(10), deadline=None)
@given(st.sets(st.integers(0, 39), max_size=3), st.integers(0, 20))
def test_some_of_many_alike_that_are_needed_stay(needed, more) -> None:
    """They look alike and are not, because a predicate names them."""
    material = crowd(40)
    wanted = {f"p-{n}" for n in needed}

    def shows(candidate: Candidate) -> bool:
        left = names(material, candidate)
        return wanted <= left and len(left) >= more

    reduction, _ = search(material, shows, is_decided=True)
    assert shows(reduction.best)
    left = names(material, reduction.best)
    assert len(left) == max(more, len(wanted | {"n"} if wanted else wanted))


@pytest.mark.parametrize("width", [2, 3, 8])
def test_nobody_waits_while_nothing_can_go(width) -> None:
    material = world()
    start = whole(material)
    passes = []
    reduction = Reduction(
        material, start, (), width=width, report_progress=lambda news: passes.append(news.parts)
    )
    steps = reduction.passes()
    sizes = []
    try:
        batch = next(steps)
        while True:
            sizes.append(len(batch))
            batch = steps.send([False] * len(batch))
    except StopIteration:
        pass
    assert reduction.is_minimal
    assert sum(sizes) > 2 * width
    # Only the last candidates of a pass may be fewer than are tried at once.
    assert sum(size < width for size in sizes) <= len(passes)


def test_those_that_are_known_take_nobodys_place() -> None:
    material = world()
    known = {3, 5, 7}

    def is_out(candidate: Candidate) -> bool:
        return not known <= candidate.kept

    reduction = Reduction(material, whole(material), (), width=2, is_out=is_out)
    steps = reduction.passes()
    sizes = []
    try:
        batch = next(steps)
        while True:
            sizes.append(sum(not is_out(each) for each in batch))
            batch = steps.send([False] * len(batch))
    except StopIteration:
        pass
    assert max(sizes) == 2
    # One alone is what is left at the end of a pass.
    assert sizes.count(2) > sizes.count(1) + sizes.count(0)


@settings(max_examples=draws.examples(25), deadline=None)
@given(st.sets(st.integers(0, 9), max_size=4), st.integers(1, 5))
def test_result_is_minimal_and_the_same_however_many_are_tried_at_once(needed, width) -> None:
    material = world()

    def shows(candidate: Candidate) -> bool:
        return needed <= candidate.kept

    alone, _ = search(material, shows)
    together, _ = search(material, shows, width=width)
    # Some are known beforehand not to show it.
    knowing, _ = search(
        material, shows, width=width, is_out=lambda each: len(each.kept) % 2 and not shows(each)
    )
    assert alone.best == together.best == knowing.best
    assert needed <= alone.best.kept
    for number in alone.best.kept:
        smaller = material.without(alone.best, [number])
        assert not shows(smaller)


@settings(max_examples=draws.examples(20), deadline=None)
@given(st.integers(0, 2**10 - 1))
def test_parts_that_only_go_together_go_together(bits) -> None:
    """A predicate that is not monotone: parts of a pair are there both or not at all."""
    material = world()
    pairs = [pair for n, pair in enumerate(combinations((7, 8, 9), 2)) if bits >> n & 1]

    def shows(candidate: Candidate) -> bool:
        return all((a in candidate.kept) == (b in candidate.kept) for a, b in pairs)

    reduction, _ = search(material, shows)
    assert not reduction.best.kept


def test_fields_items_times_and_controllers_go_too() -> None:
    spec = {"devices": [{"name": f"gpu-{n}", "attributes": {"m": n}} for n in range(8)], "x": 1}
    material = Material(
        steps=[
            step(0, "nodes", "w"),
            step(5, "resourceslices", "s", group="resource.k8s.io", spec=spec),
        ]
    )

    def shows(candidate: Candidate) -> bool:
        if 1 not in candidate.kept:
            return False
        tree = material.inputs(candidate)[-1].event.object
        return any(
            each.get("name") == "gpu-5" and "attributes" in each
            for each in tree.get("spec", {}).get("devices", ())
        )

    reduction, _ = search(material, shows, controllers=("claims", "scheduling"))
    best = reduction.best
    (left,) = material.inputs(best)
    assert left.event.object["spec"] == {"devices": [{"name": "gpu-5", "attributes": {}}]}
    assert best.off == {"claims", "scheduling"}
    assert material.end(best) - left.time == CLOSED


def test_progress_names_what_is_tried() -> None:
    material = Material(
        steps=[
            step(0, "nodes", "w"),
            step(5, "resourceslices", "s", group="resource.k8s.io", spec={"x": 3, "y": {"z": 1}}),
            step(6, "events", "e", namespace="n"),
        ]
    )
    progress = []
    reduction = Reduction(material, whole(material), ("claims",), report_progress=progress.append)
    drive(reduction.passes(), lambda candidate: 1 in candidate.kept)
    named = [each for each in progress if not isinstance(each, Candidate)]
    assert {each.name for each in named} >= {
        "controllers",
        "fields and items",
        "numbers",
        "times",
    }
    assert all(each.name and each.parts >= 0 for each in named)


def test_names_of_items_can_go_without_hiding_the_items_beside_them() -> None:
    spec = {"devices": [{"name": "a", "x": 1, "y": 1}, {"name": "b", "x": 2, "y": 2}]}
    material = Material(steps=[step(0, "resourceslices", "s", group="resource.k8s.io", spec=spec)])

    def shows(candidate: Candidate) -> bool:
        if not candidate.kept:
            return False
        (left,) = material.inputs(candidate)
        devices = left.event.object.get("spec", {}).get("devices", [])
        return any(each.get("x") == 2 for each in devices)

    reduction, _ = search(material, shows)
    (left,) = material.inputs(reduction.best)
    assert left.event.object["spec"] == {"devices": [{"x": 2}]}


@pytest.mark.parametrize("width", [1, 3])
def test_what_the_sighting_is_about_is_guessed_first(width) -> None:
    material = world()
    sighting = Sighting(objects=(material.steps[5].event.key,), at=Instant(5 * SECOND))
    _, tried = search(
        material, lambda each: "p" in names(material, each), width=width, sightings=[sighting]
    )
    assert tried[0].until == sighting.at
    assert names(material, tried[0]) == {"n", "gpu", "a", "p"}


@pytest.mark.parametrize("width", [1, 3])
def test_sighting_that_needs_little_is_taken_before_more_is_kept_for_the_first(width) -> None:
    material = world()
    sightings = [
        Sighting(objects=(material.steps[number].event.key,), at=Instant(number * SECOND))
        for number in (5, 6)
    ]

    def shows(each: Candidate) -> bool:
        left = names(material, each)
        return "q" in left or {"p", "noise-7"} <= left

    reduction, tried = search(material, shows, width=width, sightings=sightings)
    assert "noise-7" not in names(material, reduction.best)
    first = next(each for each in tried if shows(each))
    assert names(material, first) == {"n", "nic", "b", "q"}


def test_workloads_that_were_there_meanwhile_are_guessed_before_those_of_all_times() -> None:
    steps = [step(0, "namespaces", "n"), step(1, "namespaces", "m")]
    for number in range(2, 42):
        steps.append(step(number, "pods", f"past-{number}", namespace="n"))
        ended = msgspec.structs.replace(steps[-1].event, type=EventType.OBJECT_DELETED)
        steps.append(replace(steps[-1], event=ended, before=steps[-1].event.object))
    steps.append(step(50, "pods", "beside", namespace="m"))
    steps.append(step(51, "pods", "p", namespace="n"))
    material = Material(steps=steps)
    sighting = Sighting(objects=(steps[-1].event.key,), at=Instant(51 * SECOND))
    needed = {"p", "beside"}
    _, tried = search(material, lambda each: needed <= names(material, each), sightings=[sighting])
    first = next(each for each in tried if needed <= names(material, each))
    assert names(material, first) == {"n", "m", "p", "beside"}


def test_end_is_looked_for_by_halves_where_nothing_tells_it() -> None:
    steps = [step(number, "configmaps", f"c-{number}") for number in range(64)]
    material = Material(steps=steps)
    reduction, tried = search(material, lambda each: "c-3" in names(material, each), sightings=[])
    assert names(material, reduction.best) == {"c-3"}
    assert [len(each.kept) for each in tried[:4]] == [32, 16, 8, 4]


def test_equal_contents_have_one_digest() -> None:
    material = world()
    start = whole(material)
    key = material.steps[7].event.key
    absent = Candidate(kept=start.kept, until=start.until, cuts=frozenset([(key, ("absent",))]))
    other = material.without(start, [7])
    assert trees.without(material.steps[7].event.object, [("absent",)])
    assert material.digest(start) == material.digest(absent)
    assert material.digest(start) != material.digest(other)


def test_parts_are_left_out_however_deep_they_lie() -> None:
    """Parameters of a driver may be as deep as an object may be large."""
    deep = {"needed": 1, "noise": 2}
    for level in range(60):
        deep = {f"level-{level}": deep}
    material = Material(steps=[step(0, "configmaps", "c", data=deep)])

    def text(candidate: Candidate) -> str:
        return "".join(str(each.event.object) for each in material.inputs(candidate))

    reduction, _ = search(material, lambda candidate: "needed" in text(candidate))
    assert reduction.is_minimal
    assert "noise" not in text(reduction.best)


@pytest.mark.parametrize(("value", "least"), [("400", 257), ("400", 400), ("400Gi", 2), (400, 1)])
def test_number_is_lowered_to_what_must_stay_by_halves(value: trees.Number, least: int) -> None:
    """A bound of 257 pods of 400 took a round of all passes for each one less."""
    material = Material(steps=[step(0, "nodes", "n", status={"pods": value})])

    def shows(candidate: Candidate) -> bool:
        pods = [each.event.object.get("status", {}).get("pods") for each in inputs(candidate)]
        return [int(str(amount or 0).removesuffix("Gi")) >= least for amount in pods] == [True]

    inputs = material.inputs
    reduction, tried = search(material, shows)
    ((_, path, now),) = reduction.best.values or [(None, ("status", "pods"), value)]
    assert (path, str(now)) == (("status", "pods"), str(value).replace("400", str(least)))
    assert len(tried) < 60


def test_what_follows_a_shortened_interval_moves_with_all_its_instants() -> None:
    at = ("1970-01-01T00:00:05Z", "1970-01-01T00:00:09Z")
    changed = step(9, "configmaps", "a", since=at[0])
    changed = replace(changed, before={"metadata": {"name": "a"}, "since": at[1]})
    material = Material(steps=[step(2, "nodes", "w", since=at[0]), step(5, "pods", "p"), changed])
    whole_course = Candidate(kept=frozenset({0, 1, 2}), until=Instant(20 * SECOND))
    assert [each.time for each in material.inputs(whole_course)] == [
        number * SECOND for number in (2, 5, 9)
    ]
    shorter = replace(whole_course, closed=frozenset({1, END}))
    first, second, third = material.inputs(shorter)
    assert [each.time for each in (first, second, third)] == [
        2 * SECOND,
        2 * SECOND + CLOSED,
        6 * SECOND + CLOSED,
    ]
    assert first.event.object["since"] == at[0]
    moved = 3 * SECOND - CLOSED
    for tree, text in ((third.event.object, at[0]), (third.before, at[1])):
        assert abs(timestamps.parse(tree["since"]) - timestamps.parse(text) + moved) < SECOND
        assert tree["since"] != text
    assert material.end(shorter) == 6 * SECOND + 2 * CLOSED
    assert material.end(whole_course) == 20 * SECOND
