"""Each rule, broken for a while by a story: found with its objects, from when and until when.

In every story something that has to do with nothing is written between, so that a violation may
begin and end while other objects change, and one begins and ends between two writes of others.
"""

import pytest

from app.service.invariants import RULES, InvariantWatch
from tests.unit.invariants.worlds import (
    DRIVER,
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

    def other(self, after=0):
        return self.put(key_of("nodes", "elsewhere"), {"at": self.revision}, after=after)

    def found(self):
        """Rule, kind, names of the objects, from and until of everything that was broken."""
        watch = InvariantWatch()
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


def shares_of_a_device_draw_its_counters_once(story):
    story.publish("p", device("a", consumes={"units": "6"}, shared=True), counters={"units": "10"})
    story.allocate("x", result("p", "a", shareID="1"))
    story.allocate("y", result("p", "a", shareID="2"))
    return []


def a_new_generation_has_its_own_counters(story):
    parts = [device(name, consumes={"units": "4"}) for name in "ab"]
    story.publish("p", *parts, counters={"units": "8"})
    story.allocate("x", result("p", "a"))
    story.allocate("y", result("p", "b"))
    key = key_of("resourceslices", "p-2")
    story.put(key, slice_("p", generation=2, counters={"units": "4"}), after=1)
    return []


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


def a_device_that_never_was(story):
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"))
    end = story.free("x")
    return [("allocated-device-existed", "broken", "x", begin, end)]


def a_device_that_had_just_gone(story):
    story.publish("p", device("a"), device("b"))
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"), after=3)
    return [("allocated-device-existed", "unsure", "x", begin, None)]


def a_device_that_had_long_gone(story):
    story.publish("p", device("a"), device("b"))
    story.publish("p", device("a"))
    begin = story.allocate("x", result("p", "b"), after=60)
    return [("allocated-device-existed", "broken", "x", begin, None)]


def a_device_that_goes_later(story):
    story.publish("p", device("a"))
    story.allocate("x", result("p", "a"))
    story.remove(key_of("resourceslices", "p"), after=1)
    return []


def no_slices_recorded(story):
    begin = story.allocate("x", result("p", "a"))
    return [("allocated-device-existed", "unsure", "x", begin, None)]


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
    story.pod("q")
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
    story.pod("q")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    begin = story.remove(key_of("pods", "q"), after=1)
    end = story.reserve("x", after=61)
    return [("reservation-names-pod", "late", "q,x", begin, end)]


def reserved_for_another_pod_of_that_name(story):
    story.publish("p", device("a"))
    story.pod("q")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    begin = story.put(key_of("pods", "q"), pod(), uid="another", after=1)
    end = story.reserve("x", after=61)
    return [("reservation-names-pod", "late", "q,x", begin, end)]


def reserved_for_a_pod_that_has_just_gone(story):
    story.publish("p", device("a"))
    story.pod("q")
    story.allocate("x", result("p", "a"))
    story.reserve("x", user("q", story.uid("q")))
    story.remove(key_of("pods", "q"), after=1)
    story.reserve("x", after=59)
    return []


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


def a_rule_that_was_there_before_the_claim(story):
    story.publish("p", device("a"))
    rule = {"spec": {"deviceSelector": {"pool": "p"}, "taint": TAINT}}
    story.put(key_of("devicetaintrules", "t"), rule, after=1)
    begin = story.allocate("x", result("p", "a"), after=2)
    return [("placement-respects-taints", "broken", "t,x", begin, None)]


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


STORIES = [
    value
    for value in list(globals().values())
    if getattr(value, "__code__", None) and value.__code__.co_varnames[:1] == ("story",)
    if value.__code__.co_argcount == 1
]


@pytest.mark.parametrize("tell", STORIES, ids=lambda story: story.__name__)
def test_story(tell):
    story = Story()
    assert sorted(tell(story)) == sorted(story.found())


def test_every_rule_has_a_story_that_breaks_it():
    assert {rule for tell in STORIES for rule, *_ in tell(Story())} == set(RULES)
