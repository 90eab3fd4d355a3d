"""A recording sorted out: what came from outside, what is decided again, and when each was seen."""

from collections import Counter

from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import registry as kinds
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service.deciding.authors import Authors
from app.service.deciding.inputs import Input, is_terminating
from app.service.deciding.pace import Act, RecordedPace
from app.service.deciding.traces import Trace, consumers, is_event_object
from app.service.deciding.writers import Writer, Writers
from app.service.taint_audit import ForbiddenPlacement, TaintAudit
from app.service.views import LiveViews

_UNREAD = frozenset(("leases", "secrets", "configmaps", "serviceaccounts"))
"""Kinds that no decision here depends on; logs often have no bodies of them."""


class Recording:
    """The recording sorted out: inputs, names, trace and what cannot be compared."""

    def __init__(self, writers: Writers, views: LiveViews) -> None:
        self._writers = writers
        self._authors = Authors()
        self._views = views
        self._audit = TaintAudit(views)
        self._objects: dict[ObjectKey, JsonObject] = {}
        self.inputs: list[Input] = []
        self.made: list[Event] = []
        self.acts: list[Act] = []
        self.removed: dict[str, Instant] = {}
        self.trace = Trace()
        self.later = Trace()
        self.later.owner_of = self.trace.owner_of
        self.is_over = False
        self.counts: Counter[str] = Counter()
        self.not_comparable: Counter[str] = Counter()
        self.reached: dict[tuple[str, str], Instant] = {}
        self._changed: dict[str, Instant] = {}
        self._forbidden: dict[str, Instant | None] = {}
        self.starts: dict[str, Instant] = {}
        self.last = Instant(0)

    def take(self, event: Event, known: Instant) -> None:
        """Sort one event that others could see from instant `known` on, and audit it.

        Once `is_over` is set, only the pace and the names are learnt, and what will come `later`.
        """
        if not self.is_over:
            before = len(self._audit.found)
            self._audit.before(event)
            if len(self._audit.found) > before:
                self._forbidden[event.uid] = self._rule_of(self._audit.found[-1][1])
            self._views.fold(event)
        self._sort(event, known)

    def violations(self, pace: RecordedPace | None) -> dict[str, bool]:
        """Uids of the claims that were allocated against a taint, and whether by a rule that had
        been there when the attempt was made: its writes may have waited long for their limit."""
        found: dict[str, bool] = {}
        for event, _ in self._audit.found:
            since = self._forbidden[event.uid]
            pods = consumers(event.object)
            began = [pace.began_before(pod) for pod in pods] if pace is not None else []
            tried = min((each for each in began if each is not None), default=event.stamp.time)
            found[event.uid] = since is not None and since < tried
        return found

    def _rule_of(self, violation: ForbiddenPlacement) -> Instant | None:
        """Since when the rule was there that a placement breaks; None when it is no rule."""
        rules = [key.name for key in violation.objects if key.resource == "devicetaintrules"]
        return max((self._changed.get(name, Instant(0)) for name in rules), default=None)

    def _sort(self, event: Event, known: Instant) -> None:
        if not self.is_over:
            self.last = Instant(max(self.last, known))
        if not event.is_about_object:
            if not self.is_over:
                self._take_fact(event)
            return
        before = self._objects.get(event.key)
        if before is not None and json_tree.text(before, "metadata", "uid") != event.uid:
            before = None
        author = self._authors.of(event, before)
        sort = self._writers.of(event, before, author)
        if not self.is_over:
            self.counts[sort.value] += 1
        if sort is Writer.ECHO:
            return
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
            self.removed[event.uid] = known
        else:
            self._objects[event.key] = event.object
        note_reached(self.reached, event, known)
        if event.key.resource == "devicetaintrules" and sort is Writer.OUTSIDE:
            self._changed[event.key.name] = known
        is_decided = sort is Writer.DECIDED
        trace = self.later if self.is_over else self.trace
        trace.add(event, before, is_decided=is_decided)
        if is_decided:
            for name in self._writers.controllers_of(author):
                self.starts.setdefault(name, known)
            self.made.append(event)
            self.acts.append(Act(event=event, before=before, known=known, user=author))
        elif not is_event_object(event.key) and not self.is_over:
            self.inputs.append(Input(event=event, before=before, time=known))

    def _take_fact(self, event: Event) -> None:
        if event.type is EventType.GAP_OBSERVED:
            if _is_read(event.key):
                self.not_comparable["the recording has a gap"] += 1
        elif event.type is EventType.REQUEST_OBSERVED:
            user = event.stamp.actor.user
            if user.startswith("system:"):
                self.not_comparable[
                    "a controller's request that was refused or changed nothing"
                ] += 1


def _is_read(key: ObjectKey) -> bool:
    """Whether a gap there matters: all of a stream, or a kind that controllers read here."""
    kind = kinds.find(key.group, key.resource)
    return not key.resource or (kind is not None and key.resource not in _UNREAD)


def note_reached(reached: dict[tuple[str, str], Instant], event: Event, known: Instant) -> bool:
    """Remember when a pod got its node and when it began to end; True when it is news."""
    if event.key.resource != "pods":
        return False
    is_news = False
    if json_tree.text(event.object, "spec", "nodeName") and (event.uid, "bound") not in reached:
        reached[event.uid, "bound"] = known
        is_news = True
    if is_terminating(event.object) and (event.uid, "terminating") not in reached:
        reached[event.uid, "terminating"] = known
        is_news = True
    return is_news
