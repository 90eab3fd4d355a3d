"""Device taints and tolerations as eviction reads them, and the instant of the eviction.

Parity: controllers.md 1.2 and 1.3; the match itself is that of allocator.md 9.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.values import json_tree, timestamps
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import SECOND, Instant, TimestampError
from app.domain.values.tolerations import fits

NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoExecuteTaint:
    """A taint with effect NoExecute."""

    key: str
    value: str
    time_added: Instant


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class EvictionReason:
    """A taint that is a reason for an eviction, with its location.

    Sorts as upstream lists reasons: rules by name first, then slice taints by driver, pool, device
    and position. For a rule only `rule` and `rule_uid` are set, for a slice taint the others.
    """

    is_slice: bool
    rule: str = ""
    rule_uid: Uid = NO_UID
    driver: str = ""
    pool: str = ""
    device: str = ""
    index: int = 0

    def json(self) -> JsonObject:
        """The reason as JSON, for the summary of a decision."""
        if not self.is_slice:
            return {"rule": self.rule}
        return {
            "driver": self.driver,
            "pool": self.pool,
            "device": self.device,
            "taint": self.index,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """The instant of an eviction, and all its reasons, sorted and without duplicates."""

    time: Instant
    reasons: tuple[EvictionReason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSelector:
    """The `deviceSelector` of a rule; None matches any value."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """True when all set fields are equal."""
        return (
            (self.driver is None or self.driver == driver)
            and (self.pool is None or self.pool == pool)
            and (self.device is None or self.device == device)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRule:
    """A DeviceTaintRule. `selector` is None when the rule has none, and then it selects nothing."""

    name: str
    uid: Uid
    generation: int
    effect: str
    taint: NoExecuteTaint
    selector: RuleSelector | None
    spec: JsonView

    def selects(self, driver: str, pool: str, device: str) -> bool:
        """True when the rule's selector matches this device."""
        return self.selector is not None and self.selector.matches(driver, pool, device)


def read_taint(tree: JsonView) -> NoExecuteTaint:
    """A taint of a slice or rule; stored objects always have `timeAdded`."""
    return NoExecuteTaint(
        key=json_tree.text(tree, "key"),
        value=json_tree.text(tree, "value"),
        time_added=_instant(json_tree.text(tree, "timeAdded")),
    )


def read_rule(tree: JsonObject) -> EvictionRule:
    """A DeviceTaintRule in the storage version."""
    spec = meta.spec(tree)
    selector = spec.get("deviceSelector")
    return EvictionRule(
        name=meta.name(tree),
        uid=meta.uid(tree),
        generation=meta.generation(tree) or 0,
        effect=json_tree.text(spec, "taint", "effect"),
        taint=read_taint(json_tree.mapping(spec, "taint")),
        selector=_read_selector(selector) if isinstance(selector, dict) else None,
        spec=spec,
    )


def eviction_time(
    taint: NoExecuteTaint, tolerations: Sequence[JsonObject], *, empty_effect_counts: bool = False
) -> Instant | None:
    """The instant at which this taint evicts a pod with these tolerations; None for never.

    One matching toleration without seconds means never; otherwise the smallest number of seconds
    counts. Example: matching tolerations of 60 s and 30 s give `time_added` + 30 s. Parity:
    controllers.md C2; a toleration with an empty effect does not count here.
    """
    seconds: int | None = None
    for toleration in tolerations:
        effect = toleration.get("effect") or ""
        if effect != NO_EXECUTE and not (empty_effect_counts and effect == ""):
            continue
        if not matches(toleration, taint):
            continue
        limit = toleration.get("tolerationSeconds")
        if limit is None:
            return None
        seconds = max(0, limit) if seconds is None else min(seconds, max(0, limit))
    return Instant(taint.time_added + (seconds or 0) * SECOND)


def matches(toleration: JsonView, taint: NoExecuteTaint) -> bool:
    """True when key, operator and value of the toleration match; the caller compares effects."""
    return fits(
        toleration.get("key") or "",
        toleration.get("operator") or "",
        toleration.get("value") or "",
        taint_key=taint.key,
        taint_value=taint.value,
    )


def earliest(evictions: Iterable[Eviction]) -> Eviction | None:
    """The union of several evictions: the earliest instant, all reasons."""
    time: Instant | None = None
    reasons: set[EvictionReason] = set()
    for eviction in evictions:
        time = eviction.time if time is None else min(time, eviction.time)
        reasons.update(eviction.reasons)
    return None if time is None else Eviction(time=time, reasons=tuple(sorted(reasons)))


def _read_selector(tree: JsonView) -> RuleSelector:
    def field(name: str) -> str | None:
        value = tree.get(name)
        return value if isinstance(value, str) else None

    return RuleSelector(driver=field("driver"), pool=field("pool"), device=field("device"))


def _instant(text: str) -> Instant:
    try:
        return timestamps.parse(text)
    except TimestampError:
        return Instant(0)
