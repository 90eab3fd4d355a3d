"""Each rule, broken for a while by a story: found with its objects, from when and until when.

In every story something that has to do with nothing is written between, so that a violation may
begin and end while other objects change, and one begins and ends between two writes of others.
"""

import msgspec
import pytest
from msgspec.structs import replace

from app.analysis.verify.invariants import RULES, InvariantWatch, ViolationKind, nodes, placements
from app.analysis.verify.invariants.violations import LATE_AFTER
from app.domain.log import ObjectKey, Origin, doubts
from app.domain.values.timestamps import SECOND, Instant
from tests.shared_data import REPOSITORY
from tests.together import together
from tests.unit.analysis.invariants.model import Switches, expected
from tests.unit.analysis.invariants.worlds import (
    ADMIN,
    CONTROLLER,
    DRIVER,
    FINALIZER,
    GOING,
    GROUP,
    IMPORTS,
    UNNAMED,
    World,
    claim,
    device,
    key_of,
    pod,
    result,
    selector,
    slice_,
    user,
)

NODE = {"metadata": {"labels": {"zone": "a"}}}


class Story(World):
    """A world with short ways to write what a control plane writes."""

    def publish(self, pool, *devices, after=1, **spec):
        return self.put(key_of("resourceslices", pool), slice_(pool, *devices, **spec), after=after)

    def claim(self, name, *requests, **options):
        key = key_of("resourceclaims", name)
        after = options.pop("after", 1)
        self.put(key, claim(*requests, **options), after=after)
        return key

    def allocate(self, name, *results, node=None, after=1, **options):
        """Allocate a claim, made when it is not there."""
        key = key_of("resourceclaims", name)
        if key not in self.objects:
            self.claim(name, {"name": "r", "exactly": {"count": len(results)}}, after=0)
        tree, write = self.change(key, after=after, **options)
        tree["status"]["allocation"] = {"devices": {"results": list(results)}}
        if node is not None:
            tree["status"]["allocation"]["nodeSelector"] = node
        return write()

    def free(self, name, after=1):
        tree, write = self.change(key_of("resourceclaims", name), after=after)
        tree["status"] = {}
        return write()

    def reserve(self, name, *users, after=1):
        tree, write = self.change(key_of("resourceclaims", name), after=after)
        tree["status"]["reservedFor"] = list(users)
        return write()

    def pod(self, name, *claims, after=1, **options):
        return self.put(key_of("pods", name), pod(*claims, **options), after=after)

    def uid(self, name):
        return self.objects[key_of("pods", name)]["metadata"]["uid"]

    def line(self, revision, version, seconds=0.01, request_id="r"):
        """Makes an event the line of an audit log with a version, of a request so long ago."""
        event = self.events[revision - 1]
        losses = () if event.stamp.origin is None else event.stamp.origin.losses
        time = event.stamp.time
        origin = Origin(
            source="made",
            losses=losses,
            resource_version=str(version),
            asked=Instant(time - int(seconds * SECOND)),
            answered=time,
        )
        stamp = replace(event.stamp, origin=origin, request_id=request_id)
        self.events[revision - 1] = replace(event, stamp=stamp)
        return revision

    def derived(self, revision):
        """Makes an event the state that an import works out from the last one and a patch."""
        event = self.events[revision - 1]
        origin = Origin(source="made", quality="reconstructed")
        self.events[revision - 1] = replace(event, stamp=replace(event.stamp, origin=origin))
        return revision

    def status_for(self, name):
        """The status of a claim that has device a of pool p, and is reserved for a pod."""
        return {
            "allocation": {"devices": {"results": [result("p", "a")]}},
            "reservedFor": [user(name, self.uid(name))],
        }

    def other(self, after=0):
        return self.put(key_of("nodes", "elsewhere"), {"at": self.revision}, after=after)

    def found(self, lacking=frozenset(), *, stops=False):
        """Rule, kind, names of the objects, from and until of everything that was broken."""
        watch = InvariantWatch(placements.Switches(stops=stops), lacking)
        for event in self.events:
            watch.note(event)
        return [
            (
                each.rule,
                each.kind.value,
                ",".join(key.name for key in each.objects),
                each.begin.revision,
                None if each.end is None else each.end.revision,
            )
            for each in watch.violations()
        ]


def two_claims_of_one_device(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.allocate("y", result("p", "a"))
    story.other()
    end = story.free("y", after=6)
    return [("device-in-one-claim", "broken", "x,y", begin, end)]


def three_claims_of_one_device(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.allocate("y", result("p", "a"))
    story.allocate("z", result("p", "a"))
    story.free("x", after=6)
    end = story.free("y", after=6)
    return [("device-in-one-claim", "broken", "x,y,z", begin, end)]


def two_claims_of_one_device_for_no_other_write(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.other()
    begin = story.allocate("y", result("p", "a"), after=0)
    end = story.free("x", after=0)
    story.other()
    return [("device-in-one-claim", "broken", "x,y", begin, end)]


def one_device_twice_in_a_claim(story):
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "a"), result("p", "a"))
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return [("device-in-one-claim", "broken", "x", begin, end)]


def holders_change_while_a_device_is_given_twice(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.allocate("y", result("p", "a"))
    story.allocate("z", result("p", "a"))
    story.free("x")
    end = story.free("z")
    return [("device-in-one-claim", "broken", "x,y,z", begin, end)]


def driver_stops_sharing_a_device_in_use(story):
    story.publish("p", device("a", shared=True))
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "a"))
    begin = story.publish("p", device("a"))
    end = story.publish("p", device("a", shared=True))
    return [("device-in-one-claim", "outside", "x,y", begin, end)]


def admin_access_uses_nothing(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.claim("y", {"name": "r", "exactly": {"adminAccess": True}})
    story.allocate("y", result("p", "a", adminAccess=True))
    return []


def counters_overdrawn_by_an_allocation(story):
    parts = [device(name, consumes={"units": "4"}) for name in "abc"]
    story.publish("p", *parts, counters={"units": "10"})
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    begin = story.allocate("z", result("p", "c"))
    story.other()
    end = story.remove(key_of("resourceclaims", "x"), after=6)
    return [("counters-not-overdrawn", "broken", "x,y,z", begin, end)]


def counters_shrink_beneath_allocations(story):
    parts = [device(name, consumes={"units": "4"}) for name in "ab"]
    story.publish("p", *parts, counters={"units": "8"})
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    begin = story.publish("p", *parts, counters={"units": "7500m"})
    end = story.publish("p", *parts, counters={"units": "8"})
    return [("counters-not-overdrawn", "outside", "x,y", begin, end)]


def an_allocation_on_top_of_a_shrunken_pool(story):
    parts = [device(name, consumes={"units": "4"}) for name in "abc"]
    story.publish("p", *parts, counters={"units": "8"})
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    begin = story.publish("p", *parts, counters={"units": "6"})
    worse = story.allocate("z", result("p", "c"))
    end = story.publish("p", *parts, counters={"units": "12"})
    return [
        ("counters-not-overdrawn", "outside", "x,y", begin, worse),
        ("counters-not-overdrawn", "broken", "x,y,z", worse, end),
    ]


def less_is_published_before_an_allocation(story, before, less, chosen, after):
    """A claim gets a result some seconds after a write of its pool, which may be unseen as yet.

    Another one has a result already.
    """
    story.publish("p", *before[0], **before[1])
    story.allocate("x", chosen("a", 1))
    story.publish("p", *less[0], **less[1])
    begin = story.allocate("y", chosen("b", 2), after=after)
    return begin, story.publish("p", *before[0], **before[1])


def parts_of(units, *, draw="4"):
    return [device(name, consumes={"units": draw}) for name in "ab"], {"counters": {"units": units}}


def plain(name, _):
    return result("p", name)


def share(_, number):
    return result("p", "a", shareID=str(number), consumedCapacity={"memory": "5"})


def sharing(**options):
    return [device("a", **options)], {}


def counters_shrink_just_before_an_allocation(story):
    times = less_is_published_before_an_allocation(story, parts_of("8"), parts_of("6"), plain, 3)
    return [("counters-not-overdrawn", "unsure", "x,y", *times)]


def counters_shrink_long_before_an_allocation(story):
    times = less_is_published_before_an_allocation(story, parts_of("8"), parts_of("6"), plain, 60)
    return [("counters-not-overdrawn", "broken", "x,y", *times)]


def a_device_draws_more_just_before_it_is_allocated(story):
    more = parts_of("8", draw="5")
    begin, end = less_is_published_before_an_allocation(story, parts_of("8"), more, plain, 3)
    return [("counters-not-overdrawn", "unsure", "x,y", begin, end)]


def an_incomplete_pool_gave_nothing_before(story):
    """Parity: allocator.md 2.4: the devices came before the counters that they draw."""
    devices, _ = parts_of("6")
    story.put(key_of("resourceslices", "p-2"), slice_("p", *devices, count=2), after=1)
    story.put(key_of("resourceslices", "p"), slice_("p", counters={"units": "6"}, count=2), after=1)
    story.allocate("x", result("p", "a"))
    begin = story.allocate("y", result("p", "b"))
    return [("counters-not-overdrawn", "broken", "x,y", begin, None)]


def capacity_shrinks_just_before_an_allocation(story):
    before, less = (sharing(shared=True, capacity={"memory": amount}) for amount in ("10", "9"))
    begin, end = less_is_published_before_an_allocation(story, before, less, share, 3)
    return [("consumed-within-capacity", "unsure", "x,y", begin, end)]


def capacity_shrinks_long_before_an_allocation(story):
    before, less = (sharing(shared=True, capacity={"memory": amount}) for amount in ("10", "9"))
    begin, end = less_is_published_before_an_allocation(story, before, less, share, 60)
    return [("consumed-within-capacity", "broken", "x,y", begin, end)]


def a_patch_takes_capacity_away_just_before_an_allocation(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    story.allocate("x", share("a", 1))
    change = {"capacity": {f"{DRIVER}/memory": {"value": "9"}}, "filter": {"pool": "p"}}
    key = key_of("resourceslicepatches", "less")
    story.put(key, {"spec": {"devices": change}}, after=1)
    begin = story.allocate("y", share("a", 2), after=3)
    end = story.remove(key, after=1)
    return [("consumed-within-capacity", "unsure", "x,y", begin, end)]


def a_device_is_shared_no_more_just_before_an_allocation(story):
    before, less = sharing(shared=True), sharing()
    story.publish("p", *before[0])
    story.publish("p", *less[0])
    begin = story.allocate("x", result("p", "a", shareID="1"), after=3)
    return [("share-of-shared-device", "unsure", "x", begin, None)]


def a_device_is_shared_no_more_long_before_an_allocation(story):
    before, less = sharing(shared=True), sharing()
    story.publish("p", *before[0])
    story.publish("p", *less[0])
    begin = story.allocate("x", result("p", "a", shareID="1"), after=60)
    return [("share-of-shared-device", "broken", "x", begin, None)]


def moved_to_another_numa_node(story, after):
    here, there = ({"numa": {"int": node}} for node in (0, 1))
    story.publish("p", device("a", attributes=here), device("b", attributes=here))
    request = {"name": "r", "exactly": {"count": 2}}
    story.claim("x", request, constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
    story.publish("p", device("a", attributes=here), device("b", attributes=there))
    return story.allocate("x", result("p", "a"), result("p", "b"), after=after)


def an_attribute_changes_just_before_an_allocation(story):
    return [("constraint-holds", "unsure", "x", moved_to_another_numa_node(story, 3), None)]


def an_attribute_changes_long_before_an_allocation(story):
    return [("constraint-holds", "broken", "x", moved_to_another_numa_node(story, 60), None)]


def shares_of_a_device_draw_its_counters_once(story):
    story.publish("p", device("a", consumes={"units": "6"}, shared=True), counters={"units": "10"})
    story.allocate("x", result("p", "a", shareID="1"))
    story.allocate("y", result("p", "a", shareID="2"))
    return []


def one_share_is_given_to_two_claims(story):
    """Parity: allocator.md 8.3: each share has an identifier of its own."""
    story.publish("p", device("a", shared=True))
    story.allocate("x", result("p", "a", shareID="1"))
    story.allocate("y", result("p", "a", shareID="2"))
    begin = story.allocate("z", result("p", "a", shareID="2"))
    return [("device-in-one-claim", "broken", "x,y,z", begin, None)]


def a_new_generation_has_its_own_counters(story):
    parts = [device(name, consumes={"units": "4"}) for name in "ab"]
    story.publish("p", *parts, counters={"units": "8"})
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    key = key_of("resourceslices", "p-2")
    begin = story.put(key, slice_("p", generation=2, counters={"units": "4"}), after=1)
    return [
        ("allocated-device-published", "outside", "x", begin, None),
        ("allocated-device-published", "outside", "y", begin, None),
    ]


def capacity_consumed_twice(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10Gi"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6Gi"}))
    more = {"shareID": "2", "consumedCapacity": {"memory": "4294967297"}}
    begin = story.allocate("y", result("p", "a", **more))
    end = story.free("x")
    return [("consumed-within-capacity", "broken", "x,y", begin, end)]


def capacity_consumed_to_the_last(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10Gi"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6Gi"}))
    more = {"shareID": "2", "consumedCapacity": {"memory": "4294967296"}}
    story.allocate("y", result("p", "a", **more))
    return []


