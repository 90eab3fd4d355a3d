"""The allocated state follows from claims, whatever their order."""

from app.domain.allocation import AllocatedState
from tests.worlds.builders import DRIVER, holding, result

POOL = (DRIVER, "pool")
ONE = (DRIVER, "pool", "d0")


def share(name: str, amount: str) -> dict:
    return result("d0", shareID=name, consumedCapacity={"memory": amount})


def test_admin_access_is_not_counted() -> None:
    state = AllocatedState.of_claims([holding(result("d0", adminAccess=True))])
    assert not state.is_allocated(ONE)


def test_shares_are_summed_per_device_and_released_again() -> None:
    state = AllocatedState.of_claims([holding(share("a", "1Gi"), name="x")])
    state.add_claim(holding(share("b", "512Mi"), name="y"))
    assert not state.is_dedicated(ONE)
    assert state.aggregated(ONE) == {"memory": 1536 * 2**20 * 10**9}
    state.remove_claim(holding(name="x"))
    assert state.aggregated(ONE) == {"memory": 512 * 2**20 * 10**9}
    state.remove_claim(holding(name="y"))
    assert state.aggregated(ONE) is None
    assert not state.is_allocated(ONE)


def test_devices_in_use_are_those_taken_as_a_whole_and_those_with_shares() -> None:
    without_amount = result("d1", shareID="a")
    claims = [holding(share("a", "1Gi"), name="x"), holding(result("d2"), name="y")]
    state = AllocatedState.of_claims([*claims, holding(without_amount, name="z")])
    devices = [(DRIVER, "pool", f"d{number}") for number in range(4)]
    assert state.in_use(devices, shares_count=False) == (0b0100, 0b0001)
    assert state.in_use(devices, shares_count=True) == (0b0100, 0b0011)
    assert AllocatedState.of_claims([]).in_use(devices, shares_count=True) == (0, 0)


def test_share_is_dedicated_when_consumable_capacity_is_off() -> None:
    state = AllocatedState.of_claims([holding(share("a", "1"))], consumable_capacity=False)
    assert state.is_dedicated(ONE)
    assert state.aggregated(ONE) is None


def test_adding_the_same_claim_again_replaces_what_it_held() -> None:
    state = AllocatedState.of_claims([holding(result("d0"))])
    state.add_claim(holding(result("d1")))
    assert not state.is_allocated(ONE)
    assert state.is_dedicated((DRIVER, "pool", "d1"))


def test_claim_in_flight_holds_until_it_is_written_or_forgotten() -> None:
    state = AllocatedState()
    claim = holding(result("d0"))
    pending = {"metadata": claim["metadata"]}
    state.add_in_flight(pending, claim["status"]["allocation"])
    state.add_claim(pending)
    assert state.is_in_flight(pending)
    assert state.is_dedicated(ONE)
    state.remove_in_flight(pending)
    assert not state.is_allocated(ONE)
    state.add_in_flight(pending, claim["status"]["allocation"])
    state.add_claim(claim)
    state.remove_in_flight(pending)
    assert state.is_dedicated(ONE)


def test_claim_that_somebody_else_wrote_in_flight_keeps_what_is_written() -> None:
    """Until the claim is known to be given back, both are in use; afterwards what is written."""
    other = (DRIVER, "pool", "d1")
    written, chosen = holding(result("d1")), holding(result("d0"))
    state = AllocatedState.of_claims([written])
    state.add_in_flight(chosen, chosen["status"]["allocation"])
    assert (state.is_dedicated(ONE), state.is_dedicated(other)) == (True, True)
    state.copy().remove_in_flight(chosen)
    assert (state.is_dedicated(ONE), state.is_dedicated(other)) == (True, True)
    state.remove_in_flight(chosen)
    assert (state.is_dedicated(ONE), state.is_dedicated(other)) == (False, True)
    state.add_in_flight(chosen, chosen["status"]["allocation"])
    state.add_claim({"metadata": chosen["metadata"]})
    assert (state.is_dedicated(ONE), state.is_dedicated(other)) == (True, False)
    state.remove_in_flight(chosen)
    assert (state.is_dedicated(ONE), state.is_dedicated(other)) == (False, False)


def test_claim_written_as_it_was_chosen_counts_once() -> None:
    claim = holding(share("a", "1Gi"))
    state = AllocatedState.of_claims([claim])
    stamp = state.stamp_of(POOL)
    state.add_in_flight(claim, claim["status"]["allocation"])
    assert state.aggregated(ONE) == {"memory": 2**30 * 10**9}
    state.remove_in_flight(claim)
    assert state.aggregated(ONE) == {"memory": 2**30 * 10**9}
    assert state.stamp_of(POOL) == stamp, "nothing changed"


def test_release_of_a_holder_ends_what_it_has_written_and_in_flight() -> None:
    """A write that comes afterwards counts as it is written."""
    written, chosen = holding(result("d1")), holding(result("d0"))
    state = AllocatedState.of_claims([written])
    state.add_in_flight(chosen, chosen["status"]["allocation"])
    (holder,) = state.holders(ONE)
    state.release("ns/unknown")
    assert state.is_in_flight(chosen)
    state.release(holder)
    assert not state.is_in_flight(chosen)
    assert not state.is_allocated(ONE)
    assert not state.is_allocated((DRIVER, "pool", "d1"))
    state.remove_in_flight(chosen)
    assert not state.is_allocated((DRIVER, "pool", "d1"))
    state.add_claim({"metadata": chosen["metadata"]})
    assert not state.is_allocated(ONE)


def test_stamp_grows_with_changes_of_the_pool_only() -> None:
    state = AllocatedState()
    before = state.stamp_of(POOL)
    state.add_claim(holding(result("d0", pool="other")))
    assert state.stamp_of(POOL) == before
    state.add_claim(holding(result("d0"), name="y"))
    assert state.stamp_of(POOL) > before
    again = state.stamp_of(POOL)
    state.add_claim(holding(result("d0"), name="y"))
    assert state.stamp_of(POOL) == again


def test_holders_are_named_and_copies_are_independent() -> None:
    state = AllocatedState.of_claims([holding(result("d0"))])
    copied = state.copy()
    copied.remove_claim(holding())
    assert state.holders(ONE) == ("other/held",)
    assert copied.holders(ONE) == ()
