import pytest

from projections.inventory import InventoryProjection
from tests.unit.projections.log_of import LogOf, device, slice_spec, taint
from tests.worlds.plain_selectors import PlainCompiler


@pytest.fixture
def log() -> LogOf:
    return LogOf(InventoryProjection(compiler=PlainCompiler()))


def pool(log: LogOf, columns: str) -> list:
    return log.part("view_pools", "d", "p", columns=columns)


def test_a_pool_is_complete_when_all_its_slices_are_there(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a"), count=2))
    assert pool(log, "state slices_expected slices_present") == ["incomplete", 2, 1]
    log.put("slice", "s2", spec=slice_spec("p", device("b"), count=2))
    assert pool(log, "state complete problem devices") == ["usable", True, "", 2]


def test_a_newer_generation_makes_older_slices_obsolete(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a"), device("b")))
    log.put("slice", "s2", spec=slice_spec("p", device("a"), generation=2))
    assert pool(log, "generation slices_present slices_obsolete") == [2, 1, 1]
    assert log.row("view_devices", "d", "p", "a")["slice"] == "s2"
    assert log.view.row("view_devices", ("d", "p", "b")) is None
    log.delete("slice", "s2")
    assert log.row("view_devices", "d", "p", "b")["generation"] == 1


def test_an_invalid_pool_says_why(log: LogOf) -> None:
    uses = [{"counterSet": "set", "counters": {"c": {"value": "1"}}}]
    log.put("slice", "s1", spec=slice_spec("p", device("a", consumesCounters=uses)))
    assert pool(log, "state valid problem") == ["invalid", False, "counter set set not found"]


def test_a_pool_without_slices_has_no_row(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    log.touched()
    log.delete("slice", "s1")
    assert log.touched() == {"view_pools": [("d", "p")], "view_devices": [("d", "p", "a")]}
    assert log.view.row("view_pools", ("d", "p")) is None
    assert log.view.row("view_devices", ("d", "p", "a")) is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"nodeName": "n7"}, ["node", "n7"]),
        ({"allNodes": True}, ["all", ""]),
        ({"perDeviceNodeSelection": True}, ["device", ""]),
        ({"nodeSelector": {"nodeSelectorTerms": []}}, ["selector", ""]),
    ],
)
def test_a_pool_says_where_it_may_be_used(log: LogOf, place: dict, expected: list) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a"), **place))
    assert pool(log, "placement node") == expected


def test_a_slice_touches_only_its_own_devices(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a"), count=2))
    log.put("slice", "t1", spec=slice_spec("q", device("a")))
    log.touched()
    log.put("slice", "s2", spec=slice_spec("p", device("b"), count=2))
    assert log.touched() == {"view_pools": [("d", "p")], "view_devices": [("d", "p", "b")]}


def test_a_device_shows_its_taints_with_their_rules(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a", taints=[taint("old:None")])))
    assert log.row("view_devices", "d", "p", "a")["blocked"] is False
    log.put("rule", "r", spec={"deviceSelector": {"pool": "p"}, "taint": taint("k=v:NoSchedule")})
    row = log.row("view_devices", "d", "p", "a")
    found = [(one["key"], one["value"], one["effect"], one["rule"]) for one in row["taints"]]
    assert found == [("old", "", "None", ""), ("k", "v", "NoSchedule", "r")]
    assert row["blocked"] is True
    log.delete("rule", "r")
    assert log.row("view_devices", "d", "p", "a")["blocked"] is False


def test_a_status_of_a_rule_touches_nothing(log: LogOf) -> None:
    spec = {"deviceSelector": {}, "taint": taint("k:NoExecute")}
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    log.put("rule", "r", spec=spec)
    log.touched()
    log.put("rule", "r", spec=spec, status={"conditions": [{"type": "EvictionInProgress"}]})
    assert log.touched() == {}


def test_a_patch_changes_the_effective_device_and_is_named(log: LogOf) -> None:
    attributes = {"model": {"string": "a100"}}
    capacity = {"memory": {"value": "80Gi"}}
    log.put(
        "slice",
        "s1",
        spec=slice_spec("p", device("a", attributes=attributes, capacity=capacity)),
    )
    row = log.row("view_devices", "d", "p", "a")
    assert (row["attributes"], row["capacity"]) == ({"model": "a100"}, {"memory": "80Gi"})
    devices = {"attributes": {"d/model": {"string": "h100"}}, "capacity": {}}
    log.put("patch", "fix", spec={"devices": devices})
    row = log.row("view_devices", "d", "p", "a")
    assert row["attributes"] == {"model": "h100"}
    assert row["patches"] == [
        {"patch": "fix", "field": "attributes", "name": "d/model", "removed": False}
    ]


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_the_older_of_two_patches_of_one_second_wins(log: LogOf, names: str) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    for name in names:
        devices = {"attributes": {"d/by": {"string": name}}}
        log.put("patch", name, spec={"devices": devices})
    log.put("patch", names[0], spec={"devices": {"attributes": {"d/by": {"string": "older"}}}})
    assert log.row("view_devices", "d", "p", "a")["attributes"] == {"d/by": "older"}
    copy = InventoryProjection(compiler=PlainCompiler())
    copy.load(log.view.dump())
    assert copy.row("view_devices", ("d", "p", "a")) == log.row("view_devices", "d", "p", "a")


def test_a_rule_without_selector_taints_only_with_its_quirk() -> None:
    log = LogOf(InventoryProjection(rules_without_selector_match=False))
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    log.put("rule", "r", spec={"taint": taint("k:NoExecute")})
    assert log.part("view_devices", "d", "p", "a", columns="taints blocked") == [[], False]


def test_a_patch_whose_selector_fails_is_named_on_the_device(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    selector = {"cel": {"expression": 'device.attributes["d"].model == "x"'}}
    devices = {"filter": {"selectors": [selector]}, "attributes": {"d/x": {"int": 1}}}
    log.put("patch", "fix", spec={"devices": devices})
    row = log.row("view_devices", "d", "p", "a")
    assert row["patch_problems"] == [{"patch": "fix", "problem": "no such key"}]
    assert row["patches"] == []


def test_an_unreadable_slice_counts_as_absent_and_is_named(log: LogOf) -> None:
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    bad = device("a", capacity={"memory": {"value": "lots"}})
    log.put("slice", "s1", spec=slice_spec("p", bad))
    assert log.view.row("view_pools", ("d", "p")) is None
    assert isinstance(log.view, InventoryProjection)
    assert list(log.view.unreadable) == [("resourceslices", "s1")]
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    assert log.view.row("view_pools", ("d", "p")) is not None
    assert log.view.unreadable == {}


def test_a_rule_is_known_by_its_key_whatever_it_calls_itself(log: LogOf) -> None:
    spec = {"deviceSelector": {}, "taint": taint("k:NoExecute")}
    log.put("slice", "s1", spec=slice_spec("p", device("a")))
    log.put("rule", "r", spec=spec, metadata={"name": 7})
    log.delete("rule", "r")
    assert log.row("view_devices", "d", "p", "a")["taints"] == []


def test_a_slice_published_often_is_compiled_once(log: LogOf) -> None:
    for _ in range(5):
        log.put("slice", "s1", spec=slice_spec("p", device("a")))
    assert isinstance(log.view, InventoryProjection)
    inventory = log.view.inventory
    first = inventory.slice("s1")
    assert log.view.inventory.slice("s1") is first