def a_patch_takes_capacity_away(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6"}))
    change = {"capacity": {f"{DRIVER}/memory": {"value": "5"}}, "filter": {"pool": "p"}}
    key = key_of("resourceslicepatches", "less")
    begin = story.put(key, {"spec": {"devices": change}}, after=1)
    end = story.remove(key, after=1)
    return [("consumed-within-capacity", "outside", "x", begin, end)]


def a_patch_for_another_driver_takes_nothing_away(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6"}))
    chosen = {"driver": "nic.example.com", "pool": "p", "device": "a"}
    change = {"capacity": {f"{DRIVER}/memory": {"value": "5"}}, "filter": chosen}
    story.put(key_of("resourceslicepatches", "less"), {"spec": {"devices": change}}, after=1)
    return []


def a_patch_that_is_older_within_a_second_stays_so_when_it_changes(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    made = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    for name, amount, labels in (("z", "8", {}), ("a", "5", {}), ("z", "8", {"seen": "yes"})):
        change = {"capacity": {f"{DRIVER}/memory": {"value": amount}}, "filter": {"pool": "p"}}
        tree = {"metadata": {**made, "labels": labels}, "spec": {"devices": change}}
        story.put(key_of("resourceslicepatches", name), tree, after=1)
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6"}))
    return []


def two_patches(story, priorities):
    """Patches that leave 8 and then 5 of the memory of a device, of which a claim has 6."""
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6"}))
    for amount, priority in zip("85", priorities, strict=True):
        change = {"capacity": {f"{DRIVER}/memory": {"value": amount}}, "priority": priority}
        key = key_of("resourceslicepatches", f"to-{amount}")
        last = story.put(key, {"spec": {"devices": change}}, after=1)
    return last


def a_patch_without_priority_is_one_of_priority_zero(story):
    two_patches(story, (None, 0))
    return []


def a_patch_of_no_priority_decides_over_one_below_zero(story):
    two_patches(story, (None, -1))
    return []


def a_patch_that_says_it_was_made_earlier_decides(story):
    story.publish("p", device("a", shared=True, capacity={"memory": "10"}))
    story.allocate("x", result("p", "a", shareID="1", consumedCapacity={"memory": "6"}))
    for amount, second in (("8", 5), ("5", 1)):
        change = {"capacity": {f"{DRIVER}/memory": {"value": amount}}}
        made = {"creationTimestamp": f"2026-01-01T00:00:0{second}Z"}
        key = key_of("resourceslicepatches", f"to-{amount}")
        begin = story.put(key, {"metadata": made, "spec": {"devices": change}}, after=1)
    return [("consumed-within-capacity", "outside", "x", begin, None)]


def a_patch_of_higher_priority_decides(story):
    begin = two_patches(story, (1, 2))
    return [("consumed-within-capacity", "outside", "x", begin, None)]


def a_patch_of_lower_priority_does_not_decide(story):
    two_patches(story, (2, 1))
    return []


def a_device_that_never_was(story):
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"))
    end = story.free("x")
    return [("allocated-device-existed", "broken", "x", begin, end)]


def a_device_that_had_just_gone(story):
    story.publish("p", device("a"), device("b"))
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"), after=3)
    return [
        ("allocated-device-existed", "unsure", "x", begin, None),
        ("allocated-device-published", "outside", "x", begin, None),
    ]


def a_device_that_had_long_gone(story):
    story.publish("p", device("a"), device("b"))
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"), after=60)
    return [
        ("allocated-device-existed", "broken", "x", begin, None),
        ("allocated-device-published", "outside", "x", begin, None),
    ]


def a_device_that_goes_later(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceslices", "p"), after=1)
    end = story.publish("p", device("a"))
    return [("allocated-device-published", "outside", "x", begin, end)]


def a_pool_that_shrinks_beneath_allocations(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    story.other()
    begin = story.publish("p", device("a"), generation=2)
    end = story.free("y", after=24)
    return [("allocated-device-published", "outside", "y", begin, end)]


def a_driver_that_writes_its_slices_one_by_one(story):
    """Until all slices of the new generation are there, the old ones count."""
    for name in "ab":
        spec = slice_("p", device(name), count=2)
        story.put(key_of("resourceslices", f"p-{name}"), spec, after=1)
    story.allocate("x", result("p", "b"))
    for name in "ab":
        spec = slice_("p", device(name), count=2, generation=2)
        story.put(key_of("resourceslices", f"p-{name}"), spec, after=1)
    return []


def no_slices_recorded(story):
    begin = story.allocate("x", result("p", "a"))
    return [("allocated-device-existed", "unsure", "x", begin, None)]


def another_claim_of_the_name_shows_with_the_same_devices(story):
    """Its requests are judged anew: that the devices are the same says nothing about them."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    key = key_of("resourceclaims", "x")
    more = claim({"name": "r", "exactly": {"count": 2}})
    allocated = {**more, "status": story.objects[key]["status"]}
    begin = story.put(key, allocated, after=1, uid="another")
    return [("request-satisfied", "broken", "x", begin, None)]


def allocation_without_finalizer(story):
    story.publish("p", device("a"))
    story.claim("x", finalizers=())
    begin = story.allocate("x", result("p", "a"))
    end = story.free("x")
    return [("allocation-has-finalizer", "broken", "x", begin, end)]


def finalizer_removed_for_long(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["metadata"]["finalizers"] = []
    begin = write()
    end = story.free("x", after=60)
    return [("allocation-has-finalizer", "late", "x", begin, end)]


def finalizer_removed_just_before_the_claim_is(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["metadata"]["finalizers"] = []
    write()
    story.remove(key_of("resourceclaims", "x"), after=1)
    return []


def reservation_without_allocation(story):
    story.pod("q", "x")
    story.claim("x")
    begin = story.reserve("x", user("q", story.uid("q")))
    end = story.reserve("x")
    return [("reservation-has-allocation", "broken", "x", begin, end)]


def too_many_reservations(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    users = [{"resource": "others", "name": str(n), "uid": str(n)} for n in range(257)]
    story.reserve("x", *users[:256])
    begin = story.reserve("x", *users)
    end = story.reserve("x")
    return [("reservations-within-limit", "broken", "x", begin, end)]


def reserved_for_a_pod_that_is_gone(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    begin = story.remove(key_of("pods", "q"), after=1)
    end = story.reserve("x", after=61)
    return [("reservation-names-pod", "late", "q,x", begin, end)]


def reserved_for_a_ghost_while_the_first_pod_is_gone(story):
    """The first pod was there when the claim was reserved for it, so that came not too late."""
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    gone = story.remove(key_of("pods", "q"), after=1)
    begin = story.reserve("x", user("q", "u2"), user("ghost", "g"), after=61)
    return [
        ("reservation-names-pod", "late", "q,x", gone, None),
        ("reservation-names-pod", "broken", "ghost,x", begin, None),
    ]


def reserved_for_another_pod_of_that_name(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    begin = story.put(key_of("pods", "q"), pod("x"), uid="another", after=1)
    end = story.reserve("x", after=61)
    return [("reservation-names-pod", "late", "q,x", begin, end)]


def reserved_for_a_pod_that_has_just_gone(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    story.remove(key_of("pods", "q"), after=1)
    story.reserve("x", after=59)
    return []


def reserved_for_a_pod_that_does_not_name_it(story):
    story.publish("p", device("a"))
    story.pod("q")
    story.allocate("x", result("p", "a"))
    begin = story.reserve("x", user("q", story.uid("q")))
    end = story.reserve("x")
    return [("reserved-pod-names-claim", "broken", "q,x", begin, end)]


def reserved_for_the_pod_that_it_was_made_for(story):
    """A claim for extended resources is reserved before the pod's status names it."""
    story.publish("p", device("a"))
    story.pod("q")
    story.claim("x")
    tree, write = story.change(key_of("resourceclaims", "x"))
    tree["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "q", "uid": story.uid("q")}]
    write()
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    return []


def a_reserved_pod_stops_naming_the_claim(story):
    story.publish("p", device("a"))
    tree = {"spec": {"resourceClaims": [{"name": "c"}]}, "status": {}}
    tree["status"]["resourceClaimStatuses"] = [{"name": "c", "resourceClaimName": "x"}]
    story.put(key_of("pods", "q"), tree)
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["status"] = {}
    begin = write()
    return [("reserved-pod-names-claim", "broken", "q,x", begin, None)]


def reserved_for_a_pod_that_never_was(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    begin = story.reserve("x", user("q", story.uid("q")), user("ghost", "g"))
    end = story.reserve("x", user("q", story.uid("q")), after=1)
    return [("reservation-names-pod", "broken", "ghost,x", begin, end)]


def reserved_for_a_pod_that_had_long_gone(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    uid = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.remove(key_of("pods", "q"), after=1)
    begin = story.reserve("x", user("q", uid), after=16)
    end = story.reserve("x", after=1)
    return [("reservation-names-pod", "broken", "q,x", begin, end)]


def reserved_for_a_pod_that_had_just_gone(story):
    """A scheduler may not have seen yet that the pod went."""
    story.publish("p", device("a"))
    story.pod("q", "x")
    uid = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.remove(key_of("pods", "q"), after=1)
    story.reserve("x", user("q", uid), after=15)
    story.reserve("x", after=1)
    return []


def reserved_for_a_pod_that_had_just_gone_and_did_not_name_it(story):
    story.publish("p", device("a"))
    story.pod("q")
    uid = story.uid("q")
    story.allocate("x", result("p", "a"))
    story.remove(key_of("pods", "q"), after=1)
    begin = story.reserve("x", user("q", uid), after=1)
    end = story.reserve("x", after=1)
    return [("reservation-names-pod", "broken", "q,x", begin, end)]


def reserved_unseen_for_a_pod_that_is_gone(story):
    """Several changes were recorded as one: the pod may have been there."""
    story.publish("p", device("a"))
    story.pod("other")
    story.allocate("x", result("p", "a"))
    tree, write = story.change(key_of("resourceclaims", "x"), losses=("collapsed",))
    tree["status"]["reservedFor"] = [user("q", "gone")]
    write()
    story.reserve("x", after=30)
    return []


def the_claim_controller_removes_the_finalizer_first(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = unprotected(story, "x", by=CONTROLLER)
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return [("finalizer-outlasts-allocation", "broken", "x", begin, end)]


def the_claim_controller_ends_an_allocated_claim(story):
    """The fault lasts until a claim of that name is made again."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceclaims", "x"), by=CONTROLLER)
    story.other()
    end = revision_of(story, story.claim("x"))
    return [("finalizer-outlasts-allocation", "broken", "x", begin, end)]


def a_claim_that_a_pod_names_is_made_again_after_it_ended_allocated(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceclaims", "x"), by="system:kube-controller-manager")
    end = revision_of(story, story.claim("x"))
    return [("finalizer-outlasts-allocation", "broken", "x", begin, end)]


def a_request_without_its_answer_ends_an_allocated_claim(story):
    """The answer to another one may have shown the claim allocated after it was not any more."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceclaims", "x"), by=CONTROLLER)
    event = story.events[begin - 1]
    origin = Origin(source="made", quality="partial", losses=("no_rv", "no_uid"))
    story.events[begin - 1] = replace(event, stamp=replace(event.stamp, origin=origin))
    return [("finalizer-outlasts-allocation", "unsure", "x", begin, None)]


def whoever_names_claims_for_pods_ends_an_allocated_claim(story):
    story.publish("p", device("a"))
    generated(story, by="my-controller")
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceclaims", "x"), by="my-controller")
    return [("finalizer-outlasts-allocation", "broken", "x", begin, None)]


def somebody_removes_the_finalizer_of_an_allocated_claim_for_a_moment(story):
    """Users may do that; the claim is deleted at once if it was being deleted."""
    story.publish("p", device("a"))
    generated(story, by="my-controller")
    story.allocate("x", result("p", "a"))
    unprotected(story, "x", by="alice")
    story.remove(key_of("resourceclaims", "x"), after=1)
    story.allocate("x", result("p", "a"))
    story.remove(key_of("resourceclaims", "x"), by="alice")
    return []


def nobody_is_named_who_ended_an_allocated_claim(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    begin = story.remove(key_of("resourceclaims", "x"), by=UNNAMED)
    return [("finalizer-outlasts-allocation", "unsure", "x", begin, None)]


def a_driver_reports_about_a_device_that_the_claim_does_not_have(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    report(story, "a")
    begin = report(story, "b")
    story.other()
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return [("reported-device-allocated", "broken", "x", begin, end)]


def a_driver_reports_about_a_claim_of_which_a_part_was_recorded(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    report(story, "b", losses=("truncated_body",))
    return []


def report(story, name, **options):
    """A driver reports about a device; returns the revision."""
    tree, write = story.change(key_of("resourceclaims", "x"), **options)
    tree["status"]["devices"] = [{"driver": DRIVER, "pool": "p", "device": name}]
    return write()


def allocated_claims_of_which_changes_were_not_seen(story):
    """Each may have been deallocated before."""
    story.publish("p", device("a"))
    for losses in (("collapsed",), ("synthetic_delete", "no_actor")):
        story.allocate("x", result("p", "a"))
        story.remove(key_of("resourceclaims", "x"), by=CONTROLLER, losses=losses)
    story.allocate("x", result("p", "a"))
    story.gap(key_of("resourceclaims", "x"))
    story.remove(key_of("resourceclaims", "x"), by=CONTROLLER)
    return []


def an_allocated_claim_without_finalizer_ends(story):
    story.publish("p", device("a"))
    story.claim("x", finalizers=())
    begin = story.allocate("x", result("p", "a"))
    end = story.remove(key_of("resourceclaims", "x"), by=CONTROLLER)
    return [("allocation-has-finalizer", "broken", "x", begin, end)]


def unprotected(story, name, **options):
    tree, write = story.change(key_of("resourceclaims", name), after=1, **options)
    tree["metadata"]["finalizers"] = []
    return write()


def generated(story, by):
    """A pod whose claim a controller made and named."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    key = key_of("pods", "q")
    story.put(key, {"spec": {"resourceClaims": [entry]}, "status": {}})
    tree, write = story.change(key, by=by)
    tree["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "x"}]
    write()


def revision_of(story, key):
    """The last revision of an object."""
    return next(event.revision for event in reversed(story.events) if event.key == key)


def terminating(story, name, **options):
    tree, write = story.change(key_of("resourceclaims", name), after=1, **options)
    tree["metadata"].update(GOING)
    return tree, write


def a_terminating_claim_is_allocated(story):
    story.publish("p", device("a"))
    story.claim("x")
    _, write = terminating(story, "x")
    write()
    begin = story.allocate("x", result("p", "a"))
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return [("terminating-claim-unused", "broken", "x", begin, end)]


def a_terminating_claim_is_reserved(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    _, write = terminating(story, "x")
    write()
    begin = story.reserve("x", user("q", story.uid("q")))
    return [("terminating-claim-unused", "broken", "x", begin, None)]


def a_claim_allocated_and_deleted_in_one_write(story):
    story.publish("p", device("a"))
    story.claim("x")
    tree, write = terminating(story, "x")
    tree["status"]["allocation"] = {"devices": {"results": [result("p", "a")]}}
    begin = write()
    return [("terminating-claim-unused", "broken", "x", begin, None)]


def a_claim_allocated_and_deleted_unseen(story):
    story.publish("p", device("a"))
    story.claim("x")
    tree, write = terminating(story, "x", losses=("collapsed",))
    tree["status"]["allocation"] = {"devices": {"results": [result("p", "a")]}}
    write()
    return []


def a_terminating_claim_gives_its_devices_back(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    _, write = terminating(story, "x")
    write()
    story.reserve("x")
    story.free("x")
    return []


def the_spec_of_a_claim_changes(story):
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    begin = write()
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return [("immutable-field-unchanged", "broken", "x", begin, end)]


def a_claim_that_is_made_anew_may_ask_for_more(story):
    story.claim("x", "r")
    story.put(key_of("resourceclaims", "x"), claim("r", "s"), uid="another")
    return []


def empty_parts_of_a_spec_are_left_out(story):
    story.claim("x", "r")
    tree, write = story.change(key_of("resourceclaims", "x"))
    tree["spec"]["devices"] |= {"constraints": [], "config": None}
    write()
    return []


def a_spec_that_was_recorded_in_part(story):
    story.put(key_of("resourceclaims", "x"), claim("r", "s"), losses=("unknown_patch",))
    tree, write = story.change(key_of("resourceclaims", "x"))
    tree["spec"]["devices"]["requests"].pop()
    write()
    return []


def the_spec_of_a_template_changes(story):
    key = key_of("resourceclaimtemplates", "t")
    story.put(key, {"spec": {"spec": {"devices": {}}}})
    begin = story.put(key, {"spec": {"spec": {"devices": {"requests": [{"name": "r"}]}}}}, after=1)
    end = story.remove(key, after=1)
    return [("immutable-field-unchanged", "broken", "t", begin, end)]


def a_slice_moves_to_another_pool(story):
    key = key_of("resourceslices", "s")
    story.put(key, slice_("p", device("a")), after=1)
    begin = story.put(key, slice_("o", device("a")), after=1)
    return [("immutable-field-unchanged", "broken", "s", begin, None)]


def a_slice_moves_to_another_driver_and_node(story):
    key = key_of("resourceslices", "s")
    story.put(key, slice_("p", device("a")), after=1)
    tree = slice_("p", device("a"), driver="other.example.com")
    del tree["spec"]["allNodes"]
    tree["spec"]["nodeName"] = "n"
    begin = story.put(key, tree, after=1)
    return [("immutable-field-unchanged", "broken", "s", begin, None)] * 2


def ruling(effect, **selector):
    return {"spec": {"taint": {"key": "k", "effect": effect}, "deviceSelector": selector}}


def a_rule_changes_with_the_same_generation(story):
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule"))
    begin = story.put(key, ruling("NoExecute"), after=1, generation=1)
    return [("immutable-field-unchanged", "broken", "t", begin, None)]


def a_slice_changes_with_the_same_generation_beside_a_lost_line(story):
    key = key_of("resourceslices", "s")
    story.put(key, slice_("p", device("a")), after=1)
    story.gap(key, "gap")
    begin = story.put(key, slice_("p", device("b")), after=1, generation=1)
    return [("immutable-field-unchanged", "broken", "s", begin, None)]


def a_rule_shows_another_spec_when_it_is_removed(story):
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule"))
    story.objects[key]["spec"]["taint"]["effect"] = "NoExecute"
    begin = story.remove(key, after=1)
    end = story.put(key, ruling("NoExecute"), after=1)
    return [("immutable-field-unchanged", "broken", "t", begin, end)]


def the_generation_of_a_rule_falls(story):
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule"), generation=3)
    begin = story.put(key, ruling("NoExecute"), after=1, generation=2)
    return [("immutable-field-unchanged", "broken", "t", begin, None)]


def an_entry_of_a_pod_names_another_claim(story):
    story.pod("q", "x")
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["spec"]["resourceClaims"][0]["resourceClaimName"] = "y"
    return [("immutable-field-unchanged", "broken", "q", write(), None)]


def an_entry_of_a_pod_has_a_field_that_it_had_not(story):
    """A server of another release may know it, and the gap may hide that one took over."""
    story.pod("q", "x")
    story.gap(key_of("pods", "q"), "gap")
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["spec"]["resourceClaims"][0]["unknown"] = "y"
    return [("immutable-field-unchanged", "unsure", "q", write(), None)]


def selecting(expression):
    return {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


def a_class_changes_with_the_same_generation(story):
    key = key_of("deviceclasses", "c")
    story.put(key, selecting("true"))
    begin = story.put(key, selecting("false"), after=1, generation=1)
    end = story.remove(key, after=1)
    return [("immutable-field-unchanged", "broken", "c", begin, end)]


def the_generation_of_a_class_falls_beside_a_lost_line(story):
    key = key_of("deviceclasses", "c")
    story.put(key, selecting("true"), generation=3)
    story.gap(key, "gap")
    begin = story.put(key, selecting("false"), after=1, generation=2)
    return [("immutable-field-unchanged", "broken", "c", begin, None)]


def a_class_shows_another_spec_when_it_is_removed(story):
    key = key_of("deviceclasses", "c")
    story.put(key, selecting("true"))
    story.objects[key]["spec"] = selecting("false")["spec"]
    begin = story.remove(key, after=1)
    end = story.put(key, selecting("false"), after=1)
    return [("immutable-field-unchanged", "broken", "c", begin, end)]


def a_class_that_changes_or_is_made_anew(story):
    key = key_of("deviceclasses", "c")
    story.put(key, selecting("true"))
    story.put(key, {**selecting("true"), "metadata": {"labels": {"a": "b"}}}, after=1)
    story.put(key, selecting("false"), after=1)
    story.put(key, selecting("true"), after=1, uid="another")
    return []


def a_store_is_restored_with_an_older_generation(story):
    """The gap of everything tells of it: the store had another spec before."""
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule"), generation=3)
    story.gap()
    story.put(key, ruling("NoExecute"), after=1, generation=3)
    story.gap()
    story.put(key, ruling("NoSchedule"), after=1, generation=2)
    return []


def a_server_of_another_release_leaves_a_field_out(story):
    """Only what both states have is compared: an older server does not know the other one."""
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule", driver="d", pool="p"))
    story.put(key, ruling("NoSchedule", driver="d"), generation=1)
    return []


def a_rule_of_which_a_part_was_recorded(story):
    key = key_of("devicetaintrules", "t")
    story.put(key, ruling("NoSchedule"), losses=("unknown_patch",))
    story.put(key, ruling("NoExecute"), generation=1)
    return []


def moved(story, to, **options):
    tree, write = story.change(key_of("pods", "q"), after=1, **options)
    tree["spec"]["nodeName"] = to
    return write()


def a_pod_bound_a_second_time(story):
    story.pod("q", node="n")
    begin = moved(story, "m")
    again = moved(story, "n")
    return [
        ("immutable-field-unchanged", "broken", "q", begin, None),
        ("immutable-field-unchanged", "broken", "q", again, None),
    ]


def a_pod_bound_a_second_time_by_a_guess(story):
    """The pod of the binding is not known, so it may have been another one of that name."""
    story.pod("q", node="n")
    begin = moved(story, "m", losses=("no_rv", "no_uid"))
    return [("immutable-field-unchanged", "unsure", "q", begin, None)]


def a_pod_loses_its_node(story):
    story.pod("q", node="n")
    begin = moved(story, "")
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def a_pod_comes_back_from_its_deletion(story):
    story.pod("q")
    tree, write = story.change(key_of("pods", "q"))
    tree["metadata"].update(GOING)
    write()
    tree, write = story.change(key_of("pods", "q"), after=1)
    del tree["metadata"]["deletionTimestamp"]
    begin = write()
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def a_pod_gets_other_claims(story):
    story.pod("q", "x")
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["resourceClaims"] = pod("y")["spec"]["resourceClaims"]
    begin = write()
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def an_allocation_changed_in_place(story):
    """The same devices, and another moment of the allocation."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["status"]["allocation"]["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    begin = write()
    end = story.free("x")
    return [("allocation-unchanged", "broken", "x", begin, end)]


MARKED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByDeviceTaintManager"}
EVICTING = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
OTHER_RULE = {"spec": {"deviceSelector": {"pool": "other"}, "taint": EVICTING}}


def evicted(story, *, taints=(), tolerations=(), after=0):
    """A bound pod with a device is marked by the device taint manager."""
    tolerated = {"tolerations": list(tolerations)} if tolerations else {}
    story.put(key_of("devicetaintrules", "other"), OTHER_RULE)
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.claim("x", {"name": "r", "exactly": tolerated})
    story.allocate("x", result("p", "a", **tolerated))
    story.reserve("x", user("q", story.uid("q")))
    moved(story, "n")
    if taints:
        story.publish("p", device("a", taints=taints))
    return mark(story, after)


def mark(story, after=0):
    tree, write = story.change(key_of("pods", "q"), after=after)
    tree["status"]["conditions"] = [MARKED]
    return write()


def evicted_without_a_taint(story):
    begin = evicted(story)
    end = story.remove(key_of("pods", "q"), after=1)
    return [("eviction-has-taint", "broken", "q,x", begin, end)]


def evicted_for_a_taint(story):
    evicted(story, taints=[EVICTING])
    return []


def evicted_for_a_taint_of_another_key_than_is_tolerated(story):
    other = {"key": "other", "operator": "Exists", "effect": "NoExecute"}
    evicted(story, taints=[EVICTING], tolerations=[other])
    return []


def evicted_for_a_taint_that_does_not_evict(story):
    begin = evicted(story, taints=[{**EVICTING, "effect": "NoSchedule"}])
    return [("eviction-has-taint", "broken", "q,x", begin, None)]


def evicted_for_a_tolerated_taint(story):
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    begin = evicted(story, taints=[EVICTING], tolerations=[toleration])
    return [("eviction-has-taint", "broken", "q,x", begin, None)]


def evicted_before_its_time(story):
    """Five seconds have passed since the taint, and 3600 are tolerated."""
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    tolerations = [{**toleration, "tolerationSeconds": 3600}]
    begin = evicted(story, taints=[EVICTING], tolerations=tolerations)
    return [("eviction-has-taint", "broken", "q,x", begin, None)]


def evicted_at_its_time(story):
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    tolerations = [{**toleration, "tolerationSeconds": 60}]
    evicted(story, taints=[EVICTING], tolerations=tolerations, after=60)
    return []


def evicted_for_a_rule_that_has_just_gone(story):
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": EVICTING}}
    story.put(key_of("devicetaintrules", "t"), rule)
    tolerations = [{"key": "k", "operator": "Exists"}]
    story.claim("x", {"name": "r", "exactly": {"tolerations": tolerations}})
    story.allocate("x", result("p", "a", tolerations=tolerations))
    story.pod("q", "x")
    story.reserve("x", user("q", story.uid("q")))
    moved(story, "n")
    story.remove(key_of("devicetaintrules", "t"), after=1)
    mark(story, after=15)
    return []


@pytest.mark.parametrize(
    ("goes", "other_evicts", "evictors"),
    [
        ((), False, {("t", "", False)}),
        (("t",), False, {("t", "", True)}),
        (("t",), True, {("u", "", False)}),
        ((), True, {("t", "", False), ("u", "", False)}),
        (("slice",), True, {("t", "", False), ("u", "", False)}),
        (("t", "u", "slice"), True, {("t", "", True), ("u", "", True), ("", DRIVER, True)}),
        (("t", "u"), True, {("", DRIVER, False)}),
    ],
)
def test_taint_that_has_just_gone_evicts_only_where_none_is_there(goes, other_evicts, evictors):
    story = Story()
    taints = [EVICTING] if "slice" in goes or goes == ("t", "u") else []
    story.publish("p", device("a", taints=taints))
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": EVICTING}}
    for name in ("t", "u") if other_evicts else ("t",):
        story.put(key_of("devicetaintrules", name), rule)
    tolerations = [{"key": "k", "operator": "Exists"}]
    story.claim("x", {"name": "r", "exactly": {"tolerations": tolerations}})
    story.allocate("x", result("p", "a", tolerations=tolerations))
    story.pod("q", "x")
    story.reserve("x", user("q", story.uid("q")))
    moved(story, "n")
    for name in goes:
        if name == "slice":
            story.publish("p", device("a"), after=1)
        else:
            story.remove(key_of("devicetaintrules", name), after=1)
    revision = mark(story, after=1)
    watch = InvariantWatch()
    watch.follow(story.events)
    shown = {(each.rule, each.driver, each.is_over) for each in watch.evictors[revision]}
    assert shown == evictors


def evicted_for_a_slice_taint_that_had_long_gone(story):
    story.put(key_of("devicetaintrules", "other"), OTHER_RULE)
    story.publish("p", device("a", taints=[EVICTING]))
    story.pod("q", "x")
    story.claim("x", {"name": "r", "exactly": {"tolerations": [TOLERATION]}})
    story.allocate("x", result("p", "a", tolerations=[TOLERATION]))
    story.publish("p", device("a"))
    begin = mark(story, after=16)
    return [("eviction-has-taint", "broken", "q,x", begin, None)]


def evicted_where_no_rule_was_recorded(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    begin = mark(story)
    return [("eviction-has-taint", "unsure", "q,x", begin, None)]


def bound_before_its_claim_is_allocated(story):
    story.pod("q", "x")
    story.publish("p", device("a"))
    story.claim("x")
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    begin = write()
    story.allocate("x", result("p", "a"))
    end = story.reserve("x", user("q", story.uid("q")))
    return [("bound-pod-has-claims", "broken", "q,x", begin, end)]


def reservation_of_a_running_pod_removed(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    write()
    begin = story.reserve("x")
    tree, write = story.change(key_of("pods", "q"))
    tree["status"]["phase"] = "Succeeded"
    end = write()
    return [("bound-pod-has-claims", "broken", "q,x", begin, end)]


def a_pod_that_a_user_put_on_a_node(story):
    story.claim("x")
    begin = story.pod("q", "x", node="n")
    end = story.remove(key_of("pods", "q"), after=1)
    return [("bound-pod-has-claims", "outside", "q,x", begin, end)]


def bound_before_a_claim_was_made_from_its_template(story):
    entries = [
        {"name": "gpu", "resourceClaimTemplateName": "t"},
        {"name": "none", "resourceClaimTemplateName": "t"},
    ]
    # A status without a name says that the entry needs no claim.
    status = {"resourceClaimStatuses": [{"name": "none"}]}
    story.put(key_of("pods", "q"), {"spec": {"resourceClaims": entries}, "status": status})
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    begin = write()
    end = story.remove(key_of("pods", "q"), after=1)
    return [("bound-pod-claims-made", "broken", "q", begin, end)]


def a_recorded_pod_whose_status_was_not_recorded(story):
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    tree = {"spec": {"resourceClaims": entries}, "status": {}}
    story.put(key_of("pods", "q"), tree, losses=("no_rv",))
    tree, write = story.change(key_of("pods", "q"), losses=("no_rv",))
    tree["spec"]["nodeName"] = "n"
    write()
    return []


def bound(story, selects):
    story.put(key_of("nodes", "n"), NODE, after=1)
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"), node=selects)
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    return write()


def bound_to_another_node(story):
    begin = bound(story, selector(node="m"))
    end = story.remove(key_of("pods", "q"), after=1)
    return [("pod-on-allocated-node", "broken", "n,q,x", begin, end)]


def made_on_another_node(story):
    """Who makes a pod with a node has chosen the node."""
    story.put(key_of("nodes", "n"), NODE, after=1)
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"), node=selector(node="m"))
    begin = story.pod("q", "x", node="n")
    end = story.remove(key_of("pods", "q"), after=1)
    return [
        ("bound-pod-has-claims", "outside", "q,x", begin, end),
        ("pod-on-allocated-node", "outside", "n,q,x", begin, end),
    ]


def bound_to_a_node_of_another_zone(story):
    zone = {"key": "zone", "operator": "In", "values": ["b"]}
    begin = bound(story, selector(zone))
    return [("pod-on-allocated-node", "broken", "n,q,x", begin, None)]


def a_node_that_moves_to_another_zone_later(story):
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    bound(story, selector(zone))
    story.put(key_of("nodes", "n"), {"metadata": {"labels": {"zone": "b"}}}, after=1)
    return []


def an_allocation_exchanged(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    begin = story.allocate("x", result("p", "b"))
    end = story.free("x")
    return [("allocation-unchanged", "broken", "x", begin, end)]


def an_allocation_exchanged_unseen(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    begin = story.allocate("x", result("p", "b"), losses=("collapsed",))
    return [("allocation-unchanged", "unsure", "x", begin, None)]


def too_few_devices(story):
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 2}})
    begin = story.allocate("x", result("p", "a"))
    return [("request-satisfied", "broken", "x", begin, None)]


def first_seen(story, tree):
    story.publish("p", device("a"))
    tree["status"] = {"allocation": {"devices": {"results": [result("p", "a")]}}}
    return story.put(key_of("resourceclaims", "x"), tree)


def too_few_devices_in_a_claim_that_is_first_seen(story):
    begin = first_seen(story, claim({"name": "r", "exactly": {"count": 2}}))
    return [("request-satisfied", "broken", "x", begin, None)]


def requests_that_are_not_recorded(story):
    first_seen(story, claim() | {"spec": {}})
    return []


def too_many_devices_for_an_exact_count(story):
    story.publish("p", device("a"), device("b"))
    wanted = {"allocationMode": "ExactCount", "count": 1}
    story.claim("x", {"name": "r", "exactly": wanted})
    begin = story.allocate("x", result("p", "a"), result("p", "b"))
    return [("request-satisfied", "broken", "x", begin, None)]


def a_request_without_devices(story):
    story.publish("p", device("a"))
    story.claim("x", "r", "s")
    begin = story.allocate("x", result("p", "a"))
    return [("request-satisfied", "broken", "x", begin, None)]


def two_alternatives_at_once(story):
    story.publish("p", device("a"), device("b"))
    story.claim("x", {"name": "r", "firstAvailable": [{"name": "big"}, {"name": "small"}]})
    begin = story.allocate("x", result("p", "a", "r/big"), result("p", "b", "r/small"))
    return [("request-satisfied", "broken", "x", begin, None)]


def admin_access_that_nobody_asked_for(story):
    story.publish("p", device("a"))
    story.claim("x", "r")
    begin = story.allocate("x", result("p", "a", adminAccess=True))
    return [("request-satisfied", "broken", "x", begin, None)]


def numa(number):
    return {"numa": {"int": number}}


def constrained(story, kind, *attributes):
    devices = [device(name, attributes=each) for name, each in zip("abc", attributes, strict=False)]
    story.publish("p", *devices)
    request = {"name": "r", "exactly": {"count": len(devices)}}
    story.claim("x", request, constraints=[{kind: f"{DRIVER}/numa"}])
    return story.allocate("x", *(result("p", each["name"]) for each in devices))


def devices_that_do_not_match(story):
    begin = constrained(story, "matchAttribute", numa(1), numa(2))
    end = story.free("x")
    return [("constraint-holds", "broken", "x", begin, end)]


def devices_that_match_in_one_of_their_values(story):
    constrained(story, "matchAttribute", {"numa": {"ints": [1, 2]}}, {f"{DRIVER}/numa": {"int": 2}})
    return []


def devices_that_do_not_differ(story):
    begin = constrained(story, "distinctAttribute", numa(1), numa(2), numa(1))
    return [("constraint-holds", "broken", "x", begin, None)]


def devices_that_match_in_text_and_not_in_type(story):
    begin = constrained(
        story, "matchAttribute", {"numa": {"string": "1.0.0"}}, {"numa": {"version": "1.0.0"}}
    )
    return [("constraint-holds", "broken", "x", begin, None)]


def devices_that_match_and_one_without_the_attribute(story):
    begin = constrained(story, "matchAttribute", numa(1), numa(1), {})
    return [("constraint-holds", "broken", "x", begin, None)]


def devices_that_differ_in_type_alone(story):
    constrained(
        story, "distinctAttribute", {"numa": {"string": "1.0.0"}}, {"numa": {"version": "1.0.0"}}
    )
    return []


def devices_that_differ_after_one_without_the_attribute(story):
    constrained(story, "distinctAttribute", {}, numa(1), numa(2))
    return []


def devices_that_do_not_differ_after_one_without_the_attribute(story):
    begin = constrained(story, "distinctAttribute", {}, numa(1), numa(1))
    return [("constraint-holds", "broken", "x", begin, None)]


def devices_that_differ_before_one_without_the_attribute(story):
    begin = constrained(story, "distinctAttribute", numa(1), {})
    return [("constraint-holds", "broken", "x", begin, None)]


def a_share_of_a_device_for_one(story):
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "a", shareID="1"))
    return [("share-of-shared-device", "broken", "x", begin, None)]


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
TOLERATION = {"key": "k", "operator": "Exists"}


def tolerations_left_out(story):
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"tolerations": [TOLERATION]}})
    begin = story.allocate("x", result("p", "a"))
    return [("tolerations-copied", "broken", "x", begin, None)]


def a_toleration_of_none_in_a_claim_that_is_found(story):
    """Neither the claim's requests nor its allocation change, so its first state shows both."""
    story.publish("p", device("a"))
    found = result("p", "a", tolerations=[TOLERATION])
    status = {"allocation": {"devices": {"results": [found]}}}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {}}]}}
    tree = {"metadata": {"finalizers": [FINALIZER]}, "spec": spec, "status": status}
    begin = story.put(key_of("resourceclaims", "x"), tree)
    return [("tolerations-copied", "broken", "x", begin, None)]


def a_claim_that_is_found_with_the_uid_of_another_pod(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    other = user("r", story.uid("q"))
    status = {"allocation": {"devices": {"results": [result("p", "a")]}}, "reservedFor": [other]}
    spec = {"devices": {"requests": [{"name": "r", "exactly": {}}]}}
    tree = {"metadata": {"finalizers": [FINALIZER]}, "spec": spec, "status": status}
    begin = story.put(key_of("resourceclaims", "x"), tree)
    end = story.reserve("x")
    return [("reservation-names-pod", "broken", "q,x", begin, end)]


def a_toleration_copied_with_another_value(story):
    story.publish("p", device("a"))
    wanted, copied = ({"key": "k", "operator": "Equal", "value": each} for each in "vw")
    story.claim("x", {"name": "r", "exactly": {"tolerations": [wanted]}})
    begin = story.allocate("x", result("p", "a", tolerations=[copied]))
    return [("tolerations-copied", "broken", "x", begin, None)]


def a_tainted_device(story):
    story.publish("p", device("a", taints=[TAINT]))
    begin = story.allocate("x", result("p", "a"), after=20)
    end = story.free("x")
    return [("placement-respects-taints", "broken", "x", begin, end)]


def a_tolerated_taint(story):
    story.publish("p", device("a", taints=[TAINT]))
    story.claim("x", {"name": "r", "exactly": {"tolerations": [TOLERATION]}})
    story.allocate("x", result("p", "a", tolerations=[TOLERATION]), after=20)
    return []


def a_taint_of_a_moment_before(story):
    story.publish("p", device("a"))
    story.claim("x")
    story.publish("p", device("a", taints=[TAINT]))
    begin = story.allocate("x", result("p", "a"), after=2)
    return [("placement-respects-taints", "unsure", "x", begin, None)]


def a_taint_of_long_before(story):
    story.publish("p", device("a"))
    story.claim("x")
    story.publish("p", device("a", taints=[TAINT]))
    begin = story.allocate("x", result("p", "a"), after=20)
    return [("placement-respects-taints", "broken", "x", begin, None)]


def ruled(story, chosen):
    """A claim gets a device in spite of a rule that selects devices; the revision of that."""
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": chosen, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1)
    return story.allocate("x", result("p", "a"), after=2)


def a_rule_for_exactly_this_device(story):
    begin = ruled(story, {"driver": DRIVER, "pool": "p", "device": "a"})
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


def a_rule_for_devices_of_another_driver(story):
    ruled(story, {"driver": "nic.example.com", "pool": "p", "device": "a"})
    return []


def a_rule_for_devices_of_another_pool(story):
    ruled(story, {"driver": DRIVER, "pool": "q", "device": "a"})
    return []


def a_rule_for_another_device(story):
    ruled(story, {"driver": DRIVER, "pool": "p", "device": "b"})
    return []


def a_rule_that_a_list_shows_was_there_before_the_claim(story):
    """When it was made is not known, but the list is of what was there."""
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1, verb="baseline")
    begin = story.allocate("x", result("p", "a"))
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


def listed_rule(story, made):
    """A stream of rules begins with one that was made then, a moment before an allocation."""
    story.publish("p", device("a"))
    story.claim("x", {"name": "r", "exactly": {"count": 1}})
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": TAINT}}
    rule["metadata"] = {"creationTimestamp": made}
    story.put(key_of("devicetaintrules", "t"), rule, after=5, verb="baseline")
    return story.allocate("x", result("p", "a"))


def a_rule_that_a_list_shows_was_made_long_before_the_claim(story):
    begin = listed_rule(story, "2025-12-31T00:00:00Z")
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


def a_rule_that_a_list_shows_was_made_after_the_claim(story):
    begin = listed_rule(story, "2026-12-31T00:00:00Z")
    return [("placement-respects-taints", "unsure", "t,x", begin, None)]


def a_rule_that_was_there_before_the_claim(story):
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1)
    begin = story.allocate("x", result("p", "a"), after=2)
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


def a_rule_is_as_old_as_its_spec(story):
    """Labels that change between a choice and its write make no new rule of it."""
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1)
    story.claim("x", {"name": "r", "exactly": {"count": 1}}, after=20)
    labelled = {**rule, "metadata": {"labels": {"seen": "yes"}}}
    story.put(key_of("devicetaintrules", "t"), labelled, after=1)
    begin = story.allocate("x", result("p", "a"))
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


