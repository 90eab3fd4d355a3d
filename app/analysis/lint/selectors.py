"""The devices that selectors choose, and rules about selectors: no match, failure, high cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.analysis import device_selectors
from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import (
    LintedObject,
    LintedRequest,
    Subjects,
    class_selectors,
    expressions,
)
from app.domain import cel
from app.domain.devices.device_selectors import SelectorCompileError
from app.domain.devices.model import Device
from app.domain.values import counts

FAILS = LintRule(
    id="selector-fails",
    severity=LintSeverity.ERROR,
    reads="DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice",
    means="The expression fails on a device, such as on one without the attribute: the attempt to "
    "place the pod ends for all nodes (q16, c16).",
    cure="Check the driver first and use has() or optional chaining with orValue(); "
    "`redra cel --slices FILE` shows where it fails.",
    reference="docs/parity/allocator.md 5.1, 16 (Q16)",
)
CLASS_EMPTY = LintRule(
    id="class-matches-nothing",
    severity=LintSeverity.WARNING,
    reads="DeviceClass, ResourceSlice",
    means="The selectors of a class match no device of the sources: every claim that names the "
    "class waits.",
    cure="Compare driver, names and values in the selectors with what the slices publish.",
    reference="docs/parity/allocator.md 5.1",
)
MATCHES_NOTHING = LintRule(
    id="selector-matches-nothing",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, DeviceClass, ResourceSlice",
    means="The class has devices, and the selectors of the request match none of them: the claim "
    "is never allocated.",
    cure="Compare names and values in the selectors with what the slices publish; an attribute "
    "without domain belongs to the driver's name.",
    reference="docs/parity/allocator.md 5.1",
)
CLASS_MISSING = LintRule(
    id="class-missing",
    severity=LintSeverity.WARNING,
    reads="ResourceClaim, ResourceClaimTemplate, DeviceClass",
    means="A request names a class that is not among the sources: without the class the attempt to "
    "place the pod fails.",
    cure="Correct the name, or create the class.",
    reference="docs/parity/allocator.md 3",
)
COSTLY = LintRule(
    id="selector-costly",
    severity=LintSeverity.WARNING,
    reads="DeviceClass, ResourceClaim, ResourceClaimTemplate",
    means="The estimated cost of the expression is at least half of the limit: with a small change "
    "it is refused, and each device costs as much to look at.",
    cure="Compare single attributes instead of going through all of them.",
    reference="docs/parity/allocator.md 11.6",
)
ALTERNATIVE = LintRule(
    id="alternative-never-taken",
    severity=LintSeverity.NOTE,
    reads="ResourceClaim, ResourceClaimTemplate, ResourceSlice",
    means="An alternative of a prioritized list can never be allocated from the devices of the "
    "sources; others of the list may.",
    cure="None is needed where the alternative is meant for other clusters.",
    reference="KEP-4816",
)
RULES = (FAILS, CLASS_EMPTY, MATCHES_NOTHING, ALTERNATIVE, CLASS_MISSING, COSTLY)

COST_SHARE = 2
"""An expression is costly from this fraction of the limit: one half."""

FIRST_OF_CLASS = "spec.selectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    index: int
    device: Device
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenDevices:
    """The devices that a list of selectors chooses; `emptied` is the selector that left none."""

    devices: tuple[Device, ...]
    emptied: int | None = None
    failure: _Failure | None = None
    compiles: bool = True


@dataclass(kw_only=True, eq=False)
class Choices:
    """The devices that classes and requests choose, each computed once."""

    subjects: Subjects
    _classes: dict[str, ChosenDevices | None] = field(default_factory=dict)
    _asked: dict[tuple[str, tuple[str, ...]], ChosenDevices] = field(default_factory=dict)

    def of_class(self, name: str) -> ChosenDevices | None:
        """The devices of a class; None for an unknown class."""
        if name not in self._classes:
            subject = self.subjects.classes.get(name)
            self._classes[name] = (
                None
                if subject is None
                else self._choose(class_selectors(subject), self.subjects.devices)
            )
        return self._classes[name]

    def of_ask(self, ask: LintedRequest) -> ChosenDevices | None:
        """The devices that a request may get; None if its class is unknown."""
        of_class = self.of_class(ask.form.device_class_name)
        if of_class is None:
            return None
        own = expressions(ask.form.selectors)
        key = ask.form.device_class_name, own
        if key not in self._asked:
            self._asked[key] = self._choose(own, of_class.devices)
        return self._asked[key]

    def lacks_driver(self, text: str) -> str:
        """The driver without devices that a selector requires, as the end of a message."""
        published = {device.id[0] for device in self.subjects.devices}
        program = self.subjects.compiler.compile(text).program
        lack = device_selectors.unpublished(program, published)
        return f": {lack}" if lack else ""

    def _choose(self, texts: Sequence[str], devices: tuple[Device, ...]) -> ChosenDevices:
        kept = devices
        failure: _Failure | None = None
        for index, text in enumerate(texts):
            try:
                selector = self.subjects.compiler.compile(text)
            except SelectorCompileError:
                return ChosenDevices(devices=(), compiles=False)
            if selector.program.max_cost > cel.COST_LIMIT:
                return ChosenDevices(devices=(), compiles=False)  # the API server does not store it
            matching = []
            for device, verdict in zip(kept, selector.judge(kept), strict=True):
                if verdict.match:
                    matching.append(device)
                elif verdict.error and failure is None:
                    failure = _Failure(index=index, device=device, error=verdict.error)
            if kept and not matching:
                return ChosenDevices(devices=(), emptied=index, failure=failure)
            kept = tuple(matching)
        return ChosenDevices(devices=kept, failure=failure)


def check(subjects: Subjects, choices: Choices) -> Iterator[LintFinding]:
    """All rules on all classes and requests."""
    for subject in subjects.of_kind("DeviceClass"):
        texts = class_selectors(subject)
        yield from _costs(subject, "spec", texts)
        if subjects.devices:
            yield from _class(subject, choices)
    for ask in subjects.asks:
        yield from _costs(ask.owner, ask.path, expressions(ask.form.selectors))
        yield from _ask(ask, subjects, choices)


def _class(subject: LintedObject, choices: Choices) -> Iterator[LintFinding]:
    name = subject.tree["metadata"]["name"]
    choice = choices.of_class(name)
    if choice is None or not choice.compiles:
        return
    if choice.failure is not None:
        yield _failed(subject, "spec", choice.failure)
    elif choice.emptied is not None:
        count = len(choices.subjects.devices)
        place = subject.at(f"{FIRST_OF_CLASS}[{choice.emptied}].cel.expression")
        reason = choices.lacks_driver(class_selectors(subject)[choice.emptied])
        yield CLASS_EMPTY.at(place, f"none of {counts.of(count, 'device')} matches{reason}")


def _ask(ask: LintedRequest, subjects: Subjects, choices: Choices) -> Iterator[LintFinding]:
    name = ask.form.device_class_name
    if name not in subjects.classes:
        if subjects.classes and name:
            message = f"there is no class {name}"
            yield CLASS_MISSING.at(ask.owner.at(f"{ask.path}.deviceClassName"), message)
        return
    choice = choices.of_ask(ask)
    if choice is None or not choice.compiles:
        return
    if choice.failure is not None:
        yield _failed(ask.owner, ask.path, choice.failure)
    elif choice.emptied is not None:
        place = ask.owner.at(f"{ask.path}.selectors[{choice.emptied}].cel.expression")
        of_class = choices.of_class(name)
        count = 0 if of_class is None else len(of_class.devices)
        yield of_ask(ask, MATCHES_NOTHING).at(
            place, f"none of {counts.of(count, 'device')} of class {name} matches"
        )


def of_ask(ask: LintedRequest, rule: LintRule) -> LintRule:
    """The rule; for an alternative, the rule that it is never taken."""
    return ALTERNATIVE if ask.is_alternative else rule


def _failed(subject: LintedObject, path: str, failure: _Failure) -> LintFinding:
    place = subject.at(f"{path}.selectors[{failure.index}].cel.expression")
    return FAILS.at(place, f"on device {failure.device.text}: {failure.error}")


def _costs(subject: LintedObject, path: str, texts: Sequence[str]) -> Iterator[LintFinding]:
    for index, text in enumerate(texts):
        try:
            cost = cel.compile_expression(text).max_cost
        except cel.CompileError:
            continue
        if cost * COST_SHARE >= cel.COST_LIMIT and cost <= cel.COST_LIMIT:
            place = subject.at(f"{path}.selectors[{index}].cel.expression")
            yield COSTLY.at(place, f"estimated cost {cost} of at most {cel.COST_LIMIT}")
