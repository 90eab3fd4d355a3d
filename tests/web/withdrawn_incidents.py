"""Incidents of drivers that publish less than they did, with the words of their causes."""

from tests.web.invented import Invented, ask, claim, pod, slice_of
from tests.web.reported_incidents import lab


def card(name, driver, *devices, generation=1, of=1):
    """A slice of node `n` with these devices."""
    named = [{"name": device} for device in devices]
    return slice_of(name, driver, "n", named, generation=generation, of=of, nodeName="n")


def wanted(name, user):
    return {"apply": [claim(name, "lab", ask("c")), pod(user, "lab", claim=name)]}


def card_falls_off_the_bus(new):
    """A driver publishes one card of two after a fault, and that one is in use."""
    driver, lost = f"{new('d')}.test", new("y")
    return Invented(
        about="job",
        told=(rf"slice s had device {lost} for request dev of claim want until it was written "
              r"without it, by redra:incidents at 2026-01-02T03:00:10Z",),
        steps=({"apply": lab(driver, card("s", driver, "x", lost))}, {"wait": 5},
               wanted("first", "first"), {"wait": 5},
               {"apply": [card("s", driver, "x", generation=2)]}, {"wait": 5},
               wanted("want", "job"), {"wait": 5}),
    )  # fmt: skip


def slice_is_missing_after_a_restart(new):
    """A restarted driver publishes one slice of two, as a whole pool; its card is in use."""
    driver, lost = f"{new('d')}.test", new("y")
    return Invented(
        about="job",
        told=(rf"slice b had device {lost} for request dev of claim want until it was deleted",),
        steps=({"apply": lab(driver, card("a", driver, "x", of=2), card("b", driver, lost, of=2))},
               {"wait": 5}, wanted("first", "first"), {"wait": 5},
               {"apply": [card("a", driver, "x", generation=2)]}, {"delete": "resourceslice/b"},
               {"wait": 5}, wanted("want", "job"), {"wait": 5}),
    )  # fmt: skip


def only_slice_is_wiped(new):
    """The only slice of the cluster was deleted, as a kubelet does some time after its driver."""
    driver = f"{new('d')}.test"
    return Invented(
        about="job",
        told=(rf"slice s of pool {driver}/n, for node n, was deleted, by redra:incidents at",),
        steps=({"apply": lab(driver, card("s", driver, "x"))}, {"wait": 5},
               {"delete": "resourceslice/s"}, {"wait": 5}, wanted("want", "job"), {"wait": 5}),
    )  # fmt: skip


def half_of_a_pool_is_a_generation_behind(new):
    """A driver has written one of its slices with a newer generation, and not the other."""
    driver = f"{new('d')}.test"
    return Invented(
        about="job",
        told=(rf"pool {driver}/n is incomplete since slice a was published with generation 3, by",
              "before, generation 2 was complete with 2 slices a, b",
              "slice b is still of generation 2"),
        steps=({"apply": lab(driver, *(card(name, driver, f"x{name}", generation=2, of=2)
                                       for name in ("a", "b")))}, {"wait": 5},
               {"apply": [card("a", driver, "xa", generation=3, of=2)]}, {"wait": 5},
               wanted("want", "job"), {"wait": 5}),
    )  # fmt: skip


WITHDRAWN = (
    card_falls_off_the_bus,
    slice_is_missing_after_a_restart,
    only_slice_is_wiped,
    half_of_a_pool_is_a_generation_behind,
)