def a_rule_is_as_new_as_its_spec(story):
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": {"pool": "q"}, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1)
    story.claim("x", {"name": "r", "exactly": {"count": 1}}, after=20)
    moved_rule = {"spec": {**rule["spec"], "deviceSelector": {"pool": "p"}}}
    story.put(key_of("devicetaintrules", "t"), moved_rule, after=1)
    begin = story.allocate("x", result("p", "a"))
    return [("placement-respects-taints", "unsure", "t,x", begin, None)]


def watched(events, lacking):
    watch = InvariantWatch(lacking=frozenset(lacking))
    for event in events:
        watch.note(event)
    return {(each.rule, each.kind.value) for each in watch.violations()}


@pytest.mark.parametrize(
    ("lost", "written", "goes_on", "kind"),
    [
        ("yz", "", True, "unsure"),
        ("y", "", True, "broken"),
        # The binding itself shows the pod, so a write of the claim is enough.
        ("yz", "x", True, "broken"),
        ("yz", "q", True, "unsure"),
        ("yz", "qx", True, "broken"),
        ("yz", "qx", False, "broken"),
    ],
)
def test_write_that_shows_a_claim_as_it_was_proves_that_none_is_lost(lost, written, goes_on, kind):
    """Lines of claims are lost here and there; the pod is bound, its claim is not allocated."""
    story = Story()
    for name in "xyz":
        story.claim(name)
    story.pod("q", "x")
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    write()
    for name in lost:
        story.gap(key_of("resourceclaims", name), "gap")
    for name in written:
        _, write = story.change(key_of("pods" if name == "q" else "resourceclaims", name))
        write()
    if goes_on:
        story.other()
    assert watched(story.events, ()) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(
    ("losses", "kind"), [(("no_actor",), "broken"), (("no_deletes",), "unsure")]
)
def test_pod_whose_end_no_line_can_show_may_be_gone_before_its_claim_is_free(losses, kind):
    """`kubectl get --watch -o json` prints the last state of an object that goes as any other."""
    story = Story()
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"), losses=losses)
    tree["spec"]["nodeName"] = "n"
    write()
    story.free("x")
    story.other()
    assert watched(story.events, ()) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(("lost", "kind"), [("", "broken"), ("y", "broken"), ("yz", "unsure")])
