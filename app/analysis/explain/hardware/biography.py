"""The life of one device: who held it and when, which taints it had, how it changed.

It is folded from all events of a history up to the moment. Most events are skipped after a search
of their bytes for the device's name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.analysis.explain import sources, stuck
from app.analysis.explain.reasons import Reason, listed
from app.domain.devices import taints
from app.domain.devices.model import value_text
from app.domain.log import Event, EventType
from app.domain.log.looks import LookWatch
from app.domain.log.records import BASELINE_VERB
from app.domain.values import api_groups, api_resources, counts
from app.domain.values.fields import dra
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonView
from app.domain.values.timestamps import Instant

HOLDERS_MAX = 10
"""The number of holders shown one by one, the newest; the others are counted."""


CHANGES_MAX = 10
"""The number of attribute changes, and of taints, shown one by one, the newest."""


@dataclass(slots=True, kw_only=True)
class DeviceSpan:
    """A state that began with one event and, if it has ended, ended with another.

    `claim` is the claim that holds the device, `kind` how: `whole`, `share` or `admin`.
    """

    text: str
    claim: str = ""
    kind: str = ""
    begin: Event
    end: Event | None = None
    pods: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Consumers that are no pods, as text."""


@dataclass(slots=True, kw_only=True)
class DeviceChange:
    """One change to the published data of the device."""

    text: str
    event: Event


_KINDS = {"whole": "", "share": " as a share", "admin": " with administrative access"}
"""The way in which a claim holds a device, as the words after the claim's name."""


def _kind(holds: Sequence[dra.DeviceResult]) -> str:
    """The most that the results of one claim take of the device."""
    kinds = {
        "admin" if each.admin_access else "share" if each.share_id else "whole" for each in holds
    }
    return next(kind for kind in _KINDS if kind in kinds)


