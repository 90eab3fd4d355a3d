"""Metrics in memory, rendered in Prometheus' text format by its own client library.

There is one registry per process; `/metrics` serves the result of `render`. The number of series of
a family is bounded: beyond the bound, new series are summed under labels with the value `overflow`.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.analysis.metrics import FAMILIES, Family

OVERFLOW = "overflow"

_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Metric: TypeAlias = Counter | Gauge | Histogram


class Telemetry:
    """A Meter whose values can be read. It accepts only the given families.

    `series_max` bounds the label combinations of each family.
    """

    def __init__(self, families: Iterable[Family] = FAMILIES, *, series_max: int = 1_000) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # it takes nothing
        self._registry = CollectorRegistry(auto_describe=False)
        self._series_max = series_max
        self._families = {family.name: family for family in families}
        self._metrics = {family.name: self._metric(family) for family in self._families.values()}
        self._series: dict[str, dict[_Labels, _Metric]] = {name: {} for name in self._families}

    def count(self, name: str, amount: float = 1.0, /, **labels: str) -> None:
        """Add to a counter."""
        metric = self._one(name, labels)
        assert isinstance(metric, Counter), f"{name} is a {self._families[name].kind}"
        metric.inc(amount)

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        metric = self._one(name, labels)
        assert isinstance(metric, Gauge), f"{name} is a {self._families[name].kind}"
        metric.set(value)

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Add a value to a histogram."""
        metric = self._one(name, labels)
        assert isinstance(metric, Histogram), f"{name} is a {self._families[name].kind}"
        metric.observe(seconds)

    def counter(self, name: str, /, **labels: str) -> Callable[[], None]:
        """A bound increment function of a counter, for hot paths."""
        metric = self._one(name, labels)
        assert isinstance(metric, Counter), f"{name} is a {self._families[name].kind}"
        return metric.inc

    def observer(self, name: str, /, **labels: str) -> Callable[[float], None]:
        """A bound observe function of a histogram, for hot paths."""
        metric = self._one(name, labels)
        assert isinstance(metric, Histogram), f"{name} is a {self._families[name].kind}"
        return metric.observe

    def value(self, name: str, /, **labels: str) -> float:
        """The present value of a counter or gauge; the number of values of a histogram."""
        suffix = "_count" if self._families[name].kind == "histogram" else ""
        return self._registry.get_sample_value(name + suffix, labels) or 0.0

    def render(self) -> str:
        """All series in Prometheus' text format 0.0.4; families without series are left out."""
        return prometheus_client.generate_latest(self._registry).decode()

    def _metric(self, family: Family) -> _Metric:
        # The library itself appends the ending of a counter.
        name = family.name.removesuffix("_total")
        match family.kind:
            case "counter":
                return Counter(name, family.help, family.labels, registry=self._registry)
            case "gauge":
                return Gauge(name, family.help, family.labels, registry=self._registry)
            case "histogram":
                return Histogram(
                    name,
                    family.help,
                    family.labels,
                    registry=self._registry,
                    buckets=family.buckets,
                )

    def _one(self, name: str, labels: dict[str, str]) -> _Metric:
        """The series for the labels; cached here because the library's look-up costs more."""
        known = self._series[name]
        place = tuple(labels.items())
        labelled = known.get(place)
        if labelled is None:
            if len(known) >= self._series_max:
                labels = dict.fromkeys(self._families[name].labels, OVERFLOW)
            metric = self._metrics[name]
            labelled = metric.labels(**labels) if self._families[name].labels else metric
            if len(known) < self._series_max:
                known[place] = labelled
        return labelled
