"""Metrics in Prometheus' text format."""

import pytest

from app.adapters.telemetry import Telemetry


def test_nothing_measured_renders_nothing():
    assert Telemetry().render() == ""


def test_counters_add_and_gauges_keep_the_last():
    meter = Telemetry(help={"redra_events_total": "Events appended."})
    meter.count("redra_events_total", history="a")
    meter.count("redra_events_total", 2, history="a")
    meter.count("redra_events_total", 0.5, history="b")
    meter.gauge("redra_head", 7)
    meter.gauge("redra_head", 3)
    assert meter.render() == (
        "# HELP redra_events_total Events appended.\n"
        "# TYPE redra_events_total counter\n"
        'redra_events_total{history="a"} 3\n'
        'redra_events_total{history="b"} 0.5\n'
        "# TYPE redra_head gauge\n"
        "redra_head 3\n"
    )
    assert meter.value("redra_events_total", history="a") == 3
    assert meter.value("redra_unknown") == 0


def test_histogram_counts_each_value_in_every_bucket_above_it():
    meter = Telemetry()
    for seconds in (0.0005, 0.003, 0.003, 99.0):
        meter.observe("redra_append_seconds", seconds, kind="x")
    lines = meter.render().splitlines()
    assert 'redra_append_seconds_bucket{kind="x",le="0.0005"} 1' in lines
    assert 'redra_append_seconds_bucket{kind="x",le="0.0025"} 1' in lines
    assert 'redra_append_seconds_bucket{kind="x",le="0.005"} 3' in lines
    assert 'redra_append_seconds_bucket{kind="x",le="10"} 3' in lines
    assert 'redra_append_seconds_bucket{kind="x",le="+Inf"} 4' in lines
    assert 'redra_append_seconds_sum{kind="x"} 99.0065' in lines
    assert 'redra_append_seconds_count{kind="x"} 4' in lines


def test_label_values_are_escaped():
    meter = Telemetry()
    meter.gauge("redra_x", 1, text='a"b\\c\nd')
    assert r'redra_x{text="a\"b\\c\nd"} 1' in meter.render()


def test_labels_beyond_the_bound_are_added_up():
    meter = Telemetry(series_max=2)
    for number in range(5):
        meter.count("redra_x", kind=f"n{number}")
    meter.count("redra_x", kind="n0")
    assert meter.value("redra_x", kind="n0") == 2
    assert meter.value("redra_x", overflow="true") == 3


def test_name_has_one_kind():
    meter = Telemetry()
    meter.count("redra_x")
    with pytest.raises(AssertionError, match="redra_x is a counter"):
        meter.gauge("redra_x", 1)
