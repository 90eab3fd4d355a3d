"""The states over time of the objects that a question is about, from their changes alone.

What `Spans` has of all objects this works out for single ones, by the topics of changes. The
states of a pod, claim or node follow from its own changes, and the claims of a pod from the changes
of claims that name the pod or its uid. A device may be held by all claims that there ever were, so
the states of devices are followed. A question about very many objects is answered from the states
of all.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from app.analysis.keeping import topics
from app.analysis.keeping.span_changes import HELD, ChangeSort, SpanChange
from app.analysis.keeping.subjects import place_of
from app.analysis.keeping.topics import Beginnings, DeviceHold, TopicIndex
from app.analysis.spans import DEVICES, Gap, Span, Spans
from app.domain.log import ObjectKey, Revision
from app.domain.values import api_resources
from app.domain.values.bounded import Bounded

KEPT_MAX = 4_000
"""The objects of which the states are kept, of each sort of question."""

CHOSEN_MAX, STEPPED_MAX = 2_000, 20_000
"""The objects whose states are worked out one by one: at once, and if other tasks may run between.

The pace of 1,000 pods with a claim each needs 3,000.
"""

_DONE = object()


class ManyObjects(Exception):
    """A question is about more objects than are worked out one by one; it asks for all states."""


class ChosenSpans:
    """The states of objects as `Spans` has them, of the changes that an index leads to.

    Each method may raise ManyObjects.
    """

    def __init__(self, changes: Sequence[SpanChange], index: TopicIndex) -> None:
        self._changes = changes
        self._index = index
        self._left = CHOSEN_MAX
        self._own: Bounded[ObjectKey, Spans] = Bounded(KEPT_MAX)
        self._of_claims: Bounded[ObjectKey, Spans] = Bounded(KEPT_MAX)
        self._of_pods: Bounded[ObjectKey, Spans] = Bounded(KEPT_MAX)
        self._devices: dict[str, list[Span]] = {}
        self._holding: dict[tuple[str, str], Sequence[str]] = {}
        self._held = 0

    def begin_question(self, steps: Iterable[None]) -> Iterator[None]:
        """Work out what all questions need, then go through the steps of one.

        Other tasks may run after each step. A question may work out as many objects as one may.
        """
        yield from self._index.beginnings_in_steps()
        yield from self._hold_in_steps()
        # Other questions are answered between the steps.
        left, of_question, is_done = STEPPED_MAX, iter(steps), False
        while not is_done:
            self._left = left
            is_done = next(of_question, _DONE) is _DONE
            left = self._left
            yield
        self._left = CHOSEN_MAX

    def forget(self, changes: Iterable[SpanChange]) -> None:
        """Forget the states that further changes concern."""
        if self._own:
            for change in changes:
                self._own.pop(change.key, None)
            self._of_claims.clear()
            self._of_pods.clear()

    def _hold_in_steps(self) -> Iterator[None]:
        """Follow what claims hold up to the last change."""
        # Others may go on, and stretches may be kept, between two steps.
        while piece := next(filter(None, self._index.holds(self._held)), None):
            for hold in piece:
                self._hold(hold)
            self._held += len(piece)
            yield

    def _hold(self, hold: DeviceHold) -> None:
        claim = hold.namespace, hold.name
        before = self._holding.get(claim, ())
        label = "/".join(claim)
        for name in before:
            if name not in hold.devices:
                for span in reversed(self._devices[name]):
                    if span.label == label and span.end is None:
                        span.end = hold.now
                        break
        for name in hold.devices:
            if name not in before:
                self._devices.setdefault(name, []).append(Span(HELD, label, hold.now))
        if hold.devices:
            self._holding[claim] = hold.devices
        else:
            self._holding.pop(claim, None)

    @property
    def _beginnings(self) -> Beginnings:
        return self._index.beginnings

    @property
    def gaps(self) -> Sequence[Gap]:
        """All gaps of the recording."""
        return [Gap(each.before, each.now) for each in self._read([topics.GAPS])]

    def lane(self, key: ObjectKey) -> Sequence[Span]:
        """The states of an object; none where there never was one of that name."""
        if key[:2] == DEVICES:
            return self._device(key)
        return self._object(key).lane(key)

    def begun_key(self, place: tuple[str, str], number: int) -> ObjectKey:
        """The lane of a group and resource that began as the one with that number."""
        return self._beginnings.key(place, number)

    def begun_keys(self, place: tuple[str, str]) -> Iterator[ObjectKey]:
        """All lanes of a group and resource, in the order in which they began."""
        return self._beginnings.keys(place)

    def named(self, place: tuple[str, str], part: str) -> Iterator[ObjectKey]:
        """The keys of lanes of a group and resource with this part in their names."""
        return self._beginnings.named(place, part)

    def count_begun(self, place: tuple[str, str], until: Revision) -> int:
        """The number of lanes of a group and resource that had begun up to a revision."""
        return self._beginnings.count_begun(place, until)

    def count_claimed(self, until: Revision) -> int:
        """The number of claims that belonged to a pod with a lane up to a revision."""
        return self._beginnings.count_claimed(until)

    def claims_of(
        self, pod: ObjectKey, until: Revision | None = None, *, after: Revision = Revision(0)
    ) -> Sequence[ObjectKey]:
        """The claims that were ever made or reserved for a pod of that name, up to a revision.

        Those that belonged only to earlier pods of the name, up to `after`, are left out.
        """
        if pod[:2] != api_resources.PODS:
            return ()
        return self._pod(pod).claims_of(pod, until, after=after)

    def pods_of(self, claim: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The pods with a lane that a claim of that name ever belonged to, up to a revision."""
        if claim[:2] != api_resources.RESOURCE_CLAIMS:
            return ()
        since = self._claim(claim).claimed.get(claim, {})
        return tuple(
            pod
            for pod, revision in since.items()
            if revision <= until and (lane := self.lane(pod)) and lane[0].begin[0] <= until
        )

    def wanted_by(
        self, pod: ObjectKey, until: Revision | None = None
    ) -> tuple[Sequence[ObjectKey], int]:
        """The claims that a pod names, and the number of those to be made from its templates."""
        return self._object(pod).wanted_by(pod, until)

    def devices_of(self, claim: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The devices that a claim of that name ever held, up to a revision."""
        return self._object(claim).devices_of(claim, until)

    def holders_of(self, device: ObjectKey, until: Revision) -> Sequence[ObjectKey]:
        """The claims that ever held a device, by their names, up to a revision."""
        labels = (span.label for span in self._device(device) if span.begin[0] <= until)
        claims = (label.partition("/") for label in dict.fromkeys(labels))
        return [ObjectKey(*api_resources.RESOURCE_CLAIMS, each[0], each[2]) for each in claims]

    def _object(self, key: ObjectKey) -> Spans:
        """The states of a pod, claim or node, from its own changes."""

        def fold() -> Spans:
            return _folded(each for each in self._read([place_of(key)]) if each.key == key)

        return self._worked_out(self._own, key, fold)

    def _claim(self, claim: ObjectKey) -> Spans:
        """The relations of a claim: its changes, and the pods that have the uids of its owners."""

        def fold() -> Spans:
            place = place_of(claim)
            uids = {uid for each in self._read([place]) for uid in each.owners}
            read = self._read([place, *map(topics.place_of_uid, uids)])
            return _folded(
                each for each in read if each.sort == ChangeSort.POD or each.key == claim
            )

        return self._worked_out(self._of_claims, claim, fold)

    def _pod(self, pod: ObjectKey) -> Spans:
        """The relations of a pod: its changes, and those of claims that name it or its uids."""

        def fold() -> Spans:
            place = place_of(pod)
            uids = {each.uid for each in self._read([place]) if each.sort == ChangeSort.POD}
            return _folded(self._read([place, *map(topics.place_of_uid, uids)]))

        return self._worked_out(self._of_pods, pod, fold)

    def _device(self, device: ObjectKey) -> Sequence[Span]:
        for _ in self._hold_in_steps():
            pass
        return self._devices.get(device.name, ())

    def _worked_out(
        self, kept: Bounded[ObjectKey, Spans], key: ObjectKey, fold: Callable[[], Spans]
    ) -> Spans:
        spans = kept.recent(key)
        if spans is None:
            if not self._left:
                raise ManyObjects
            self._left -= 1
            spans = kept[key] = fold()
        return spans

    def _read(self, wanted: Iterable[int]) -> Iterator[SpanChange]:
        """The changes of topics, in order."""
        numbers = {number for topic in wanted for number in self._index.numbers(topic)}
        return (self._changes[number] for number in sorted(numbers))


def _folded(changes: Iterable[SpanChange]) -> Spans:
    spans = Spans()
    for change in changes:
        spans.apply(change)
    return spans