def test_exchanged_allocation_is_unsure_where_lines_of_other_claims_are_lost(lost, kind):
    """The line that took the first allocation back may be lost, too."""
    story = Story()
    story.publish("p", device("a"), device("b"))
    for name in "yz":
        story.claim(name)
    story.allocate("x", result("p", "a"))
    for name in lost:
        story.gap(key_of("resourceclaims", name), "gap")
    story.allocate("x", result("p", "b"))
    assert watched(story.events, ()) == {("allocation-unchanged", kind)}


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (20, 21, "broken"),  # no version is left for the line that took it back
        (20, 22, "unsure"),
        (20, 19, "unsure"),  # a restored store
        (20, "", "unsure"),  # a source without versions
    ],
)
def test_exchanged_allocation_is_unsure_where_a_line_of_its_claim_may_be_lost(first, second, kind):
    """Whatever lines of other claims are lost, each write of this one has a version."""
    story = Story()
    story.line(story.publish("p", device("a"), device("b")), 9)
    for number, name in enumerate("yzx", start=10):
        story.claim(name, {"name": "r", "exactly": {"count": 1}})
        story.line(story.revision, number)
    story.line(story.allocate("x", result("p", "a")), first)
    for name in "yz":
        story.gap(key_of("resourceclaims", name), "gap")
    story.line(story.allocate("x", result("p", "b")), second, request_id="r" if second else "")
    assert ("allocation-unchanged", kind) in watched(story.events, ())
    later, write = story.change(key_of("resourceclaims", "x"), after=1)
    later["metadata"]["labels"] = {"later": "line"}
    story.line(write(), 40)
    assert ("allocation-unchanged", kind) in watched(story.events, ())


@pytest.mark.parametrize(
    ("lacking", "kind"), [((), "broken"), (("resourceclaims",), "unsure"), (("pods",), "broken")]
)
def test_claim_that_may_have_been_left_out_is_missed_in_doubt(lacking, kind):
    """A log that begins late shows a bound pod, and its claim when that is written next."""
    story = Story()
    story.put(key_of("pods", "q"), pod("x", node="n", phase="Running"), verb="baseline")
    story.other()
    assert watched(story.events, lacking) == {("bound-pod-has-claims", kind)}


@pytest.mark.parametrize(
    ("lacking", "kind"), [((), "broken"), (("pods",), "unsure"), (("resourceclaims",), "broken")]
)
def test_pod_that_may_have_been_left_out_is_missed_in_doubt(lacking, kind):
    story = Story()
    story.publish("p", device("a"))
    story.pod("other")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", "u"))
    assert watched(story.events, lacking) == {("reservation-names-pod", kind)}


GUESSED, CORRECTED = ("no_rv",), ("times_contradict",)


@pytest.mark.parametrize(
    ("binding", "allocation", "kind"),
    [
        (GUESSED, CORRECTED, "unsure"),
        (GUESSED + CORRECTED, (), "unsure"),
        (GUESSED + CORRECTED, CORRECTED, "broken"),
        (GUESSED, (), "broken"),
        ((), CORRECTED, "broken"),
        (CORRECTED, (), "broken"),
    ],
)
def test_binding_that_a_corrected_clock_placed_accuses_nobody(binding, allocation, kind):
    """The clock of one user is one, unless the times of one request alone were corrected."""
    story = Story()
    story.pod("q", "x")
    story.publish("p", device("a"))
    story.claim("x")
    tree, write = story.change(key_of("pods", "q"), losses=binding)
    tree["spec"]["nodeName"] = "n"
    write()
    tree, write = story.change(key_of("resourceclaims", "x"), after=1, losses=allocation)
    tree["status"] = story.status_for("q")
    write()
    assert watched(story.events, {doubts.TIMES}) == {("bound-pod-has-claims", kind)}


PLACED, A_MOMENT = (), 0.02


@pytest.mark.parametrize(
    ("binding", "later", "apart", "kind"),
    [
        (GUESSED, None, A_MOMENT, "unsure"),
        (GUESSED, GUESSED, A_MOMENT, "unsure"),
        (GUESSED, PLACED, A_MOMENT, "broken"),
        (GUESSED, None, 1, "broken"),
        (PLACED, None, A_MOMENT, "broken"),
    ],
)
def test_binding_that_only_its_time_placed_accuses_nobody(binding, later, apart, kind):
    """Another server may have answered it, with a clock that is a moment behind.

    A `later` write of the pod with a version, before that of the claim, shows that it was first.
    """
    story = Story()
    story.pod("q", "x")
    story.publish("p", device("a"))
    story.claim("x")
    tree, write = story.change(key_of("pods", "q"), losses=binding)
    tree["spec"]["nodeName"] = "n"
    write()
    if later is not None:
        tree, write = story.change(key_of("pods", "q"), after=0, losses=later)
        tree["status"]["phase"] = "Running"
        write()
    tree, write = story.change(key_of("resourceclaims", "x"), after=apart)
    tree["status"] = story.status_for("q")
    write()
    assert watched(story.events, ()) == {("bound-pod-has-claims", kind)}
    assert {row[:2] for row in expected(story.events, Switches())} == {
        ("bound-pod-has-claims", kind)
    }


@pytest.mark.parametrize(("losses", "kind"), [(GUESSED, "unsure"), (PLACED, "broken")])
def test_pod_whose_end_only_its_time_placed_accuses_nobody(losses, kind):
    """Its claim is released when it has gone; only the clock of another server has it earlier."""
    story = Story()
    story.pod("q", "x")
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    write()
    before = len(story.events)
    story.reserve("x")
    story.remove(key_of("pods", "q"), after=A_MOMENT, losses=losses)
    began = {(each[0], each[1]) for each in story.found() if each[3] > before}
    assert began == {("bound-pod-has-claims", kind)}
    rows = expected(story.events, Switches())
    assert {row[:2] for row in rows if row[3] > before} == began


@pytest.mark.parametrize(
    ("end", "release", "kind"),
    [
        (GUESSED, CORRECTED, "unsure"),
        (GUESSED + CORRECTED, (), "unsure"),
        (PLACED, CORRECTED, "broken"),
        (GUESSED, (), "broken"),
    ],
)
def test_pod_whose_end_a_corrected_clock_placed_accuses_nobody(end, release, kind):
    story = Story()
    story.pod("q", "x")
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    write()
    tree, write = story.change(key_of("resourceclaims", "x"), losses=release)
    tree["status"].pop("reservedFor")
    write()
    story.remove(key_of("pods", "q"), after=3, losses=end)
    assert watched(story.events, {doubts.TIMES}) == {("bound-pod-has-claims", kind)}


def found_when_the_recording_began(story):
    """What is listed was there at once: the order of a list breaks nothing."""
    story.put(key_of("pods", "q"), pod("x", node="n", phase="Running"), verb="baseline")
    tree = claim("r")
    tree["status"] = {
        "allocation": {"devices": {"results": [result("p", "a")]}},
        "reservedFor": [user("q", "u1")],
    }
    story.put(key_of("resourceclaims", "x"), tree, verb="baseline")
    story.put(key_of("resourceslices", "p"), slice_("p", device("a")), verb="baseline")
    story.other()
    return []


def counters_found_overdrawn(story):
    """They may have been enough when the claims were allocated."""
    parts = [device(name, consumes={"units": "4"}) for name in "ab"]
    spec = slice_("p", *parts, counters={"units": "6"})
    story.put(key_of("resourceslices", "p"), spec, verb="baseline")
    for name, place in (("x", "a"), ("y", "b")):
        tree = claim("r")
        tree["status"]["allocation"] = {"devices": {"results": [result("p", place)]}}
        begin = story.put(key_of("resourceclaims", name), tree, verb="baseline")
    story.other()
    return [("counters-not-overdrawn", "unsure", "x,y", begin, None)]


def a_claim_recorded_without_its_status(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("pods", "q"))
    tree["spec"]["nodeName"] = "n"
    write()
    begin = story.put(key_of("resourceclaims", "x"), claim("r"), losses=("no_status",))
    return [("bound-pod-has-claims", "unsure", "q,x", begin, None)]


