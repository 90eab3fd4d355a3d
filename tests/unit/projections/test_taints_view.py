import pytest

from projections.taints import TaintsProjection
from tests.counting import counted
from tests.unit.projections.log_of import LogOf, allocation, device, reserved, slice_spec, taint


@pytest.fixture
def log() -> LogOf:
    made = LogOf(TaintsProjection())
    made.put(
        "slice",
        "s1",
        spec=slice_spec("p", device("a", taints=[taint("own:NoSchedule")]), device("b")),
    )
    made.put("slice", "s2", spec=slice_spec("q", device("a")))
    return made


def rule(log: LogOf, name: str, effect: str = "NoExecute", **selector: str) -> None:
    spec = {"deviceSelector": selector, "taint": taint(f"{name}-key:{effect}")}
    log.put("rule", name, spec=spec)


def test_taints_of_the_slice_come_before_those_of_rules(log: LogOf) -> None:
    rule(log, "z", device="a")
    rule(log, "m", pool="p")
    found = [log.part("view_taints", "d", "p", "a", n, columns="taint_key rule") for n in range(3)]
    assert found == [["own", ""], ["m-key", "m"], ["z-key", "z"]]
    assert log.part("view_taints", "d", "p", "b", 0, columns="taint_key rule") == ["m-key", "m"]
    assert log.view.row("view_taints", ("d", "p", "b", 1)) is None


def test_rows_move_up_when_a_rule_goes(log: LogOf) -> None:
    rule(log, "a", pool="p")
    rule(log, "b", pool="p")
    log.touched()
    log.delete("rule", "a")
    touched = log.touched()
    assert touched["view_taints"] == [("d", "p", "a", n) for n in range(3)] + [
        ("d", "p", "b", n) for n in range(2)
    ]
    assert touched["view_taint_rules"] == [("a",), ("b",)]
    assert log.part("view_taints", "d", "p", "b", 0, columns="rule") == ["b"]
    assert log.view.row("view_taints", ("d", "p", "b", 1)) is None


def test_a_rule_counts_what_it_matches(log: LogOf) -> None:
    rule(log, "r", device="a")
    columns = "devices device_names allocated pods"
    assert log.part("view_taint_rules", "r", columns=columns) == [2, ["d/p/a", "d/q/a"], 0, 0]
    log.put("claim", "ns/c", status=reserved(allocation("q/a"), "x", "y"))
    assert log.part("view_taint_rules", "r", columns="allocated tolerated pods") == [1, 0, 2]


def test_a_rule_without_selector_taints_everything_for_allocation(log: LogOf) -> None:
    log.put("rule", "r", spec={"taint": taint("k:NoSchedule")})
    assert log.part("view_taint_rules", "r", columns="selects devices") == [False, 3]


def test_a_rule_without_selector_evicts_nobody(log: LogOf) -> None:
    log.put("claim", "ns/c", status=reserved(allocation("q/a"), "x"))
    log.put("rule", "r", spec={"taint": taint("k:NoExecute")})
    [concerned] = log.row("view_taints", "d", "q", "a", 0)["claims"]
    assert (concerned["tolerated"], concerned["evicted_after"]) == (False, None)


def test_where_c1_is_switched_off_a_rule_without_selector_evicts_everybody():
    log = LogOf(TaintsProjection(rules_without_selector_evict=True))
    log.put("slice", "s", spec=slice_spec("p", device("a")))
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "x"))
    log.put("rule", "r", spec={"taint": taint("k:NoExecute")})
    [concerned] = log.row("view_taints", "d", "p", "a", 0)["claims"]
    assert concerned["evicted_after"] == 0


@pytest.mark.parametrize(("is_repaired", "evicted_after"), [(False, 0), (True, 60)])
def test_where_c2_is_switched_off_a_toleration_without_effect_keeps_from_eviction(
    is_repaired: bool, evicted_after: int
) -> None:
    log = LogOf(TaintsProjection(empty_effect_tolerates=is_repaired))
    tolerations = [{"operator": "Exists", "tolerationSeconds": 60}]
    log.put("slice", "s", spec=slice_spec("p", device("a")))
    log.put("claim", "ns/c", status=reserved(allocation("p/a", tolerations=tolerations), "x"))
    log.put("rule", "r", spec={"taint": taint("k:NoExecute"), "deviceSelector": {"pool": "p"}})
    [concerned] = log.row("view_taints", "d", "p", "a", 0)["claims"]
    assert (concerned["tolerated"], concerned["evicted_after"]) == (True, evicted_after)