class Biography:
    """The life of one device. Feed it every event, in order.

    The taints are those of `view_taints`, which has the same switches: of slices of the pool's
    newest generation, and of rules.
    """

    def __init__(
        self,
        place: DeviceId,
        *,
        with_rules: bool = True,
        rules_without_selector_match: bool = True,
    ) -> None:
        self.place = place
        self._with_rules = with_rules
        self._rules_without_selector_match = rules_without_selector_match
        self.holders: list[DeviceSpan] = []
        self.taints: list[DeviceSpan] = []
        self.published: list[DeviceSpan] = []
        self.changes: list[DeviceChange] = []
        self._pool, self._name = place[1].encode(), place[2].encode()
        self._holding: dict[str, DeviceSpan] = {}
        self._tainting: dict[str, DeviceSpan] = {}
        self._generations: dict[str, int] = {}
        self._slices: dict[str, JsonView] = {}
        self._publishing: dict[str, DeviceSpan] = {}
        self._looks = LookWatch()
        self._was_looked_at_again = False

    def fold(self, event: Event) -> None:
        """Applies one event to the device's biography."""
        key = event.key
        if not event.is_about_object:
            return
        if event.stamp.origin is not None:
            self._looks.follow(event)
            self._was_looked_at_again |= self._looks.is_again
        if key.group != api_groups.RESOURCE:
            return
        match key.resource:
            case "resourceclaims":
                if event.uid in self._holding or self._name in event.body:
                    self._fold_claim(event)
            case "resourceslices":
                if key.name in self._generations or self._pool in event.body:
                    self._fold_slice(event)
            case "devicetaintrules":
                self._fold_rule(event)

    @property
    def is_known(self) -> bool:
        """Whether the device was ever published or allocated."""
        return bool(self.holders or self.published)

    @property
    def _extent(self) -> str:
        """The words after a statement about the past: how far that was recorded.

        A device may have been held before it was first recorded. Between two looks at a cluster,
        claims may have come and gone.
        """
        first = next(iter(self.published), None)
        is_older = first is not None and first.begin.stamp.verb == BASELINE_VERB
        return ", as far as was recorded" if is_older or self._was_looked_at_again else ""

    def reasons(self, now: Instant) -> Iterator[Reason]:
        """The reasons: publication, holders, taints, then changes."""
        yield from self._published_reasons()
        yield from self._holder_reasons(now)
        yield from self._taint_reasons(now)
        for change in self.changes[-CHANGES_MAX:]:
            event = change.event
            text = f"{change.text}, {sources.by(event)}"
            yield Reason(text=text, revision=event.revision, about=event.key)
        if (rest := len(self.changes) - CHANGES_MAX) > 0:
            yield Reason(text=counts.of(rest, "earlier change"), count=rest)

    def _published_reasons(self) -> Iterator[Reason]:
        if not self.published:
            yield Reason(text="no slice ever published it", denies=("resourceslices",))
            return
        # A new slice may come before the old one goes, and a pool may be wrong.
        present = [span for span in self.published if span.end is None]
        former = [span for span in self.published if span.end is not None]
        former.sort(key=lambda span: 0 if span.end is None else span.end.revision)
        for span in present[-CHANGES_MAX:]:
            yield sources.made(span.begin, f"published in {span.text}")
        if not present and (end := former[-1].end) is not None:
            text = f"not published any more; it was published in {former.pop().text} until then"
            yield sources.made(end, text)
        for span in former[-CHANGES_MAX:]:
            yield _former(span)

    def _holder_reasons(self, now: Instant) -> Iterator[Reason]:
        if not self.holders:
            text = f"no claim has ever held it{self._extent}"
            yield Reason(text=text, denies=("resourceclaims",))
            return
        count, spans_count = len({span.begin.uid for span in self.holders}), len(self.holders)
        held = [span for span in self.holders if span.end is None]
        state = "free now"
        if held:
            state = f"held by {listed([span.text for span in held], len(held))} now"
        text = f"{counts.of(count, 'claim')} held it so far"
        text += f", {spans_count} times in all" if spans_count > count else ""
        text += f"{self._extent}; {state}"
        spans = [_span(span, now) for span in self.holders[-HOLDERS_MAX:]]
        if (rest := spans_count - HOLDERS_MAX) > 0:
            spans.insert(0, Reason(text=counts.of(rest, "earlier one")))
        # Administrative access takes nothing, and shares go together, but not with a whole device.
        takers = [span.kind for span in held if span.kind != "admin"]
        is_twice = len(takers) > 1 and "whole" in takers
        number = "two" if len(takers) == 2 else str(len(takers))
        issue = f"one device in {number} claims at a time: " if is_twice else ""
        denies = () if held else ("resourceclaims",)
        yield Reason(text=issue + text, children=tuple(spans), count=count, denies=denies)

    def _taint_reasons(self, now: Instant) -> Iterator[Reason]:
        for span in self.taints[-CHANGES_MAX:]:
            yield _span(span, now)

    def _fold_claim(self, event: Event) -> None:
        tree = event.object
        holds = [result for result in dra.results(tree) if result.id == self.place]
        known = self._holding.get(event.uid)
        if event.type is EventType.OBJECT_DELETED or not holds:
            if known is not None:
                known.end = event
                del self._holding[event.uid]
            return
        if known is None:
            kind = _kind(holds)
            claim = f"{event.key.namespace}/{event.key.name}"
            known = DeviceSpan(
                text=f"claim {claim}{_KINDS[kind]}", claim=claim, kind=kind, begin=event
            )
            self._holding[event.uid] = known
            self.holders.append(known)
        for consumer in dra.consumers(tree):
            is_pod = (consumer.api_group, consumer.resource) == api_resources.PODS
            users = known.pods if is_pod else known.others
            user = consumer.name if is_pod else stuck.consumer_text(consumer)
            if user not in users:
                users.append(user)

    def _fold_slice(self, event: Event) -> None:
        key = event.key
        tree = event.object
        before = self._slices.get(key.name)
        entry, tainted = None, self._tainted()
        is_there = event.type is not EventType.OBJECT_DELETED
        if is_there and dra.pool_id(tree) == self.place[:2]:
            self._generations[key.name] = dra.pool(tree).generation
            entry = next(
                (one for one in dra.devices(tree) if one.get("name") == self.place[2]), None
            )
        else:
            self._generations.pop(key.name, None)
        if entry is None:
            self._slices.pop(key.name, None)
        else:
            self._slices[key.name] = entry
        self._fold_published(event, entry, is_first=before is None)
        if entry is not None and before is not None:
            self._compare(event, before, entry)
        self._fold_taints(event, tainted)

    def _fold_published(self, event: Event, entry: JsonView | None, *, is_first: bool) -> None:
        if entry is not None:
            text = f"slice {event.key.name} of pool generation {dra.pool(event.object).generation}"
            if is_first:
                span = self._publishing[event.key.name] = DeviceSpan(text=text, begin=event)
                self.published.append(span)
            # A driver that publishes anew may write the same slice with the next generation.
            self._publishing[event.key.name].text = text
        elif entry is None and (ended := self._publishing.pop(event.key.name, None)) is not None:
            ended.end = event

    def _tainted(self) -> set[str]:
        """The driver's own taints: of the first slice of the newest generation that has it."""
        newest = max(self._generations.values(), default=0)
        names = sorted(name for name in self._slices if self._generations[name] == newest)
        entry = self._slices[names[0]] if names else {}
        return {taints.taint_of(tree).text for tree in dra.device_taints(entry)}

    def _fold_taints(self, event: Event, old: set[str]) -> None:
        new = self._tainted()
        for text in sorted(new - old):
            self._begin_taint(f"slice {text}", f"tainted {text} by the driver", event)
        for text in sorted(old - new):
            self._end_taint(f"slice {text}", event)

    def _fold_rule(self, event: Event) -> None:
        name = event.key.name
        rule = taints.rule_of(event.object)
        text = f"tainted {rule.taint.text} by rule {name}"
        known = self._tainting.get(f"rule {name}")
        applies = (
            self._with_rules
            and event.type is not EventType.OBJECT_DELETED
            and rule.matches(self.place, without_selector=self._rules_without_selector_match)
        )
        if known is not None and (not applies or known.text != text):
            self._end_taint(f"rule {name}", event)
            known = None
        if applies and known is None:
            self._begin_taint(f"rule {name}", text, event)

    def _begin_taint(self, name: str, text: str, event: Event) -> None:
        if name not in self._tainting:
            span = self._tainting[name] = DeviceSpan(text=text, begin=event)
            self.taints.append(span)

    def _end_taint(self, name: str, event: Event) -> None:
        span = self._tainting.pop(name, None)
        if span is not None:
            span.end = event

    def _compare(self, event: Event, before: JsonView, after: JsonView) -> None:
        for part, noun in ((dra.attributes, "attribute"), (dra.capacity, "capacity")):
            old, new = part(before), part(after)
            for name in sorted({*old, *new}):
                if old.get(name) != new.get(name):
                    was, now = shown(old.get(name)), shown(new.get(name))
                    self.changes.append(
                        DeviceChange(text=f"{noun} {name} changed from {was} to {now}", event=event)
                    )
        if before.get("consumesCounters") != after.get("consumesCounters"):
            self.changes.append(
                DeviceChange(text="the counters that it consumes changed", event=event)
            )


