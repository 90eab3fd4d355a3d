import pytest

from projections.counters import CountersProjection, decimal_text
from tests.unit.projections.log_of import LogOf, allocation, device, slice_spec


@pytest.fixture
def log() -> LogOf:
    made = LogOf(CountersProjection())
    sets = [{"name": "gpu", "counters": {"memory": {"value": "80"}, "slices": {"value": "7"}}}]
    made.put("slice", "counters", spec=slice_spec("p", sharedCounters=sets, count=2))
    made.put(
        "slice", "devices", spec=slice_spec("p", part("big", "40"), part("small", "2.5"), count=2)
    )
    made.touched()
    return made


def part(name: str, memory: str) -> dict:
    counters = {"memory": {"value": memory}}
    return device(name, consumesCounters=[{"counterSet": "gpu", "counters": counters}])


def memory(log: LogOf) -> list:
    row = log.row("view_counters", "d", "p", "gpu", "memory")
    holders = [(one["device"], one["amount"], one["claims"]) for one in row["holders"]]
    return [row["capacity"], row["used"], row["free"], holders]


def test_an_allocated_device_takes_its_counters(log: LogOf) -> None:
    assert memory(log) == ["80", "0", "80", []]
    log.put("claim", "ns/a", status=allocation("p/big"))
    assert memory(log) == ["80", "40", "40", [("big", "40", ["ns/a"])]]
    log.put("claim", "ns/b", status=allocation("p/small"))
    assert memory(log) == [
        "80",
        "42.5",
        "37.5",
        [("big", "40", ["ns/a"]), ("small", "2.5", ["ns/b"])],
    ]
    log.delete("claim", "ns/a")
    assert memory(log) == ["80", "2.5", "77.5", [("small", "2.5", ["ns/b"])]]


def test_a_shared_device_takes_its_counters_once(log: LogOf) -> None:
    log.put("claim", "ns/a", status=allocation("p/big", shareID="1"))
    log.put("claim", "ns/b", status=allocation("p/big", shareID="2"))
    assert memory(log) == ["80", "40", "40", [("big", "40", ["ns/a", "ns/b"])]]


def test_administrative_access_takes_nothing(log: LogOf) -> None:
    log.put("claim", "ns/a", status=allocation("p/big", adminAccess=True))
    assert memory(log) == ["80", "0", "80", []]


def test_a_counter_may_be_overdrawn(log: LogOf) -> None:
    log.put("slice", "more", spec=slice_spec("p", part("huge", "60"), count=3))
    log.put("claim", "ns/a", status=allocation("p/big", "p/huge"))
    assert log.row("view_counters", "d", "p", "gpu", "memory")["free"] == "-20"


def test_only_counters_that_moved_are_touched(log: LogOf) -> None:
    log.put("claim", "ns/a", status=allocation("p/big"))
    assert log.touched() == {"view_counters": [("d", "p", "gpu", "memory")]}
    log.put("claim", "ns/a", status=allocation("p/big") | {"reservedFor": []})
    assert log.touched() == {}


def test_only_the_newest_generation_counts(log: LogOf) -> None:
    log.put("claim", "ns/a", status=allocation("p/big"))
    log.put("slice", "new", spec=slice_spec("p", device("x"), generation=2))
    assert log.view.row("view_counters", ("d", "p", "gpu", "memory")) is None
    log.delete("slice", "new")
    assert memory(log)[1] == "40"


def test_a_slice_that_loses_its_counters_loses_its_rows(log: LogOf) -> None:
    log.put("slice", "counters", spec=slice_spec("p", count=2))
    assert log.view.row("view_counters", ("d", "p", "gpu", "memory")) is None


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0"),
        (1_500_000_000, "1.5"),
        (-20_000_000_000, "-20"),
        (1, "0.000000001"),
        (-1, "-0.000000001"),
    ],
)
def test_amounts_are_written_as_decimal_numbers(nanos: int, text: str) -> None:
    assert decimal_text(nanos) == text
