"""Predicates: what must stay while a history becomes smaller.

A predicate is written as one of:

- `violation [RULE]`: an invariant does not hold
- `unschedulable [[NAMESPACE/]POD] [because TEXT]`: a pod cannot be scheduled; the text is in its
  message or in a cause of the scheduler's decision, such as `taint`
- `evicted [[NAMESPACE/]POD] [because TEXT]`: a pod is evicted for a taint or by preemption
- `differs profile=A,B | quirk=NAME | gate=NAME [CLASS]`: two control planes decide differently
- `difference [CLASS]`: a decide replay differs from what was recorded
- `command WORD…`: a command ends with 0, `{}` being a bundle of the history

A predicate's open parts are filled from the first match in the full history: the rule, the kind of
cause, the class. So the defect stays the same: a pod that waits for devices does not become one
that waits for a node.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from app.analysis.diff import classes, matching
from app.analysis.diff.classes import Class
from app.analysis.diff.courses import Courses
from app.analysis.diff.sides import Side
from app.analysis.minimise.difference_predicate import DifferencePredicate
from app.analysis.minimise.material import Device
from app.analysis.replay import facts
from app.analysis.replay.classes import DifferenceClass, Sought
from app.analysis.replay.variants import Switches
from app.analysis.verify.invariants.placements import Switches as RuleSwitches
from app.analysis.verify.invariants.violations import RULES, Violation, ViolationKind
from app.analysis.verify.invariants.watch import InvariantWatch
from app.domain.allocation.reasons.causes import SUITABLE
from app.domain.controllers import registry as controllers
from app.domain.errors import InputError
from app.domain.log import Event, EventType, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.values import api_resources, condition_types
from app.domain.values.fields import core, decision_body, meta
from app.domain.values.fields.decision_body import CauseCount
from app.domain.values.timestamps import SECOND, Instant

_ABOUT_DEVICES = ("claim", "device")
_NUMBER = re.compile(r"\d+")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_NAMED = re.compile(_QUOTED.pattern + r"|[a-z0-9.-]*[a-z][a-z0-9.-]*/[a-z0-9.-]+")
"""Names of objects in a message: quoted, or with their namespaces."""

_GRAVITY = (
    ViolationKind.BROKEN,
    ViolationKind.LATE,
    ViolationKind.KNOWN,
    ViolationKind.OUTSIDE,
    ViolationKind.UNSURE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A match in a history: the objects, and the instant at which it shows.

    `since` is the instant at which it begins, where that is known and not the same. `devices` are
    those that it is about, beside those of its claims.
    """

    objects: tuple[ObjectKey, ...] = ()
    at: Instant | None = None
    since: Instant | None = None
    devices: tuple[Device, ...] = ()
    text: str = ""