def a_stretch_that_was_not_recorded(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.gap()
    begin = story.allocate("y", result("p", "a"))
    return [("device-in-one-claim", "unsure", "x,y", begin, None)]


def a_write_of_one_claim_that_was_not_recorded(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    story.gap(key_of("resourceclaims", "x"))
    unsure = story.allocate("z", result("p", "a"))
    broken = story.allocate("w", result("p", "b"))
    return [
        ("device-in-one-claim", "unsure", "x,z", unsure, None),
        ("device-in-one-claim", "broken", "w,y", broken, None),
    ]


def writes_of_claims_that_were_not_recorded(story):
    """A gap of a kind concerns its objects, until they are written again."""
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    story.gap(ObjectKey(GROUP, "resourceclaims", "", ""))
    story.change(key_of("resourceclaims", "y"))[1]()
    unsure = story.allocate("z", result("p", "a"))
    broken = story.allocate("w", result("p", "b"))
    return [
        ("device-in-one-claim", "unsure", "x,z", unsure, None),
        ("device-in-one-claim", "broken", "w,y", broken, None),
    ]


def writes_in_one_namespace_that_were_not_recorded(story):
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.gap(ObjectKey(GROUP, "resourceclaims", "elsewhere", ""))
    broken = story.allocate("y", result("p", "a"))
    story.allocate("v", result("p", "b"))
    story.gap(ObjectKey(GROUP, "resourceclaims", "ns", ""))
    unsure = story.allocate("w", result("p", "b"))
    return [
        ("device-in-one-claim", "broken", "x,y", broken, None),
        ("device-in-one-claim", "unsure", "v,w", unsure, None),
    ]


def writes_of_a_kind_that_no_rule_reads(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.gap(ObjectKey("", "configmaps", "", ""))
    story.gap(ObjectKey("", "configmaps", "ns", "settings"))
    begin = story.allocate("y", result("p", "a"))
    return [("device-in-one-claim", "broken", "x,y", begin, None)]


def a_kind_that_a_recorder_knows_again(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.gap()
    story.report(ObjectKey(GROUP, "resourceclaims", "", ""))
    begin = story.allocate("y", result("p", "a"))
    return [("device-in-one-claim", "broken", "x,y", begin, None)]


def slices_that_were_not_recorded(story):
    """A device may have been published unseen, but not beside all slices of its pool."""
    story.publish("p", device("a"))
    story.publish("q", device("a"))
    story.gap(ObjectKey(GROUP, "resourceslices", "", ""))
    story.publish("q", device("a"), device("b"))
    unsure = story.allocate("x", result("p", "c"))
    broken = story.allocate("y", result("q", "c"))
    return [
        ("allocated-device-existed", "unsure", "x", unsure, None),
        ("allocated-device-existed", "broken", "y", broken, None),
    ]


def a_slice_of_one_pool_that_was_not_recorded(story):
    """Its pool alone may have other devices, until all of its slices are there."""
    slices = ObjectKey(GROUP, "resourceslices", "", "")
    story.gap(slices, pool="gpu.example.com/p")
    story.publish("q", device("a"))
    unsure = story.allocate("x", result("p", "c"))
    broken = story.allocate("y", result("q", "c"))
    story.publish("p", device("a"))
    later = story.allocate("z", result("p", "d"), after=60)
    return [
        ("allocated-device-existed", "unsure", "x", unsure, None),
        ("allocated-device-existed", "broken", "y", broken, None),
        ("allocated-device-existed", "broken", "z", later, None),
    ]


def a_slice_of_one_pool_that_a_recorder_knows_again(story):
    slices = ObjectKey(GROUP, "resourceslices", "", "")
    story.publish("q", device("a"))
    story.gap(slices, pool="gpu.example.com/p")
    story.report(slices)
    broken = story.allocate("x", result("p", "c"))
    return [("allocated-device-existed", "broken", "x", broken, None)]


def a_slice_that_was_recorded_in_part(story):
    story.publish("p", device("a"))
    story.publish("q", device("a"))
    tree, _ = story.change(key_of("resourceslices", "p"))
    tree["spec"]["devices"] = []
    story.put(key_of("resourceslices", "p"), tree, losses=("truncated_body",))
    unsure = story.allocate("x", result("p", "c"))
    broken = story.allocate("y", result("q", "c"))
    return [
        ("allocated-device-existed", "unsure", "x", unsure, None),
        ("allocated-device-existed", "broken", "y", broken, None),
    ]


def a_claim_whose_group_is_not_recorded(story):
    """The key of a store without its group."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.gap(ObjectKey("", "resourceclaims", "ns", "x"))
    begin = story.allocate("y", result("p", "a"))
    return [("device-in-one-claim", "unsure", "x,y", begin, None)]


def write_that_only_the_next_one_tells_of_leaves_open_what_came_before(story):
    """It was made at any time since the last known one, so it may be what seemed broken."""
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    unsure = story.allocate("z", result("p", "a"))
    story.change(key_of("resourceclaims", "y"))[1]()
    broken = story.allocate("w", result("p", "b"))
    key = key_of("resourceclaims", "x")
    story.gap(key, "gap")
    tree, write = story.change(key)
    tree["status"] = {}
    end = write()
    story.gap(key_of("resourceclaims", "nobody"), "gap")
    return [
        ("device-in-one-claim", "unsure", "x,z", unsure, end),
        ("device-in-one-claim", "broken", "w,y", broken, None),
    ]


def rule_that_was_changed_unseen_leaves_later_evictions_open(story):
    """It may have tainted the devices since its last known write, not before."""
    broken = evicted(story)
    key = key_of("devicetaintrules", "new")
    story.put(key, {"spec": {}})
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["status"]["conditions"] = []
    write()
    tree["status"]["conditions"] = [dict(MARKED)]
    unsure = story.put(key_of("pods", "q"), tree, after=1)
    story.gap(key, "gap")
    story.put(key, {"spec": {"deviceSelector": {}}})
    return [
        ("eviction-has-taint", "broken", "q,x", broken, None),
        ("eviction-has-taint", "unsure", "q,x", unsure, None),
    ]


def slice_that_was_changed_unseen_leaves_later_allocations_open(story):
    """It may have had the device since its last known write, as no other pool has."""
    story.publish("p", device("a"))
    story.publish("q", device("a"))
    story.claim("y")
    before = story.allocate("x", result("p", "b"))
    story.publish("p", device("a"))
    unsure = story.allocate("y", result("p", "b"))
    broken = story.allocate("z", result("q", "b"))
    story.gap(key_of("resourceslices", "p"), "gap")
    return [
        ("allocated-device-existed", "broken", "x", before, None),
        ("allocated-device-existed", "unsure", "y", unsure, None),
        ("allocated-device-existed", "broken", "z", broken, None),
        ("device-in-one-claim", "broken", "x,y", unsure, None),
    ]


def gap_of_a_kind_that_was_noticed_late(story):
    """A pod may have come since the last one was seen."""
    story.publish("p", device("a"), device("b"))
    story.pod("other")
    story.allocate("x", result("p", "a"))
    broken = story.reserve("x", user("q", "unknown"))
    story.pod("another")
    story.allocate("y", result("p", "b"))
    unsure = story.reserve("y", user("r", "unknown"))
    story.gap(ObjectKey("", "pods", "", ""), time_quality="exact")
    return [
        ("reservation-names-pod", "broken", "q,x", broken, None),
        ("reservation-names-pod", "unsure", "r,y", unsure, None),
    ]


def gap_of_a_kind_that_stands_where_it_was(story):
    story.publish("p", device("a"))
    story.pod("other")
    story.allocate("x", result("p", "a"))
    broken = story.reserve("x", user("q", "unknown"))
    story.gap(ObjectKey("", "pods", "", ""))
    return [("reservation-names-pod", "broken", "q,x", broken, None)]


def a_write_between_two_whole_ones_that_was_not_dated(story):
    """What another claim held since the first of them may have ended before it was given again."""
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    story.allocate("z", result("p", "b"))
    earlier = story.allocate("y", result("p", "b"))
    earlier_end = story.free("y")
    story.other()
    begin = story.allocate("w", result("p", "a"))
    end = story.free("w")
    story.gap(key_of("resourceclaims", "x"), "gap")
    return [
        ("device-in-one-claim", "broken", "y,z", earlier, earlier_end),
        ("device-in-one-claim", "unsure", "w,x", begin, end),
    ]


def changed_unseen(story, key, change, *between):
    """Some states of an object are missing or not shown; then it is there, changed."""
    story.other()
    for each in between or (lambda: story.gap(key, "gap"),):
        each()
    tree, write = story.change(key, after=1)
    change(tree)
    return write()


def asking_for(count):
    return lambda tree: tree["spec"]["devices"]["requests"][0]["exactly"].update(count=count)


def the_spec_of_a_claim_changes_unseen(story):
    """No gap lets a server change it, of an object, a kind or everything."""
    found = []
    gaps = (key_of("resourceclaims", "x"), ObjectKey(GROUP, "resourceclaims", "", ""), IMPORTS)
    for name, key in zip("xyz", gaps, strict=True):
        claim_key = story.claim(name, {"name": "r", "exactly": {"count": 1}})
        begin = changed_unseen(story, claim_key, asking_for(2), lambda key=key: story.gap(key))
        found.append(("immutable-field-unchanged", "broken", name, begin, None))
    return found


def the_spec_of_a_claim_changes_beside_a_state_in_part(story):
    key = story.claim("x", {"name": "r", "exactly": {"count": 1}})

    def in_part():
        story.put(key, {"spec": {"devices": {}}}, losses=("truncated_body",))
        story.put(key, claim({"name": "r", "exactly": {"count": 1}}), losses=("no_status",))

    begin = changed_unseen(story, key, asking_for(2), in_part)
    return [("immutable-field-unchanged", "broken", "x", begin, None)]


def a_claim_is_the_same_after_a_state_in_part(story):
    key = story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.put(key, {"spec": {"devices": {}}}, losses=("truncated_body",))
    story.put(key, claim({"name": "r", "exactly": {"count": 1}}))
    return []


def a_claim_that_was_never_shown_before(story):
    story.put(key_of("resourceclaims", "x"), claim("s"), losses=("truncated_body",))
    changed_unseen(story, key_of("resourceclaims", "x"), lambda tree: tree.update(claim("r")))
    return []


def a_claim_whose_uid_is_a_guess(story):
    """It may be another one of the same name."""
    key = story.claim("x", {"name": "r", "exactly": {"count": 1}})
    story.gap(key, "gap")
    story.put(key, claim({"name": "r", "exactly": {"count": 2}}), losses=("no_uid",))
    return []


def a_claim_made_anew_unseen(story):
    key = story.claim("x", "r")
    story.gap(key, "gap")
    story.put(key, claim("r", "s"), uid="another")
    return []


def a_claim_with_defaults_of_a_newer_release(story):
    """A server that was upgraded unseen gives defaults, and shows fields that it did not know."""
    key = story.claim("x", {"name": "r", "exactly": {"deviceClassName": "gpu"}})
    defaults = {"allocationMode": "ExactCount", "count": 1, "tolerations": [{"key": "k"}]}

    def upgraded(tree):
        tree["spec"]["devices"]["requests"][0]["exactly"].update(defaults)

    added = changed_unseen(story, key, upgraded)

    def other(tree):
        exactly = tree["spec"]["devices"]["requests"][0]["exactly"]
        exactly.update(deviceClassName="tpu")
        del exactly["count"]

    changed = changed_unseen(story, key, other)
    return [
        ("immutable-field-unchanged", "unsure", "x", added, None),
        ("immutable-field-unchanged", "broken", "x", changed, None),
    ]


def another_request_of_a_claim_unseen(story):
    key = story.claim("x", "r")
    begin = changed_unseen(story, key, lambda tree: tree.update(claim("r", "s")))
    return [("immutable-field-unchanged", "broken", "x", begin, None)]


def a_config_of_a_claim_that_comes_unseen(story):
    key = story.claim("x", "r")
    config = [{"opaque": {"driver": DRIVER}}]
    begin = changed_unseen(story, key, lambda tree: tree["spec"]["devices"].update(config=config))
    return [("immutable-field-unchanged", "broken", "x", begin, None)]


def a_deletion_taken_back_unseen(story):
    key = story.claim("x", "r")
    tree, write = story.change(key)
    tree["metadata"].update(GOING)
    write()
    begin = changed_unseen(story, key, lambda tree: tree["metadata"].pop("deletionTimestamp"))
    return [("immutable-field-unchanged", "broken", "x", begin, None)]


def a_pod_moved_unseen(story):
    """A gap that is noticed later leaves nothing open: two states prove it."""
    story.pod("q", node="n")
    key = key_of("pods", "q")
    begin = changed_unseen(story, key, lambda tree: tree["spec"].update(nodeName="m"))
    story.gap(key, "gap")
    story.change(key)[1]()
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def a_pod_bound_unseen(story):
    story.pod("q")
    key = key_of("pods", "q")
    changed_unseen(story, key, lambda tree: tree["spec"].update(nodeName="n"))
    return []


def a_binding_that_is_placed_by_its_time(story):
    """The states of versions are unbound before and after it: it may have come later."""
    story.pod("q")
    tree, write = story.change(key_of("pods", "q"), losses=("no_rv",))
    tree["spec"]["nodeName"] = "n"
    write()
    changed_unseen(story, key_of("pods", "q"), lambda tree: tree["spec"].pop("nodeName"))
    return []


def the_claims_of_a_pod_change_unseen(story):
    story.pod("q", "x")
    key = key_of("pods", "q")
    begin = changed_unseen(story, key, lambda tree: tree["spec"].update(pod("y")["spec"]))
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def immutable_fields_of_a_slice_and_a_template_change_unseen(story):
    story.publish("p", device("a"))
    key = key_of("resourceslices", "p")
    begin = changed_unseen(
        story, key, lambda tree: tree["spec"].update(driver="other", nodeName="")
    )
    template = key_of("resourceclaimtemplates", "t")
    story.put(template, {"spec": {"spec": {"devices": {}}}}, losses=("truncated_body",))
    one, other = ({"spec": {"spec": {"devices": {"requests": [{"name": n}]}}}} for n in "rs")
    story.put(template, one)
    changed = changed_unseen(story, template, lambda tree: tree.update(other))
    return [
        ("immutable-field-unchanged", "broken", "p", begin, None),
        ("immutable-field-unchanged", "broken", "t", changed, None),
    ]


def a_slice_of_another_driver_beside_a_state_in_part(story):
    story.publish("p", device("a"))
    key = key_of("resourceslices", "p")

    def in_part():
        story.put(key, {"spec": {}}, losses=("truncated_body",))

    begin = changed_unseen(story, key, lambda tree: tree.update(slice_("p", driver="o")), in_part)
    story.publish("q", device("a"))
    story.put(key_of("resourceslices", "q"), {"spec": {}}, losses=("truncated_body",))
    story.publish("q", device("a"))
    return [("immutable-field-unchanged", "broken", "p", begin, None)]


def given(*results):
    def change(tree):
        tree["status"]["allocation"] = {"devices": {"results": list(results)}}

    return change


def another_allocation_after_a_gap(story):
    """The first one may have been given back in between."""
    story.publish("p", device("a"), device("b"))
    story.allocate("x", result("p", "a"))
    key = key_of("resourceclaims", "x")
    begin = changed_unseen(story, key, given(result("p", "b")))
    return [("allocation-unchanged", "unsure", "x", begin, None)]


def a_result_that_tolerates_more_after_a_gap(story):
    """An allocation, the same or a new one, tolerates what its claim does."""
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    key = key_of("resourceclaims", "x")
    tolerant = result("p", "a", tolerations=[{"key": "k", "operator": "Exists"}])
    begin = changed_unseen(story, key, given(tolerant))
    return [("tolerations-copied", "broken", "x", begin, None)]


def allocated_before_the_taint_and_seen_after_it(story):
    story.publish("p", device("a"), device("b", taints=[{"key": "k", "effect": "NoSchedule"}]))
    one, other = story.claim("x", after=60), story.claim("y")
    story.publish(
        "p", *(device(name, taints=[{"key": "k", "effect": "NoSchedule"}]) for name in "ab")
    )
    story.other(after=60)
    unsure = changed_unseen(story, one, given(result("p", "a")))
    broken = changed_unseen(story, other, given(result("p", "b")))
    return [
        ("placement-respects-taints", "unsure", "x", unsure, None),
        ("placement-respects-taints", "broken", "y", broken, None),
    ]


def allocated_before_the_device_went_and_seen_after_it(story):
    story.publish("p", device("a"), device("b"))
    one, other = story.claim("x", after=60), story.claim("y")
    story.publish("p", device("b"))
    story.other(after=60)
    unsure = changed_unseen(story, one, given(result("p", "a")))
    broken = changed_unseen(story, other, given(result("p", "c")))
    return [
        ("allocated-device-existed", "unsure", "x", unsure, None),
        ("allocated-device-published", "outside", "x", unsure, None),
        ("allocated-device-existed", "broken", "y", broken, None),
    ]


def allocated_before_the_devices_were_changed_and_seen_after_it(story):
    """What the devices are now does not judge an allocation that may be older."""
    request = {"name": "r", "exactly": {"count": 2}}
    constraint = {"matchAttribute": f"{DRIVER}/numa"}
    for name in ("p", "q"):
        devices = (device(each, attributes=numa(1)) for each in "ab")
        story.publish(name, *devices)
    one = story.claim("x", request, constraints=[constraint])
    story.publish("p", *(device(each, attributes=numa(n)) for n, each in enumerate("ab")))
    other = story.claim("y", request, constraints=[constraint])
    results = {
        name: [result(name, each, shareID=f"{name}{each}") for each in "ab"] for name in "pq"
    }
    unsure = changed_unseen(story, one, given(*results["p"]))
    again = {**results["p"][0], "shareID": "other"}
    broken = changed_unseen(story, other, given(results["q"][0], again))
    return [
        ("constraint-holds", "unsure", "x", unsure, None),
        ("share-of-shared-device", "unsure", "x", unsure, None),
        ("share-of-shared-device", "unsure", "x", unsure, None),
        ("constraint-holds", "broken", "y", broken, None),
        ("share-of-shared-device", "broken", "y", broken, None),
        ("share-of-shared-device", "broken", "y", broken, None),
    ]


def space(story, value=None, *, label=ADMIN, after=1, **options):
    """Write the namespace of all claims, with a value of the label or without the label."""
    labels = {} if value is None else {label: value}
    return story.put(
        key_of("namespaces", "ns"), {"metadata": {"labels": labels}}, after=after, **options
    )


ENDS = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def phased(story, phase, metadata=(), *, after=1, **options):
    """Write a namespace with a phase. The revision of that."""
    tree = {"metadata": dict(metadata), "status": {"phase": phase}}
    return story.put(key_of("namespaces", "ns"), tree, after=after, **options)


def disagreement(begin, end=None):
    return [("fields-agree", "broken", "ns", begin, end)]


def a_namespace_that_is_deleted_stays_active(story):
    phased(story, "Active")
    begin = phased(story, "Active", ENDS)
    phased(story, "Terminating", ENDS)
    return disagreement(begin, story.remove(key_of("namespaces", "ns"), after=1))


def a_namespace_terminates_that_nobody_deletes(story):
    begin = phased(story, "Terminating", verb="baseline")
    return disagreement(begin)


def a_namespace_made_again_has_its_own_phase(story):
    begin = phased(story, "Active", ENDS)
    return disagreement(begin, phased(story, "Active", uid="another"))


def a_namespace_is_deleted_beside_a_lost_line(story):
    phased(story, "Active")
    story.gap(key_of("namespaces", "ns"), "gap")
    return disagreement(phased(story, "Active", ENDS))


def a_namespace_has_the_label_of_another_one(story):
    labels = {"kubernetes.io/metadata.name": "other"}
    return disagreement(phased(story, "Active", {"labels": labels}))


def ending(story, key, grace=None, **metadata):
    """An object is being deleted, without a grace period or with one. The revision of that."""
    tree, write = story.change(key, after=1)
    tree["metadata"].update(metadata, deletionTimestamp=GOING["deletionTimestamp"])
    tree["metadata"]["deletionGracePeriodSeconds"] = grace
    return write()


def a_claim_is_deleted_without_a_grace_period(story):
    begin = ending(story, story.claim("x", "r"))
    return [("fields-agree", "broken", "x", begin, None)]


def a_claim_is_deleted_with_the_grace_period_of_a_pod(story):
    begin = ending(story, story.claim("x", "r"), 30)
    return [("fields-agree", "broken", "x", begin, None)]


def a_pod_is_deleted_without_a_grace_period(story):
    story.gap()
    story.pod("q")
    begin = ending(story, key_of("pods", "q"))
    end = story.remove(key_of("pods", "q"), after=1)
    return [("fields-agree", "broken", "q", begin, end)]


def a_pod_is_deleted_with_a_grace_period_below_zero(story):
    story.pod("q")
    begin = ending(story, key_of("pods", "q"), -7)
    return [("fields-agree", "broken", "q", begin, None)]


def a_pod_has_the_claim_of_an_entry_that_it_lacks(story):
    story.pod("q", "x")
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["status"]["resourceClaimStatuses"] = [{"name": "y", "resourceClaimName": "z"}]
    return [("fields-agree", "broken", "q", write(), None)]


def of_every_kind(story, finalizer):
    """The keys of a slice, a class, a template, a node and a namespace that are being deleted."""
    keys = [
        key_of("resourceslices", "p-0"),
        key_of("deviceclasses", "gpu"),
        key_of("resourceclaimtemplates", "m"),
        key_of("nodes", "n"),
    ]
    for key in keys:
        metadata = {**GOING, "finalizers": [finalizer]}
        story.put(key, {"metadata": metadata, "spec": {}}, after=1)
    phased(story, "Terminating", {**ENDS, "finalizers": [finalizer]})
    return [*keys, key_of("namespaces", "ns")]


def the_deletions_of_all_kinds_are_taken_back(story):
    found = []
    for key in of_every_kind(story, "example.com/kept"):
        tree, write = story.change(key, after=1)
        del tree["metadata"]["deletionTimestamp"]
        if key.resource == "namespaces":
            tree["status"]["phase"] = "Active"
        found.append(("immutable-field-unchanged", "broken", key.name, write(), None))
    return found


def the_deletions_of_all_kinds_are_moved(story):
    found = []
    for key in of_every_kind(story, "example.com/kept"):
        tree, write = story.change(key, after=1)
        tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
        found.append(("immutable-field-unchanged", "broken", key.name, write(), None))
    return found


def objects_that_are_deleted_get_finalizers(story):
    """A second deletion may add those that say what becomes of dependents."""
    found = []
    for key in of_every_kind(story, "example.com/kept"):
        tree, write = story.change(key, after=1)
        tree["metadata"]["finalizers"] = ["example.com/kept", "foregroundDeletion"]
        write()
        tree, write = story.change(key, after=1)
        tree["metadata"]["finalizers"] = ["example.com/other"]
        found.append(("immutable-field-unchanged", "broken", key.name, write(), None))
    return found


def deletions_are_taken_back_by_a_backup(story):
    keys = of_every_kind(story, "example.com/kept")
    story.gap()
    for key in keys:
        tree, write = story.change(key, after=1)
        del tree["metadata"]["deletionTimestamp"]
        if key.resource == "namespaces":
            tree["status"]["phase"] = "Active"
        write()
    return []


def a_pod_has_less_time_to_end_than_at_first(story):
    story.pod("q")
    ending(story, key_of("pods", "q"), 30)
    tree, write = story.change(key_of("pods", "q"), after=1)
    tree["metadata"]["deletionTimestamp"] = "2025-12-31T23:59:00Z"
    write()
    tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    begin = story.put(key_of("pods", "q"), tree, after=1)
    return [("immutable-field-unchanged", "broken", "q", begin, None)]


def a_claim_is_reserved_twice_for_a_pod(story):
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["status"]["reservedFor"] *= 2
    return [("fields-agree", "broken", "x", write(), None)]


def statuses_are_about_generations_that_pods_have_not_reached(story):
    """A pod without a generation may be of a server that does not count them."""
    condition = {"type": "Ready", "status": "True", "observedGeneration": 7}
    found = []
    for name, generation in (("q", 7), ("r", 6), ("s", None), ("t", 2)):
        story.pod(name)
        tree, write = story.change(key_of("pods", name), after=1)
        tree["metadata"]["generation"] = generation
        tree["status"]["conditions"] = [condition] if name != "t" else []
        tree["status"]["observedGeneration"] = 3 if name == "t" else 1
        begin = write()
        if name in "rt":
            found.append(("fields-agree", "broken", name, begin, None))
    return found


def counted(story, name, **numbers):
    """The status of a pool that a request asks for, with these numbers of devices."""
    key = key_of("resourcepoolstatusrequests", name)
    pool = {"driver": DRIVER, "poolName": "p", **numbers}
    return story.put(key, {"status": {"pools": [pool]}}, after=1)


def a_pool_has_more_devices_left_than_it_has(story):
    numbers = {"totalDevices": 9, "allocatedDevices": 3, "unavailableDevices": 2}
    begin = counted(story, "q", **numbers, availableDevices=5)
    return [("fields-agree", "broken", "q", begin, None)]


def answer(story, name, *pools, count, said=None, **spec):
    """A request for pools with its answer. The revision of that."""
    condition = {"type": "Complete", "message": f"Calculated status for {said or count} pools"}
    status = {"pools": [], "poolCount": count, "conditions": [condition]}
    for pool in pools:
        numbers = {"totalDevices": 1, "allocatedDevices": 0, "unavailableDevices": 0}
        named = {"driver": DRIVER, "poolName": pool, "availableDevices": 1}
        status["pools"].append({**named, **numbers})
    key = key_of("resourcepoolstatusrequests", name)
    return story.put(key, {"spec": {"driver": DRIVER, **spec}, "status": status}, after=1)


def a_request_is_answered_about_other_pools(story):
    answer(story, "q", "p", "r", count=2)
    answer(story, "r", "p", count=1, poolName="p")
    begin = answer(story, "s", "p", count=1, poolName="r")
    other = answer(story, "t", "p", count=1, driver="other.example.com")
    return [
        ("fields-agree", "broken", "s", begin, None),
        ("fields-agree", "broken", "t", other, None),
    ]


def a_request_is_answered_with_another_number_of_pools(story):
    answer(story, "q", "p", count=2, limit=1)
    begin = answer(story, "r", "p", count=2)
    other = answer(story, "s", "p", count=1, said=3)
    return [
        ("fields-agree", "broken", "r", begin, None),
        ("fields-agree", "broken", "s", other, None),
    ]


def a_request_is_answered_twice(story):
    answer(story, "q", "p", count=1)
    begin = answer(story, "q", "r", count=1)
    answer(story, "r", "p", count=1)
    tree, write = story.change(key_of("resourcepoolstatusrequests", "r"), after=1)
    del tree["status"]
    other = write()
    answer(story, "s", "p", count=1)
    story.gap()
    answer(story, "s", "r", count=1)
    return [
        ("immutable-field-unchanged", "broken", "q", begin, None),
        ("immutable-field-unchanged", "broken", "r", other, None),
    ]


def pools_with_numbers_that_agree(story):
    """Devices that are no longer published count as allocated."""
    numbers = {"totalDevices": 3, "allocatedDevices": 6, "unavailableDevices": 0}
    counted(story, "q", **numbers, availableDevices=0)
    counted(story, "r", validationError="pool is incomplete")
    return []


def a_device_is_reported_twice(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["status"]["devices"] = [{"driver": DRIVER, "pool": "p", "device": "a"}] * 2
    return [("reported-device-allocated", "broken", "x", write(), None)]


def a_slice_is_deleted_without_a_grace_period(story):
    story.publish("p", device("a"))
    key = next(each for each in story.objects if each.resource == "resourceslices")
    begin = ending(story, key, finalizers=["example.com/kept"])
    return [("fields-agree", "broken", key.name, begin, None)]


def a_slice_selects_nodes_in_two_ways(story):
    tree = slice_("p", device("a"))
    tree["spec"]["nodeName"] = "n0"
    begin = story.put(key_of("resourceslices", "p-0"), tree)
    return [("fields-agree", "broken", "p-0", begin, None)]


def a_namespace_is_deleted_before_it_is_made(story):
    begin = phased(story, "Terminating", {**ENDS, "creationTimestamp": "2026-01-01T00:00:03Z"})
    return [("fields-agree", "unsure", "ns", begin, None)]


def a_namespace_is_deleted_by_a_server_whose_clock_is_behind(story):
    phased(story, "Terminating", {**ENDS, "creationTimestamp": "2026-01-01T00:00:02Z"})
    return []


def objects_that_are_deleted_with_the_grace_periods_of_their_kinds(story):
    ending(story, story.claim("x", "r"), 0)
    story.pod("q")
    ending(story, key_of("pods", "q"), 30)
    ending(story, key_of("pods", "q"), 0)
    return []


def deletions_and_slices_that_are_not_recorded_whole(story):
    for loss in ("unknown_patch", "printed", "no_uid", "no_rv"):
        metadata = {**GOING, "deletionGracePeriodSeconds": None, "finalizers": ["example.com/kept"]}
        tree = {**claim("r"), "metadata": metadata}
        story.put(key_of("resourceclaims", "x"), tree, after=1, losses=(loss,))
        tree = slice_("p", device("a"))
        tree["spec"]["nodeName"] = "n0"
        story.put(key_of("resourceslices", "p-0"), tree, after=1, losses=(loss,))
    return []


def namespaces_whose_phase_follows_their_deletion(story):
    labels = {"kubernetes.io/metadata.name": "ns", "team": "other"}
    phased(story, "Active", {"labels": labels})
    phased(story, "Terminating", {**ENDS, "labels": labels})
    story.remove(key_of("namespaces", "ns"), after=1)
    phased(story, "Active")
    return []


def namespaces_whose_phase_or_deletion_is_not_recorded(story):
    """Some states lack the status, and some are worked out from a request."""
    story.put(key_of("namespaces", "ns"), {"metadata": ENDS, "status": {}}, after=1)
    for loss in ("no_status", "unknown_patch", "printed", "no_uid", "no_rv"):
        phased(story, "Active", ENDS, losses=(loss,))
        phased(story, "Terminating", losses=(loss,))
    return []


def renewed(story, first, second, *, is_made_seen=False):
    """Another claim has the name of one, by lines with these versions. Where that shows."""
    key = story.claim("x", "r")
    tree = claim("r")
    story.line(story.revision, first)
    end = story.remove(key, after=1, losses=("synthetic_delete", "no_rv"))
    story.line(end, "", seconds=1.01, request_id="")
    if is_made_seen:
        return story.line(story.put(key, tree, uid="other"), second)
    shown = story.put(key, tree, uid="other", losses=("synthetic_create",), verb="baseline")
    story.line(shown, second)
    story.line(story.put(key, tree), second)
    return shown


def succession(begin):
    return [("removed-before-renewed", "broken", "x", begin, None)]


def another_claim_has_the_name_of_one_in_the_next_version(story):
    return succession(renewed(story, 7, 8))


def another_claim_has_the_name_of_one_with_one_version_between(story):
    return succession(renewed(story, 7, 9))


def a_claim_is_made_in_the_next_version_after_one_of_its_name(story):
    begin = renewed(story, 7, 8, is_made_seen=True)
    story.remove(key_of("resourceclaims", "x"), after=1)
    return succession(begin)


def claims_of_one_name_with_versions_between_them(story):
    renewed(story, 7, 10)
    story.remove(key_of("resourceclaims", "x"), after=1)
    renewed(story, 17, 19, is_made_seen=True)
    return []


def claims_of_one_name_after_the_store_was_restored(story):
    renewed(story, 7, 5)
    return []


ADMIN_REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}


def ask(story, name="x", after=1, **options):
    """Create a claim that asks for admin access. The revision of that."""
    return story.put(key_of("resourceclaims", name), claim(ADMIN_REQUEST), after=after, **options)


def forbidden(begin, kind="broken", name="x", end=None):
    return [("admin-access-allowed", kind, f"ns,{name}", begin, end)]


def admin_access_in_a_namespace_that_does_not_allow_it(story):
    space(story)
    begin = ask(story)
    story.other()
    return forbidden(begin, end=story.remove(key_of("resourceclaims", "x")))


def admin_access_with_another_value_of_the_label(story):
    space(story, "True")
    return forbidden(ask(story))


def admin_access_in_a_template(story):
    space(story)
    spec = {"spec": {"spec": claim(ADMIN_REQUEST)["spec"]}}
    begin = story.put(key_of("resourceclaimtemplates", "x"), spec)
    return forbidden(begin, end=story.remove(key_of("resourceclaimtemplates", "x"), after=1))


def admin_access_in_a_namespace_that_allows_it(story):
    space(story, "true")
    ask(story)
    space(story, after=60)
    tree, write = story.change(key_of("resourceclaims", "x"), after=60)
    tree["metadata"]["labels"] = {"a": "b"}
    write()
    return []


def give(story, name="x", after=1, **options):
    """Allocate a device with admin access. The revision of that."""
    return story.allocate(name, result("p", "a", adminAccess=True), after=after, **options)


def admin_access_is_given_when_it_is_no_longer_allowed(story):
    story.publish("p", device("a"))
    space(story, "true")
    for name in "xyz":
        ask(story, name)
    space(story)
    begin = give(story, after=15)
    late = give(story, "y")
    story.free("y")
    space(story, "true")
    give(story, "z")
    space(story)
    tree, write = story.change(key_of("resourceclaims", "z"), after=60)
    tree["status"]["allocation"]["devices"]["results"][0]["tolerations"] = None
    write()
    return forbidden(begin, "unsure") + forbidden(late, name="y")


def no_admin_access_in_a_namespace_that_does_not_allow_it(story):
    space(story)
    refused = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": False}}
    story.claim("x", refused)
    story.claim("y")
    return []


def admin_access_in_a_namespace_that_nobody_recorded(story):
    ask(story)
    space(story)
    story.remove(key_of("namespaces", "ns"), after=60)
    ask(story, "y", after=60)
    return []


def admin_access_a_moment_after_it_was_allowed(story):
    space(story, "true")
    space(story, after=60)
    begin = ask(story, after=15)
    later = ask(story, "y", after=1)
    return forbidden(begin, "unsure") + forbidden(later, name="y")


def admin_access_in_a_namespace_made_again(story):
    space(story, "true")
    story.remove(key_of("namespaces", "ns"), after=60)
    space(story)
    return forbidden(ask(story), "unsure")


def admin_access_by_the_label_of_older_releases(story):
    space(story, "true", label="resource.k8s.io/admin-access")
    return forbidden(ask(story), "unsure")


def admin_access_of_a_claim_that_is_listed_or_seen_late(story):
    """The namespace may have allowed it when they were made."""
    ask(story, verb="baseline")
    space(story, verb="baseline")
    ask(story, "y", losses=("synthetic_create",))
    return []


def admin_access_of_a_claim_whose_creation_has_no_place(story):
    space(story)
    found = []
    for number, loss in enumerate(("no_rv", "version_guess", "late", "collapsed", "no_uid")):
        begin = ask(story, f"x{number}", losses=(loss,))
        found += forbidden(begin, "unsure", f"x{number}")
    return found


def admin_access_after_writes_of_namespaces_that_were_not_recorded(story):
    space(story)
    story.gap(ObjectKey("", "namespaces", "", ""))
    begin = ask(story)
    space(story)
    return forbidden(begin, "unsure") + forbidden(ask(story, "y"), name="y")


def admin_access_before_a_gap_of_namespaces_is_noticed(story):
    space(story)
    begin = ask(story)
    story.gap(ObjectKey("", "namespaces", "", ""), time_quality="exact")
    return forbidden(begin, "unsure")


def admin_access_before_the_next_write_tells_of_an_unseen_one(story):
    space(story)
    early = ask(story)
    space(story)
    begin = ask(story, "y")
    story.gap(key_of("namespaces", "ns"), "gap")
    space(story)
    return forbidden(early) + forbidden(begin, "unsure", "y")


def admin_access_before_a_label_that_may_have_come_earlier(story):
    space(story)
    early = ask(story)
    space(story)
    begin = ask(story, "y")
    ended = ask(story, "z")
    end = story.remove(key_of("resourceclaims", "z"))
    space(story, "true", losses=("late",))
    found = forbidden(early) + forbidden(begin, "unsure", "y")
    return found + forbidden(ended, "unsure", "z", end)


def admin_access_where_lines_of_namespaces_are_lost(story):
    """Lines of two others are lost; what a later line shows of this one proves nothing is."""
    space(story)
    begin = ask(story)
    for name in "ab":
        story.gap(key_of("namespaces", name), "gap")
    return forbidden(begin, "unsure")


def admin_access_where_lines_are_lost_and_later_ones_show_none_of_it(story):
    space(story)
    begin = ask(story)
    for name in "ab":
        story.gap(key_of("namespaces", name), "gap")
    space(story)
    return forbidden(begin)


def awaited(world, *pods):
    """Pods that are to be bound to one claim, whose device has to be ready and not failed."""
    world.publish("p", device("a"))
    for name in pods:
        world.pod(name, "x")
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    world.allocate("x", {**result("p", "a"), **conditions}, after=0)
    world.reserve("x", *(user(name, world.uid(name)) for name in pods))


def drivers_say(world, *true, after=1):
    """A driver's report of the conditions that are true."""
    tree, write = world.change(key_of("resourceclaims", "x"), after=after)
    device_ = {name: result("p", "a")[name] for name in ("driver", "pool", "device")}
    conditions = [
        {"type": name, "status": str(name in true)} for name in ("Ready", "Failed", "Other")
    ]
    tree["status"]["devices"] = [{**device_, "conditions": conditions}]
    return write()


def bind(story, name="q", by="", verb="create"):
    tree, write = story.change(key_of("pods", name), by=by, verb=verb)
    tree["spec"]["nodeName"] = "n"
    return write()


def unready(begin, end=None, pod="q"):
    return [("bound-pod-has-ready-devices", "broken", f"{pod},x", begin, end)]


def bound_before_its_devices_are_ready(story):
    awaited(story, "q")
    begin = bind(story)
    drivers_say(story, "Ready", after=0)
    return unready(begin)


def bound_when_its_devices_are_ready(story):
    awaited(story, "q")
    drivers_say(story, "Ready", "Other")
    bind(story)
    return []


def bound_when_its_devices_have_failed(story):
    awaited(story, "q")
    drivers_say(story, "Ready", "Failed")
    begin = bind(story)
    return unready(begin)


def bound_to_devices_of_which_another_condition_is_true(story):
    awaited(story, "q")
    drivers_say(story, "Other")
    begin = bind(story)
    story.remove(key_of("pods", "q"), after=1)
    tree, write = story.change(key_of("resourceclaims", "x"))
    tree["status"] = {}
    write()
    end = story.remove(key_of("resourceclaims", "x"), after=1)
    return unready(begin, end)


def bound_to_devices_that_were_ready_once(story):
    awaited(story, "q")
    drivers_say(story, "Ready")
    drivers_say(story)
    bind(story)
    return []


def two_pods_of_which_one_is_bound_too_early(story):
    awaited(story, "q", "r")
    begin = bind(story, "r")
    drivers_say(story, "Ready")
    bind(story)
    return unready(begin, pod="r")


def bound_by_another_than_the_scheduler(story):
    awaited(story, "q")
    bind(story, by="alice")
    return []


def bound_to_a_claim_that_is_allocated_again(story):
    awaited(story, "q")
    drivers_say(story, "Ready")
    story.free("x")
    conditions = {"bindingConditions": ["Ready"]}
    story.allocate("x", {**result("p", "a"), **conditions})
    story.reserve("x", user("q", story.uid("q")))
    begin = bind(story)
    return unready(begin)


def bound_where_a_report_may_be_unrecorded(story):
    awaited(story, "q")
    story.gap(key_of("resourceclaims", "x"), "gap")
    begin = bind(story)
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


def lose_lines_of_claims(world):
    for name in "yz":
        world.gap(key_of("resourceclaims", name), "gap")


def bound_where_lines_of_claims_are_lost(story):
    lose_lines_of_claims(story)
    awaited(story, "q")
    begin = bind(story)
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


def bound_where_lines_are_lost_and_a_later_one_is_worked_out_from_a_patch(story):
    """Its reports are those of the last state that was shown, whatever was written since."""
    lose_lines_of_claims(story)
    awaited(story, "q")
    begin = bind(story)
    tree, write = story.change(key_of("resourceclaims", "x"), after=1)
    tree["metadata"]["labels"] = {"other": ""}
    story.derived(write())
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


def bound_where_lines_are_lost_and_a_patch_comes_before(story):
    """A line without the reports may follow the lost one."""
    lose_lines_of_claims(story)
    awaited(story, "q")
    tree, write = story.change(key_of("resourceclaims", "x"), after=5)
    tree["metadata"]["labels"] = {"other": ""}
    story.derived(write())
    begin = bind(story)
    drivers_say(story, after=5)
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


def bound_where_lines_are_lost_and_a_driver_reports_anew(story):
    """It may have reported before that its device is ready."""
    lose_lines_of_claims(story)
    awaited(story, "q")
    begin = bind(story)
    drivers_say(story)
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


def bound_where_a_lost_report_was_taken_back(story):
    """A later line shows the reports as they were: a driver may have taken one back meanwhile."""
    lose_lines_of_claims(story)
    awaited(story, "q")
    begin = bind(story)
    tree, write = story.change(key_of("resourceclaims", "x"), after=2)
    tree["status"].pop("devices", None)
    write()
    return [(rule, "unsure", *rest) for rule, _, *rest in unready(begin)]


STORIES = [
    value
    for value in list(globals().values())
    if getattr(value, "__code__", None) and value.__code__.co_varnames[:1] == ("story",)
    if value.__code__.co_argcount == 1 and not value.__code__.co_kwonlyargcount
]


@together(STORIES, lambda story: story.__name__)
def test_story(tell):
    story = Story()
    assert sorted(tell(story)) == sorted(story.found())


@pytest.mark.parametrize(
    ("others", "kinds"),
    [((), ["unsure"]), ((5,) * 12, ["late"]), ((59, 1, 61), ["late"]), ((58, 61), ["unsure"])],
)
def test_state_is_late_only_while_somebody_writes_where_redra_may_be_stopped(others, kinds):
    """A server that was stopped writes nothing. Where others write, controllers could, too."""
    story = Story()
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    story.remove(key_of("pods", "q"), after=1)
    for after in others:
        story.other(after=after)
    story.reserve("x", after=1 if others else 3_600)
    assert [kind for _, kind, *_ in story.found(stops=True)] == kinds
    assert [kind for _, kind, *_ in story.found()] == ["late"]


@pytest.mark.parametrize(
    ("others", "kind"),
    [((), "unsure"), ((30, 70), "unsure"), ((5,) * 12, "late"), ((61, 61), "late")],
)
def test_state_is_in_doubt_in_a_recording_for_one_time_in_which_nobody_writes(others, kind):
    """A server may be away, but not each time that a controller should have written."""
    story = Story()
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    story.remove(key_of("pods", "q"), after=1)
    for after in others:
        story.other(after=after)
    story.reserve("x", after=1 if others else 3_600)
    origin = Origin(source="audit log", time_quality="exact")
    story.events = [
        msgspec.structs.replace(each, stamp=msgspec.structs.replace(each.stamp, origin=origin))
        for each in story.events
    ]
    assert [each for _, each, *_ in story.found()] == [kind]


@pytest.mark.parametrize(
    ("made", "losses", "kind"),
    [
        ("2025-12-31T23:00:00Z", ("synthetic_create",), "unsure"),
        ("2025-12-31T23:59:59Z", ("synthetic_create",), "broken"),  # as far as clocks agree
        ("2025-12-31T23:00:00Z", (), "broken"),  # a list shows all slices
    ],
)
def test_pool_may_be_older_than_a_log_that_begins_amid_the_life_of_a_cluster(made, losses, kind):
    """A slice that is written anew says nothing of the pools that nobody wrote since."""
    story = Story()
    tree = slice_("old", device("a"))
    tree["metadata"] = {"creationTimestamp": made}
    story.put(key_of("resourceslices", "old"), tree, losses=losses, verb="baseline")
    story.put(key_of("devicetaintrules", "other"), OTHER_RULE)
    story.publish("old", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    moved(story, "n")
    story.allocate("y", result("old", "b"))
    mark(story, 60)
    for number, each in enumerate(story.events):
        origin = each.stamp.origin or Origin(source="made")
        story.events[number] = replace(each, stamp=replace(each.stamp, origin=origin))
    kinds = {(rule, objects): each for rule, each, objects, *_ in story.found()}
    assert kinds["allocated-device-existed", "y"] == "broken"
    assert kinds["allocated-device-existed", "x"] == kind
    assert kinds["eviction-has-taint", "q,x"] == kind


@pytest.mark.parametrize(("hole", "kind"), [(0, "late"), (1, "unsure")])
def test_release_is_late_beside_lost_lines_if_no_version_is_left_for_it(hole, kind):
    """Any two lost lines about claims excused each release that never came."""
    story = Story()
    lose_lines_of_claims(story)
    story.publish("p", device("a"))
    story.pod("q", "x")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    story.remove(key_of("pods", "q"), after=1)
    for number in range(13):
        story.other(after=5)
        story.line(story.events[-1].revision, 1_000 + number + (hole if number > 6 else 0))
    found = [(rule, each) for rule, each, *_ in story.found()]
    assert found == [("reservation-names-pod", kind)]


@pytest.mark.parametrize(
    ("tell", "kind"),
    [
        (evicted_before_its_time, "unsure"),
        (evicted_for_a_slice_taint_that_had_long_gone, "unsure"),
        (a_device_that_had_long_gone, "unsure"),
        (reserved_for_a_pod_that_had_long_gone, "unsure"),
        (finalizer_removed_for_long, "unsure"),
        (a_taint_of_long_before, "unsure"),
        (a_tainted_device, "broken"),
        (a_rule_that_was_there_before_the_claim, "broken"),
        (two_claims_of_one_device, "broken"),
        (evicted_without_a_taint, "broken"),
        (a_device_that_never_was, "broken"),
        (allocation_without_finalizer, "broken"),
        (reservation_without_allocation, "broken"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_nobody_is_accused_of_a_time_where_times_contradict_the_order(tell, kind):
    """What an order alone shows is as sure as ever."""
    story = Story()
    tell(story)
    sure = [found for found in story.found() if found[1] in ("broken", "late")]
    now = story.found(frozenset((doubts.TIMES,)))
    assert sure
    assert {found[1] for found in now if found[0] == sure[0][0]} == {kind}
    assert not [found for found in now if found[1] == "late"]


def requirement(operator, *values):
    return {"key": "zone", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("chosen", "labels", "expected"),
    [
        (requirement("In", "a", "b"), {"zone": "b"}, True),
        (requirement("In", "a", "b"), {"zone": "c"}, False),
        (requirement("In", "a"), {}, False),
        (requirement("NotIn", "a"), {"zone": "a"}, False),
        (requirement("NotIn", "a"), {"zone": "b"}, True),
        (requirement("NotIn", "a"), {}, True),
        (requirement("Exists"), {"zone": ""}, True),
        (requirement("Exists"), {"other": "a"}, False),
        (requirement("DoesNotExist"), {"zone": ""}, False),
        (requirement("DoesNotExist"), {"other": "a"}, True),
        (requirement("Gt", "2"), {"zone": "10"}, True),
        (requirement("Gt", "2"), {"zone": "2"}, False),
        (requirement("Gt", "2"), {"zone": "x"}, False),
        (requirement("Lt", "2"), {"zone": "1"}, True),
        (requirement("Lt", "2"), {"zone": "2"}, False),
        (requirement("Lt", "2"), {}, False),
        (requirement("exists"), {"zone": "a"}, False),
    ],
)
def test_each_operator_of_a_node_selector(chosen, labels, expected):
    """As the Kubernetes API defines NodeSelectorOperator."""
    assert nodes.selects(selector(chosen), "n", labels) is expected
    assert nodes.selects(selector(chosen, node="n"), "n", labels) is expected
    assert nodes.selects(selector(chosen, node="m"), "n", labels) is False
    assert nodes.selects(selector(chosen), "n", None) is None


NAMED = {"key": "metadata.name", "operator": "In", "values": ["n"]}
ZONED = requirement("In", "a")


@pytest.mark.parametrize(
    ("terms", "in_a", "unlabelled"),
    [
        ([], False, False),
        ([{}], False, False),
        ([{"matchFields": [NAMED]}], True, True),
        ([{"matchFields": [NAMED], "matchExpressions": [ZONED]}], True, None),
        ([{"matchExpressions": [ZONED]}], True, None),
        ([{"matchExpressions": [ZONED, requirement("In", "b")]}], False, None),
        ([{}, {"matchExpressions": [ZONED]}], True, None),
        ([{"matchFields": [NAMED | {"values": ["m"]}]}], False, False),
        ([{"matchFields": [NAMED | {"values": ["m"]}]}, {"matchFields": [NAMED]}], True, True),
        ([{"matchFields": [NAMED | {"key": "metadata.uid"}]}], False, False),
        ([{"matchFields": [NAMED | {"operator": "NotIn"}]}], False, False),
    ],
)
def test_one_term_of_a_node_selector_is_enough_and_an_empty_one_selects_nothing(
    terms, in_a, unlabelled
):
    """As the Kubernetes API defines NodeSelectorTerm; the labels of a node may be unknown."""
    chosen = {"nodeSelectorTerms": terms}
    assert nodes.selects(chosen, "n", {"zone": "a"}) is in_a
    assert nodes.selects(chosen, "n", None) is unlabelled


TWICE = "device gpu.example.com/p/a is allocated 2 times"
MESSAGES = [
    (
        a_claim_is_deleted_without_a_grace_period,
        "metadata.deletionTimestamp is set, and metadata.deletionGracePeriodSeconds is not set",
    ),
    (
        a_slice_selects_nodes_in_two_ways,
        "spec selects nodes by nodeName and allNodes, of which a server allows one",
    ),
    (
        a_namespace_is_deleted_before_it_is_made,
        "metadata.deletionTimestamp is 2026-01-01T00:00:00Z, and metadata.creationTimestamp "
        "2026-01-01T00:00:03Z",
    ),
    (
        bound_before_its_devices_are_ready,
        "pod q was bound before its devices were reported as ready",
    ),
    (
        bound_before_a_claim_was_made_from_its_template,
        "the pod is bound and no claim was made for its entry gpu",
    ),
    (
        a_namespace_that_is_deleted_stays_active,
        "status.phase is Active, and metadata.deletionTimestamp is set",
    ),
    (
        a_namespace_terminates_that_nobody_deletes,
        "status.phase is Terminating, and metadata.deletionTimestamp is not set",
    ),
    (
        another_claim_has_the_name_of_one_in_the_next_version,
        "uid u1 is followed by other, and the versions of the store leave no room for the removal "
        "of the first one and the creation of the second one",
    ),
    (
        a_claim_is_made_in_the_next_version_after_one_of_its_name,
        "uid u1 is followed by other, and the versions of the store leave no room for the removal "
        "of the first one",
    ),
    (
        a_namespace_has_the_label_of_another_one,
        "the label kubernetes.io/metadata.name is other, and not the name of the namespace",
    ),
    (
        admin_access_in_a_template,
        "admin access is requested in a namespace without the label that allows it",
    ),
    (
        a_driver_reports_about_a_device_that_the_claim_does_not_have,
        "status.devices reports device gpu.example.com/p/b, which the claim does not have",
    ),
    (two_claims_of_one_device, TWICE),
    (three_claims_of_one_device, TWICE.replace("2", "3")),
    (driver_stops_sharing_a_device_in_use, TWICE),
    (
        counters_overdrawn_by_an_allocation,
        "12 of counter units of set set in pool gpu.example.com/p is drawn, and the set has 10",
    ),
    (
        capacity_consumed_twice,
        "10737418241 of memory of device gpu.example.com/p/a is consumed, and the device has "
        "10737418240",
    ),
    (
        a_patch_takes_capacity_away,
        "6 of memory of device gpu.example.com/p/a is consumed, and the device has 5",
    ),
    (
        a_new_generation_has_its_own_counters,
        "device gpu.example.com/p/b is allocated but no longer published",
    ),
    (a_device_that_never_was, "device gpu.example.com/p/b is in no slice"),
    (a_device_that_had_just_gone, "device gpu.example.com/p/b went away just before"),
    (no_slices_recorded, "no slice with gpu.example.com/p/a was recorded"),
    (
        allocation_without_finalizer,
        "the claim is allocated without the finalizer resource.kubernetes.io/delete-protection",
    ),
    (
        the_claim_controller_ends_an_allocated_claim,
        "the finalizer of the claim was removed while the claim was allocated",
    ),
    (reservation_without_allocation, "the claim is reserved and not allocated"),
    (too_many_reservations, "the claim is reserved for 257 consumers"),
    (
        reserved_for_a_pod_that_is_gone,
        "the claim is reserved for pod q (u2), which does not exist",
    ),
    (
        reserved_for_a_pod_that_does_not_name_it,
        "the claim is reserved for pod q (u2), which does not name it",
    ),
    (
        reserved_for_a_pod_that_never_was,
        "the claim was reserved for pod ghost (g), which did not exist or does not use the claim",
    ),
    (
        a_terminating_claim_is_allocated,
        "the claim is allocated or reserved anew although it is being deleted",
    ),
    (the_spec_of_a_claim_changes, "spec was changed, which no server allows"),
    (
        an_allocation_changed_in_place,
        "the claim got another allocation without giving the first one back",
    ),
    (
        evicted_without_a_taint,
        "the pod is evicted for a taint, and none of its devices has one that evicts it",
    ),
    (bound_before_its_claim_is_allocated, "the pod is bound and its claim x is not allocated"),
    (
        reservation_of_a_running_pod_removed,
        "the pod is bound and its claim x is not reserved for it",
    ),
    (
        bound_to_another_node,
        "the pod is on node n, which the allocation of its claim x does not select",
    ),
    (too_few_devices, "request r got 1 device of 2"),
    (a_request_without_devices, "request s got no device"),
    (
        two_alternatives_at_once,
        "request r got devices for several of its alternatives: r/big, r/small",
    ),
    (
        admin_access_that_nobody_asked_for,
        "request r got results whose adminAccess differs from its own",
    ),
    (
        devices_that_do_not_match,
        "the devices of constraint 0 do not agree in gpu.example.com/numa",
    ),
    (
        devices_that_do_not_differ,
        "the devices of constraint 0 do not differ in gpu.example.com/numa",
    ),
    (
        a_share_of_a_device_for_one,
        "device gpu.example.com/p/a is allocated in shares and does not allow multiple allocations",
    ),
    (tolerations_left_out, "result 0 has not the tolerations of request r"),
    (
        a_tainted_device,
        "device gpu.example.com/p/a is allocated although its slice taints it k:NoSchedule",
    ),
    (
        a_rule_that_was_there_before_the_claim,
        "device gpu.example.com/p/a is allocated although DeviceTaintRule t taints it k:NoSchedule",
    ),
]
"""A story of each kind of violation, and the sentence that names what is broken in it."""


@together(MESSAGES, lambda row: row[0].__name__)
def test_violation_is_named_in_a_sentence(row):
    tell, message = row
    story = Story()
    tell(story)
    watch = InvariantWatch()
    for event in story.events:
        watch.note(event)
    assert message in {each.message for each in watch.violations()}


@pytest.mark.parametrize(
    ("generation", "request_id", "losses", "is_wrong"),
    [
        (6, "r-1", (), True),
        (1, "r-1", (), False),
        (6, "", (), False),  # a watch stream that begins amid shows it as new
        (6, "r-1", ("synthetic_create",), False),  # a later line shows that it was made
        (6, "r-1", ("spec_only",), False),  # the client wrote it, and the server did not answer
    ],
)
def test_a_new_object_of_an_audit_log_has_the_first_generation(
    generation, request_id, losses, is_wrong
):
    story = Story()
    story.put(key_of("devicetaintrules", "t"), timed(), generation=generation)
    messages = as_new(story, request_id=request_id, losses=losses)
    assert messages == ["metadata.generation of the new object is 6"] * is_wrong


def timed(**taint):
    """A rule whose taint has the time that a server sets."""
    tree = ruling("NoSchedule")
    tree["spec"]["taint"].update({"timeAdded": "2026-01-01T00:00:00Z"}, **taint)
    return tree


def as_new(story, *, request_id="r-1", losses=()):
    """What is said of fields that do not agree when an audit log has the events as creations."""
    watch = InvariantWatch()
    for event in story.events:
        origin = Origin(source="made", losses=losses)
        stamp = replace(event.stamp, verb="create", request_id=request_id, origin=origin)
        watch.note(replace(event, stamp=stamp))
    return [each.message for each in watch.violations() if each.rule == "fields-agree"]


@pytest.mark.parametrize("request_id", ["r-1", ""])
@pytest.mark.parametrize("is_counted", [True, False])
def test_a_new_object_lacks_its_generation_where_another_one_has_it(is_counted, request_id):
    """A tool may have left the generations out of all objects."""
    story = Story()
    story.put(key_of("deviceclasses", "c"), {"spec": {}}, generation=int(is_counted))
    story.put(key_of("devicetaintrules", "t"), timed(), generation=0)
    messages = as_new(story, request_id=request_id)
    is_wrong = is_counted and bool(request_id)
    assert messages == ["metadata.generation of the new object is not set"] * is_wrong


@pytest.mark.parametrize(("request_id", "is_wrong"), [("r-1", True), ("", False)])
def test_a_taint_of_an_audit_log_has_a_time(request_id, is_wrong):
    story = Story()
    story.put(key_of("devicetaintrules", "t"), timed(timeAdded=None), generation=1)
    slice_tree = slice_("p", device("a", taints=[{"key": "k", "effect": "NoSchedule"}]))
    story.put(key_of("resourceslices", "p-0"), slice_tree, generation=1)
    messages = as_new(story, request_id=request_id)
    rule, of_slice = "the taint k has no timeAdded", "device a: the taint k has no timeAdded"
    assert messages == [rule, of_slice] * is_wrong


SET = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
CRITICAL = {"priorityClassName": "system-node-critical"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (SET, ""),
        ({**SET, "priority": 7}, "spec.priority is 7, and the new pod with no class gets 0"),
        ({"priority": 7}, ""),  # a server without the admission, which sets both
        ({**SET, "priority": 7, "priorityClassName": "mine"}, ""),
        ({**SET, **CRITICAL, "priority": 2_000_001_000}, ""),
        (
            {**SET, **CRITICAL},
            "spec.priority is 0, and the new pod with the class system-node-critical gets "
            "2000001000",
        ),
        (
            {**SET, "preemptionPolicy": "Never"},
            "spec.preemptionPolicy is Never, and the new pod with no class gets "
            "PreemptLowerPriority",
        ),
    ],
)
@pytest.mark.parametrize("request_id", ["r-1", ""])
def test_a_new_pod_of_an_audit_log_has_the_priority_of_its_class(spec, words, request_id):
    story = Story()
    tree = pod()
    tree["spec"].update(spec)
    story.put(key_of("pods", "q"), tree)
    assert as_new(story, request_id=request_id) == [words] * bool(words and request_id)


@pytest.mark.parametrize("others", [SET, {}])
def test_a_client_may_choose_a_priority_where_no_server_sets_it(others):
    """Another new pod without a priority shows that the admission is switched off."""
    story = Story()
    for name, spec in (("other", others), ("q", {**SET, "priority": 7})):
        tree = pod()
        tree["spec"].update(spec)
        story.put(key_of("pods", name), tree)
    assert len(as_new(story)) == bool(others)


def test_a_pod_that_mirrors_a_file_has_the_priority_of_the_file():
    story = Story()
    tree = pod()
    tree["spec"].update(SET, priority=7)
    tree["metadata"] = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    story.put(key_of("pods", "q"), tree)
    assert as_new(story) == []


ONE = {"cpu": "1", "memory": "64Mi"}


@pytest.mark.parametrize(
    ("spec", "named", "right"),
    [
        ({"containers": [{}]}, "Guaranteed", "BestEffort"),
        ({"containers": [{"resources": {"requests": {"gpu": 1}}}]}, "Burstable", "BestEffort"),
        ({"containers": [{"resources": {"requests": ONE}}]}, "Guaranteed", "Burstable"),
        ({"containers": [{"resources": {"requests": ONE, "limits": ONE}}]}, "x", "Guaranteed"),
        (
            {"containers": [{"resources": {"requests": ONE, "limits": {**ONE, "cpu": "1000m"}}}]},
            "Guaranteed",
            "Guaranteed",
        ),
        (
            {
                "initContainers": [{}],
                "containers": [{"resources": {"requests": ONE, "limits": ONE}}],
            },
            "Guaranteed",
            "Burstable",
        ),
        ({"containers": [{}]}, "BestEffort", "BestEffort"),
        ({"containers": [{}]}, "", ""),  # the state lacks its status
        ({"containers": [{}], "resources": {"limits": ONE}}, "Guaranteed", "Guaranteed"),
    ],
)
@pytest.mark.parametrize("request_id", ["r-1", ""])
def test_a_new_pod_of_an_audit_log_has_the_class_of_its_containers(spec, named, right, request_id):
    """Another client may have written the status of a pod that a watch shows first."""
    story = Story()
    tree = pod()
    tree["spec"].update(spec)
    tree["status"]["qosClass"] = named
    story.put(key_of("pods", "q"), tree)
    event = story.events[-1]
    stamp = replace(event.stamp, request_id=request_id, origin=Origin(source="made"), verb="create")
    watch = InvariantWatch()
    watch.note(replace(event, stamp=stamp))
    messages = [each.message for each in watch.violations() if each.rule == "fields-agree"]
    is_wrong = bool(request_id) and named != right
    words = f"status.qosClass is {named}, and the containers of the new pod are {right}"
    assert messages == [words] * is_wrong


@pytest.mark.parametrize(("version", "is_wrong"), [(9, True), (10, False)])
def test_line_after_a_list_has_one_write(version, is_wrong):
    """A pod is first seen when it is removed, and its removal has one of the versions between."""
    story = Story()
    key, pod_key = story.claim("x", "r"), key_of("pods", "q")
    story.line(story.revision, 7)
    seen = story.put(pod_key, pod(), after=1, losses=("synthetic_create",), verb="baseline")
    story.line(seen, "", seconds=0.5)
    story.line(story.remove(pod_key), "", seconds=0.5)
    end = story.remove(key, after=1, losses=("synthetic_delete", "no_rv"))
    story.line(end, "", seconds=2.01, request_id="")
    story.line(story.put(key, claim("r"), uid="other"), version)
    watch = InvariantWatch()
    for event in story.events:
        watch.note(event)
    rules = [each.rule for each in watch.violations()]
    assert rules == ["removed-before-renewed"] * is_wrong


def test_every_rule_has_a_sentence():
    told = {rule for tell, _ in MESSAGES for rule, *_ in tell(Story())}
    assert told == set(RULES)


def test_every_rule_has_a_story_that_breaks_it():
    assert {rule for tell in STORIES for rule, *_ in tell(Story())} == set(RULES)


def test_every_rule_is_documented():
    page = (REPOSITORY / "docs/explanation/invariants.md").read_text(encoding="utf-8")
    assert [name for name, text in RULES.items() if f"| `{name}` | {text} |" not in page] == []
    assert [kind for kind in ViolationKind if f"| `{kind.value}` |" not in page] == []
    assert f"within {LATE_AFTER // SECOND} seconds" in page


@pytest.mark.parametrize("is_imported", [True, False])
def test_eviction_shows_rules_that_were_not_recorded_only_where_lines_may_be_missing(is_imported):
    story = Story()
    if is_imported:
        story.gap(key_of("resourceslices", "other"), "metadata_only")
    evicted_where_no_rule_was_recorded(story)
    watch = InvariantWatch()
    for event in story.events:
        watch.note(event)
    assert watch.lacks_rules is is_imported


def test_pods_wait_for_no_report_where_the_feature_is_off():
    story = Story()
    assert bound_before_its_devices_are_ready(story)
    watch = InvariantWatch(placements.Switches(waits=False))
    watch.follow(story.events)
    assert watch.violations() == []
