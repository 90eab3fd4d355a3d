"""Metrics in Prometheus' text format."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.adapters.telemetry import Telemetry
from app.analysis.metrics import FAMILIES, Family

EVENTS = Family(
    name="redra_events_total", kind="counter", help="Events appended.", labels=("history",)
)
HEAD = Family(name="redra_head", kind="gauge", help="The head.", labels=())
SECONDS = Family(
    name="redra_x_seconds", kind="histogram", help="x", labels=("kind",), buckets=(0.001, 0.01)
)


def lines(meter: Telemetry) -> list[str]:
    return [line for line in meter.render().splitlines() if not line.startswith("#")]


def test_counters_add_and_gauges_keep_the_last():
    meter = Telemetry((EVENTS, HEAD))
    meter.count("redra_events_total", history="a")
    meter.count("redra_events_total", 2, history="a")
    meter.count("redra_events_total", 0.5, history="b")
    meter.gauge("redra_head", 7)
    meter.gauge("redra_head", 3)
    assert lines(meter) == [
        'redra_events_total{history="a"} 3.0',
        'redra_events_total{history="b"} 0.5',
        "redra_head 3.0",
    ]
    assert "# HELP redra_events_total Events appended." in meter.render()
    assert meter.value("redra_events_total", history="a") == 3


def test_histogram_counts_each_value_in_every_bucket_above_it():
    meter = Telemetry((SECONDS,))
    for seconds in (0.001, 0.003, 99.0):
        meter.observe("redra_x_seconds", seconds, kind="x")
    assert lines(meter) == [
        'redra_x_seconds_bucket{kind="x",le="0.001"} 1.0',
        'redra_x_seconds_bucket{kind="x",le="0.01"} 2.0',
        'redra_x_seconds_bucket{kind="x",le="+Inf"} 3.0',
        'redra_x_seconds_count{kind="x"} 3.0',
        'redra_x_seconds_sum{kind="x"} 99.004',
    ]
    assert meter.value("redra_x_seconds", kind="x") == 3


def test_series_beyond_the_bound_are_added_up():
    meter = Telemetry((EVENTS,), series_max=2)
    for number in range(5):
        meter.count("redra_events_total", history=f"n{number}")
    meter.count("redra_events_total", history="n0")
    assert meter.value("redra_events_total", history="n0") == 2
    assert meter.value("redra_events_total", history="overflow") == 3


def test_name_has_one_kind():
    with pytest.raises(AssertionError, match="redra_events_total is a counter"):
        Telemetry((EVENTS,)).gauge("redra_events_total", 1, history="a")


def test_every_declared_family_can_be_measured_and_read():
    meter = Telemetry()
    for family in FAMILIES:
        labels = dict.fromkeys(family.labels, "x")
        match family.kind:
            case "counter":
                meter.count(family.name, **labels)
            case "gauge":
                meter.gauge(family.name, 1.0, **labels)
            case "histogram":
                meter.observe(family.name, 1.0, **labels)
        assert meter.value(family.name, **labels) == 1.0
    read = {found.name for found in text_string_to_metric_families(meter.render())}
    assert read == {family.name.removesuffix("_total") for family in FAMILIES}