class Trial(Protocol):
    """A history that was run, as predicates see it."""

    @property
    def events(self) -> Sequence[Event]:
        """The events of the run."""
        ...

    @property
    def switches(self) -> RuleSwitches:
        """The switches of its release that affect the invariants."""
        ...

    def under(self, switches: Switches) -> Side:
        """The same inputs decided under other switches."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ViolationPredicate:
    """The predicate that an invariant is violated; empty `rule` and `kind` mean any failure."""

    rule: str = ""
    kind: ViolationKind | None = None

    @property
    def text(self) -> str:
        """The predicate as written."""
        return f"violation {self.rule}".strip()

    def sightings(self, trial: Trial) -> list[Sighting]:
        """The violations of the kind, gravest first."""
        return [
            Sighting(
                objects=each.objects,
                at=each.begin.time if each.kind is not ViolationKind.LATE else None,
                text=str(each),
            )
            for each in self._violations(trial)
        ]

    def seen_in(self, trial: Trial) -> Sequence[Sequence[Event]]:
        """The events that show it."""
        return (trial.events,)

    def settled(self, trial: Trial) -> "ViolationPredicate":
        """The predicate with the rule and kind that the history shows."""
        first = self._violations(trial)[0]
        return replace(self, rule=first.rule, kind=first.kind)

    def _violations(self, trial: Trial) -> list[Violation]:
        watch = InvariantWatch(trial.switches)
        watch.follow(trial.events)
        fitting = [each for each in watch.violations() if self._fits(each)]
        return sorted(fitting, key=lambda each: _GRAVITY.index(each.kind))

    def _fits(self, violation: Violation) -> bool:
        if self.rule and violation.rule != self.rule:
            return False
        if self.kind is not None:
            return violation.kind is self.kind
        return bool(self.rule) or violation.kind.is_failure


_Said: TypeAlias = tuple[Event, str, Event | None]
"""An event of a pod with a condition, the message, and the last decision about the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCondition:
    """The predicate that a pod cannot be scheduled, or is evicted.

    It cannot be scheduled if no node fits, or if an attempt fails (SchedulerError), for example
    because a selector fails on a device; the one does not become the other.
    `because` is a text in the message, or in a cause of the decision. `needed` and `known` are
    kinds of causes, masked: the message must have all of `needed`, and only those of `known`.
    `device` is the cause that excludes most devices, according to the decision.
    """

    word: str
    pod: str = ""
    because: str = ""
    needed: frozenset[str] = frozenset()
    known: frozenset[str] | None = None
    device: str = ""

    @property
    def text(self) -> str:
        """The predicate as written."""
        reason = f" because {self.because}" if self.because else ""
        return f"{self.word} {self.pod}".strip() + reason

    def sightings(self, trial: Trial) -> list[Sighting]:
        """The matches of each pod; before settling, pods that wait to the end come first."""
        chosen = self._chosen(trial.events)
        return [
            Sighting(objects=(event.key,), at=event.stamp.time, text=f"{event.key}: {message}")
            for event, message, _ in chosen
        ]

    def seen_in(self, trial: Trial) -> Sequence[Sequence[Event]]:
        """The events that show it."""
        return (trial.events,)

    def settled(self, trial: Trial) -> "PodCondition":
        """The predicate with the kinds of causes that the history shows."""
        _, message, decision = self._chosen(trial.events)[0]
        causes = frozenset(_causes(message))
        about = {each for each in causes if any(word in each for word in _ABOUT_DEVICES)}
        # A text that only the decision has is the cause to keep, even if it is not the main one.
        is_told = _says(message, self.because)
        device = _main_cause(decision) if is_told else ""
        return replace(self, needed=frozenset(about or causes), known=causes, device=device)

    def _chosen(self, events: Sequence[Event]) -> list[_Said]:
        """One event of each pod that has the condition, the most relevant first."""
        refusals: list[_Said] = []
        passed: set[str] = set()
        decisions: dict[tuple[str, str], Event] = {}
        for event in events:
            if event.type is EventType.DECISION_RECORDED and _is_of_scheduler(event):
                decisions[event.key.namespace, event.key.name] = event
            if event.key[:2] != api_resources.PODS or not event.is_about_object:
                continue
            decision = decisions.get((event.key.namespace, event.key.name))
            message = self._message(event, decision)
            if message is not None and self.device in ("", _main_cause(decision)):
                refusals.append((event, message, decision))
            elif event.type is EventType.OBJECT_DELETED or core.node_name(event.object):
                passed.add(event.uid)
        if not refusals or self.known is not None or self.word == "evicted":
            chosen = refusals
        else:
            # The last message about a pod that stays in the condition to the end.
            chosen = [each for each in refusals if each[0].uid not in passed] or refusals
            chosen = chosen[::-1]
        return list({each[0].uid: each for each in chosen[::-1]}.values())[::-1]

    def _message(self, event: Event, decision: Event | None) -> str | None:
        if not self._is_meant(event.key) or event.type is EventType.OBJECT_DELETED:
            return None
        if self.word == "evicted":
            condition = meta.condition(event.object, condition_types.DISRUPTION_TARGET)
            is_so = condition is not None and condition.status == "True"
        else:
            condition = meta.condition(event.object, condition_types.POD_SCHEDULED)
            is_so = condition is not None and (
                condition.status == "False" and condition.reason in facts.UNSCHEDULED
            )
        if condition is None or not is_so:
            return None
        message = f"{condition.reason}: {condition.message}"
        causes = frozenset(_causes(message))
        if not _says(message, self.because) and not self._is_because(decision):
            return None
        if not self.needed <= causes:
            return None
        return message if self.known is None or causes <= self.known else None

    def _is_because(self, decision: Event | None) -> bool:
        """Whether a cause of the decision has the text."""
        return any(
            self.because in f"{cause.cause}: {cause.about}" for cause in _causes_of(decision)
        )

    def _is_meant(self, key: ObjectKey) -> bool:
        return self.pod in ("", key.name, f"{key.namespace}/{key.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPredicate:
    """The predicate that two control planes decide differently over the same inputs."""

    words: str
    a: Switches
    b: Switches
    kind: Class | None = None

    @property
    def text(self) -> str:
        """The predicate as written."""
        return f"differs {self.words}" + ("" if self.kind is None else f" {self.kind.value}")

    def sightings(self, trial: Trial) -> list[Sighting]:
        """The pods with different outcomes, the earliest first."""
        return [
            Sighting(
                objects=tuple(
                    dict.fromkeys(each.key for each in (pair.a, pair.b) if each is not None)
                ),
                at=Instant(at + SECOND),
                text=f"pod {pair.name}: {', '.join(kinds)}",
            )
            for at, pair, kinds in self._pairs(trial)
        ]

    def seen_in(self, trial: Trial) -> Sequence[Sequence[Event]]:
        """The events of both runs."""
        return (trial.under(self.a).events, trial.under(self.b).events)

    def settled(self, trial: Trial) -> "SwitchPredicate":
        """The predicate with the class that the history shows first."""
        _, _, kinds = self._pairs(trial)[0]
        return replace(self, kind=self.kind or kinds[0])

    def _pairs(self, trial: Trial) -> list[tuple[int, matching.Pair, tuple[Class, ...]]]:
        a, b = trial.under(self.a), trial.under(self.b)
        differing = []
        for pair in matching.pairs(Courses(a).all(), Courses(b).all()):
            kinds = classes.classes_of(pair, SECOND)
            if kinds and (self.kind is None or self.kind in kinds):
                differing.append((classes.parted(pair, SECOND).time, pair, kinds))
        if self.kind is None:
            # Differences in messages or times matter only if nothing else differs.
            order = list(Class)
            return sorted(differing, key=lambda each: (order.index(each[2][0]) > _WEIGHTY, each[0]))
        return sorted(differing, key=lambda each: each[0])


_WEIGHTY = list(Class).index(Class.MOVED)

_SWITCHES = ("switch ", "quirk ", "gate ", "profile ")
"""The prefixes of the classes of differences that a switch causes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPredicate:
    """The predicate that a command ends with 0 on a bundle of the history."""

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The predicate as written."""
        return f"command {shlex.join(self.words)}"


EventPredicate: TypeAlias = ViolationPredicate | PodCondition | SwitchPredicate
"""Predicates that depend only on events."""

Predicate: TypeAlias = EventPredicate | DifferencePredicate | CommandPredicate


def where_to_look(predicate: Predicate) -> str:
    """The advice where to find a predicate that a history shows, for one that it does not show."""
    match predicate:
        case ViolationPredicate(rule=""):
            return (
                "`redra verify HISTORY` lists violations with their rules; one that it does not "
                "count as a failure must be named: violation RULE"
            )
        case ViolationPredicate():
            return "`redra verify HISTORY` lists violations with their rules"
        case PodCondition():
            return "`redra findings HISTORY` lists pods that waited or were evicted"
        case DifferencePredicate():
            return "`redra replay HISTORY --mode decide` lists differences with their classes"
        case SwitchPredicate():
            return "`redra diff HISTORY --again`, with a switch, lists what is decided differently"
        case _:
            return "run the command on a bundle of the whole history: it must end with 0"


def is_lasting(predicate: Predicate) -> bool:
    """Whether it is that a state lasts longer than a controller takes to end it."""
    return isinstance(predicate, ViolationPredicate) and predicate.kind is ViolationKind.LATE


def parse(text: str, place: str = "") -> Predicate:
    """Reads a predicate. Raises InputError, about `place`, for an invalid text."""
    try:
        return _parsed(text)
    except InputError as problem:
        raise InputError(problem.problem, place=place, cure=problem.cure) from problem


_EXAMPLES = "profile=1.36,1.37, quirk=q6 or gate=DRAPartitionableDevices"


def _parsed(text: str) -> Predicate:
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise InputError(f"it cannot be read: {problem}") from problem
    match words:
        case ["violation"]:
            return ViolationPredicate()
        case ["violation", rule]:
            if rule not in RULES:
                raise InputError(f"there is no rule {rule!r}", cure=f"choose from {_listed(RULES)}")
            return ViolationPredicate(rule=rule)
        case ["unschedulable" | "evicted" as word, *rest]:
            return _pod_condition(word, rest)
        case ["differs", switch, *kind]:
            return _switches_of(switch, " ".join(kind))
        case ["difference", *kind]:
            return _difference_of(" ".join(kind))
        case ["command", program, *arguments]:
            given = (program, *arguments)
            return CommandPredicate(
                words=given if any("{}" in word for word in given) else (*given, "{}")
            )
        case ["differs"]:
            raise InputError(
                "'differs' names no control planes", cure=f"write {_EXAMPLES} after it"
            )
        case ["command"]:
            raise InputError("'command' has no words", cure="write command PROGRAM ARGUMENT…")
    raise InputError(
        f"{text!r} is not a predicate",
        cure="begin with violation, unschedulable, evicted, differs, difference or command",
    )


def _pod_condition(word: str, rest: Sequence[str]) -> PodCondition:
    pod, because = "", ""
    words = list(rest)
    if "because" in words:
        place = words.index("because")
        because = " ".join(words[place + 1 :])
        words = words[:place]
        if not because:
            raise InputError("there is no text after because")
    if len(words) > 1:
        raise InputError(f"{' '.join(words)!r} is not one pod", cure="write NAMESPACE/NAME")
    if words:
        pod = words[0]
    return PodCondition(word=word, pod=pod, because=because)


def _difference_of(kind: str) -> DifferencePredicate:
    known = [str(reason) for reason in DifferenceClass]
    if kind and kind not in known and not kind.startswith(_SWITCHES):
        raise InputError(f"there is no class {kind!r}", cure=f"choose from {_listed(known)}")
    return DifferencePredicate(sought=Sought(reason=kind))


def _switches_of(switch: str, kind: str) -> SwitchPredicate:
    """Two control planes. Raises InputError for what no history could have as a switch."""
    name, _, value = switch.partition("=")
    if kind and kind not in {each.value for each in Class}:
        raise InputError(
            f"there is no class {kind!r}",
            cure=f"choose from {_listed(each.value for each in Class)}",
        )
    chosen = Class(kind) if kind else None
    match name, value.split(","):
        case "profile", [first, second] if first and second:
            a, b = Switches(profile=first), Switches(profile=second)
        case "quirk", [quirk] if quirk:
            a, b = (Switches(quirks={quirk.lower(): on}) for on in (True, False))
            controllers.options_from({"quirks": a.quirks})
        case "gate", [gate] if gate in profiles.FIXED:
            reason = profiles.FIXED[gate]
            raise InputError(f"feature gate {gate} cannot be switched: {reason}")
        case "gate", [gate] if gate:
            a, b = (Switches(gates={gate: on}) for on in (True, False))
        case _:
            raise InputError(
                f"{switch!r} does not name two control planes",
                cure=f"write {_EXAMPLES}",
            )
    for side in (a, b):
        profiles.Profile(version=side.profile or profiles.DEFAULT_VERSION, gates=side.gates)
    return SwitchPredicate(words=switch, a=a, b=b, kind=chosen)


def _says(message: str, text: str) -> bool:
    """Whether a message has a text outside of names, or from the beginning to the end of names.

    Example: `resource claim taints/shared is in the process of being allocated` says `shared`, and
    does not say `taint`.
    """
    whole = rf"(?<![a-z0-9.-]){re.escape(text)}(?![a-z0-9.-])"
    return text in _NAMED.sub("…", message) or re.search(whole, message) is not None


def _main_cause(decision: Event | None) -> str:
    """The cause that excludes most devices, among unsuitable ones; empty if unknown."""
    devices: Counter[str] = Counter()
    for cause in _causes_of(decision):
        devices[cause.cause] += cause.devices
    return max(sorted(devices), key=lambda each: devices[each], default="")


def _causes_of(decision: Event | None) -> list[CauseCount]:
    """The causes of unsuitable devices, as counted by a decision."""
    if decision is None:
        return []
    causes = decision_body.summary_of(decision.object).causes
    return [cause for cause in causes if cause.cause != SUITABLE]


def _is_of_scheduler(decision: Event) -> bool:
    """Whether the scheduler made the decision, about a pod; others decide about equal names."""
    body = decision_body.read(decision.object)
    return body.controller == "scheduling" and body.resource == "pods"


def _causes(message: str) -> Iterator[str]:
    """The kinds of causes in a message, without numbers, quoted names and preemption.

    Example: `0/3 nodes are available: 2 cannot allocate all claims, 1 node(s) were unschedulable`
    has `cannot allocate all claims` and `node(s) were unschedulable`.
    """
    text = message.partition(" preemption:")[0]
    if "nodes are available" in text:
        text = text.partition("available")[2].lstrip(": ")
    for clause in text.split(", "):
        masked = _QUOTED.sub("…", _NUMBER.sub("", clause)).strip(" .:")
        if masked:
            yield masked


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
