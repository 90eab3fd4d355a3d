"""Counters, gauges and histograms in memory, written in Prometheus' text format.

One registry per process; `render` is what `/metrics` serves. The number of label combinations is
bounded: past the bound, new ones are added up under the label `overflow="true"`.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

BUCKETS_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
"""Upper bounds of histogram buckets."""

_Labels = tuple[tuple[str, str], ...]
_OVERFLOW: _Labels = (("overflow", "true"),)


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    total: float = 0.0


@dataclass(slots=True)
class _Family:
    kind: str
    values: dict[_Labels, float] = field(default_factory=dict)
    histograms: dict[_Labels, _Histogram] = field(default_factory=dict)


class Telemetry:
    """A Meter that can be read. `help` gives the sentence per name, `series_max` bounds labels."""

    def __init__(self, *, help: dict[str, str] | None = None, series_max: int = 1_000) -> None:
        self._help = help or {}
        self._series_max = series_max
        self._families: dict[str, _Family] = {}

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        values = self._family(name, "counter").values
        place = self._place(values, labels)
        values[place] = values.get(place, 0.0) + amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        values = self._family(name, "gauge").values
        values[self._place(values, labels)] = value

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Put a value into a histogram."""
        histograms = self._family(name, "histogram").histograms
        place = self._place(histograms, labels)
        histogram = histograms.setdefault(place, _Histogram())
        histogram.counts[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        histogram.total += seconds

    def value(self, name: str, **labels: str) -> float:
        """The present value of a counter or gauge, the number of values of a histogram."""
        family = self._families.get(name)
        place = tuple(sorted(labels.items()))
        if family is None:
            return 0.0
        if family.kind == "histogram":
            histogram = family.histograms.get(place)
            return 0.0 if histogram is None else float(sum(histogram.counts))
        return family.values.get(place, 0.0)

    def render(self) -> str:
        """Everything in Prometheus' text format 0.0.4, sorted by name and labels."""
        lines: list[str] = []
        for name in sorted(self._families):
            family = self._families[name]
            if name in self._help:
                lines.append(f"# HELP {name} {self._help[name]}")
            lines.append(f"# TYPE {name} {family.kind}")
            lines += [
                f"{name}{_label_text(place)} {_number(family.values[place])}"
                for place in sorted(family.values)
            ]
            for place in sorted(family.histograms):
                lines += _histogram_lines(name, place, family.histograms[place])
        return "\n".join(lines) + "\n" if lines else ""

    def _family(self, name: str, kind: str) -> _Family:
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = _Family(kind)
        assert family.kind == kind, f"{name} is a {family.kind}, not a {kind}"
        return family

    def _place(
        self, known: dict[_Labels, float] | dict[_Labels, _Histogram], labels: dict[str, str]
    ) -> _Labels:
        place = tuple(sorted(labels.items()))
        if place not in known and len(known) >= self._series_max:
            return _OVERFLOW
        return place


class NoTelemetry:
    """A Meter that forgets; for commands that serve no metrics."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Forget."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Forget."""

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Forget."""


def _histogram_lines(name: str, place: _Labels, histogram: _Histogram) -> list[str]:
    lines: list[str] = []
    count = 0
    for bound, amount in zip((*BUCKETS_SECONDS, None), histogram.counts, strict=True):
        count += amount
        label = "+Inf" if bound is None else _number(bound)
        lines.append(f"{name}_bucket{_label_text((*place, ('le', label)))} {count}")
    lines.append(f"{name}_sum{_label_text(place)} {_number(histogram.total)}")
    lines.append(f"{name}_count{_label_text(place)} {count}")
    return lines


def _label_text(place: _Labels) -> str:
    if not place:
        return ""
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in place) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