def shown(value: object) -> str:
    """The value of an attribute or a capacity, or `nothing`."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        inner = value.get("value", value)
        if isinstance(inner, Mapping):
            return ", ".join(value_text(part) for part in inner.values())
        return value_text(inner)
    return value_text(value)


def _former(span: DeviceSpan) -> Reason:
    """A time in which the device was published, and who ended it."""
    assert span.end is not None, "former ones have ended"
    begin, end = span.begin.stamp.time, span.end.stamp.time
    text = f"before, published in {span.text} from {sources.when(begin)} for "
    how = "deleted" if span.end.type is EventType.OBJECT_DELETED else "written without it"
    text += f"{sources.lasted(begin, end)}, until the slice was {how}"
    return sources.made(span.end, text)


def _span(span: DeviceSpan, now: Instant) -> Reason:
    begin = span.begin.stamp.time
    text = f"{span.text} from {sources.when(begin)}"
    if span.end is None:
        # The moment of the answer can be that of the last event, long before the question.
        text += f", still at {sources.when(now)} ({sources.lasted(begin, now)})"
    else:
        end = span.end.stamp.time
        text += f" to {sources.when(end)} ({sources.lasted(begin, end)}), ended by revision "
        text += str(span.end.revision)
    users = list(span.others)
    if span.pods:
        pods = counts.plural(len(span.pods), "pod")
        users.insert(0, f"{pods} {listed(span.pods, len(span.pods))}")
    if users:
        text += f", for {listed(users, len(users))}"
    return Reason(
        text=text, revision=span.begin.revision, about=span.begin.key, is_kept=span.end is None
    )