@pytest.mark.parametrize(
    "switches", [{"with_rules": False}, {"rules_without_selector_match": False}]
)
def test_a_rule_that_the_history_ignores_taints_nothing(switches: dict) -> None:
    log = LogOf(TaintsProjection(**switches))
    log.put("slice", "s", spec=slice_spec("p", device("a")))
    log.put("claim", "ns/c", status=reserved(allocation("p/a"), "x"))
    log.put("rule", "r", spec={"taint": taint("k:NoExecute")})
    assert log.part("view_taint_rules", "r", columns="devices allocated pods") == [0, 0, 0]
    assert log.view.row("view_taints", ("d", "p", "a", 0)) is None


@pytest.mark.parametrize(
    ("tolerations", "tolerated", "evicted_after"),
    [
        ([], False, 0),
        ([{"operator": "Exists"}], True, 0),
        ([{"operator": "Exists", "effect": "NoExecute"}], True, None),
        ([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}], True, 60),
        ([{"key": "other", "operator": "Exists", "effect": "NoExecute"}], False, 0),
        (
            [
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5},
            ],
            True,
            0,
        ),
    ],
)
def test_a_claim_says_how_it_bears_a_taint(
    log: LogOf, tolerations: list, tolerated: bool, evicted_after: int | None
) -> None:
    rule(log, "r", pool="q")
    log.put("claim", "ns/c", status=reserved(allocation("q/a", tolerations=tolerations), "x"))
    [found] = log.row("view_taints", "d", "q", "a", 0)["claims"]
    assert found == {
        "claim": "ns/c",
        "device": "d/q/a",
        "request": "r",
        "tolerated": tolerated,
        "evicted_after": evicted_after,
        "pods": ["x"],
    }


def test_a_claim_touches_its_device_and_the_rules_over_it(log: LogOf) -> None:
    rule(log, "p-rule", pool="p")
    rule(log, "q-rule", pool="q")
    log.touched()
    log.put("claim", "ns/c", status=allocation("q/a"))
    assert log.touched() == {
        "view_taints": [("d", "q", "a", 0)],
        "view_taint_rules": [("q-rule",)],
    }


def test_a_rule_concerns_a_claim_whose_device_is_gone(log: LogOf) -> None:
    rule(log, "r", pool="q")
    log.put("claim", "ns/c", status=allocation("q/a"))
    log.delete("slice", "s2")
    assert log.part("view_taint_rules", "r", columns="devices allocated") == [0, 1]
    assert log.view.row("view_taints", ("d", "q", "a", 0)) is None


def test_devices_of_an_older_generation_have_no_taints_in_force(log: LogOf) -> None:
    log.put("slice", "s3", spec=slice_spec("p", device("b"), generation=2))
    assert log.view.row("view_taints", ("d", "p", "a", 0)) is None


def test_rows_of_a_device_take_time_by_their_number(log: LogOf) -> None:
    """Each row of a device listed all of its taints, so a hundred rules cost ten thousand looks."""

    def calls(rules: int) -> int:
        made = LogOf(TaintsProjection())
        made.put("slice", "s", spec=slice_spec("p", device("a")))
        for number in range(rules):
            rule(made, f"r{number:03}", pool="p")
        keys = [("d", "p", "a", number) for number in range(rules)]
        rows, count = counted(lambda: [made.view.row("view_taints", key) for key in keys])
        assert [row and row["rule"] for row in rows] == [f"r{each:03}" for each in range(rules)]
        return count

    assert calls(60) < 2.5 * calls(30)


def test_listed_taints_of_a_device_are_those_of_now(log: LogOf) -> None:
    rule(log, "b", pool="p")
    assert log.part("view_taints", "d", "p", "a", 1, columns="rule") == ["b"]
    rule(log, "a", device="a")
    assert log.part("view_taints", "d", "p", "a", 1, columns="rule") == ["a"]
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    assert log.part("view_taints", "d", "p", "a", 1, columns="rule") == ["b"]
    assert log.view.row("view_taints", ("d", "p", "a", 2)) is None
    log.delete("rule", "a")
    assert log.part("view_taints", "d", "p", "a", 0, columns="rule") == ["b"]


def test_rule_for_one_device_counts_its_claims_without_a_look_at_all_that_are_held() -> None:
    def calls(held: int) -> int:
        made = LogOf(TaintsProjection())
        devices = [device(f"d{number:03}") for number in range(held)]
        made.put("slice", "s", spec=slice_spec("p", *devices))
        for number in range(held):
            made.put("claim", f"ns/c{number}", status=reserved(allocation(f"p/d{number:03}"), "x"))
        rule(made, "r", driver="d", pool="p", device="d001")
        rule(made, "unheld", driver="d", pool="p", device="other")
        assert made.part("view_taint_rules", "unheld", columns="allocated pods") == [0, 0]
        row, count = counted(made.view.row, "view_taint_rules", ("r",))
        assert row is not None
        assert (row["allocated"], row["pods"]) == (1, 1)
        return count

    # What the rule taints is looked for among the devices of its pool.
    assert calls(80) < calls(40) + 40 * 4
