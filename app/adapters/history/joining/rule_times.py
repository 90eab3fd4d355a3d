"""The times in conditions of DeviceTaintRules, which may contradict the requests around them.

The controller dates a condition after it has seen the generation that the condition is about, and
before it sends the condition. Conditions have whole seconds. Parity: controllers.md 1.6.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from app.adapters.history import times
from app.domain.log import ObjectKey
from app.domain.log.records import Op, Record, TimeQuality
from app.domain.values import api_resources, condition_types, timestamps
from app.domain.values.fields import meta
from app.domain.values.timestamps import Instant, TimestampError


@dataclass(frozen=True, slots=True)
class _RuleSpec:
    """The current spec of a rule: its generation, and when it was requested, if that is known."""

    uid: str
    generation: int | None
    asked_at: Instant | None


class RuleTimes:
    """Follows the final records, in order, and finds conditions with a contradicting time."""

    def __init__(self) -> None:
        self._specs: dict[ObjectKey, _RuleSpec] = {}

    def contradict(self, record: Record) -> bool:
        """Whether a condition in the record has a time that contradicts those of requests.

        It is before the creation of the rule, or before the request for the generation that it is
        about, or after the answer that shows it; each by more than the clock skew.
        """
        tree = record.object
        if tree is None or (record.group, record.resource) != api_resources.DEVICE_TAINT_RULES:
            return False
        spec = self._noted(record)
        created = times.creation(tree)
        answered = record.observed_at if record.time_quality is TimeQuality.EXACT else None
        for observed, stamp in _stamps(record):
            is_before = created is not None and stamp < created - times.CLOCK_SKEW
            is_after = answered is not None and stamp > answered + times.CLOCK_SKEW
            requested = spec.asked_at if observed == spec.generation else None
            is_too_early = (
                requested is not None and stamp + timestamps.SECOND < requested - times.CLOCK_SKEW
            )
            if is_before or is_after or is_too_early:
                return True
        return False

    def _noted(self, record: Record) -> _RuleSpec:
        """The spec that the record shows; its request is known if this is the write of it.

        A write of a spec leaves the conditions as they are. One that shows a condition about that
        generation already is another write: the line of the spec is lost.
        """
        generation = meta.generation(record.object or {})
        spec = self._specs.get(record.key)
        if spec is None or (spec.uid, spec.generation) != (record.uid, generation):
            is_write = (
                record.op in (Op.ADDED, Op.MODIFIED)
                and not record.subresource
                and all(observed != generation for observed, _ in _stamps(record))
            )
            asked_at = record.asked_at if is_write else None
            spec = self._specs[record.key] = _RuleSpec(record.uid, generation, asked_at)
        return spec


def _stamps(record: Record) -> Iterator[tuple[int | None, Instant]]:
    """The observed generation and the time of each condition of the controller."""
    for condition in meta.conditions(record.object or {}):
        if condition.type == condition_types.EVICTION_IN_PROGRESS:
            try:
                stamp = timestamps.parse(condition.last_transition_time)
            except TimestampError:
                continue
            yield condition.observed_generation, stamp
