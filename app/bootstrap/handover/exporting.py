"""Exports of a history as a test, as manifests or as a case for the allocator."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import zip_longest
from pathlib import Path

import msgspec

from app.adapters import whole_files
from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.handover import cases, manifests, places, redaction, stories
from app.analysis.minimise.material import Material
from app.analysis.replay.inputs import Input
from app.analysis.verify.invariants import InvariantWatch
from app.bootstrap import recordings
from app.bootstrap.engines import Engines
from app.bootstrap.handover import repairs
from app.bootstrap.handover.stories import StoryRun
from app.bootstrap.minimising import run_stores
from app.bootstrap.minimising.sources import Source
from app.bootstrap.recordings import ToolForm
from app.domain.errors import InputError
from app.domain.log import Event, EventType
from app.domain.objects import profile as profiles
from app.domain.objects.schema import encode_yaml
from app.domain.values import api_resources
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service import exporting
from app.service.replays.trials import Ran, Runner

WITHOUT_NAME = "redacted"
"""The name of a history whose names are replaced."""


class ExportForm(StrEnum):
    """The forms of an exported history, besides a bundle."""

    PYTEST = "pytest"
    MANIFESTS = "manifests"
    CASE = "go-allocator-case"


_TOLD_SETTINGS = frozenset(("profile", "gates", "quirks", "controllers", "rules"))
"""The settings that determine how a history is decided; all others are not exported."""


class Expectation(StrEnum):
    """The decisions that a test asserts: those of the history's release, or of a repaired one."""

    RECORDED = "recorded"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The request for an export.

    `never` are predicates that the test asserts not to be shown. `pod` is the pod whose allocation
    is the case.
    """

    form: ExportForm = ExportForm.PYTEST
    redact: bool = False
    never: Sequence[str] = ()
    pod: str = ""
    expect: Expectation = Expectation.RECORDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The result of an export: how many inputs, decisions, files and, if redacted, replaced names.

    `left_out` counts the writes that were left out, by resource, because no decision reads them.
    `unasserted` are predicates that the history shows as it is recorded, and not as the controllers
    here decide it, so that no test of its inputs can assert that it does not show them.
    """

    inputs: int
    decisions: int
    files: int = 1
    names: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    asserts: Sequence[str] = ()
    unasserted: Sequence[str] = ()

    def to_json(self) -> JsonObject:
        """The result as JSON, for programs and for the command that shows it."""
        return {
            "inputs": self.inputs,
            "decisions": self.decisions,
            "files": self.files,
            "isRedacted": self.names is not None,
            "names": self.names,
            "leftOut": dict(self.left_out),
            "asserts": list(self.asserts),
            "unasserted": list(self.unasserted),
        }


def export(source: Source, wanted: ExportRequest, path: Path, name: str) -> Exported:
    """Write the history in another form, as a whole or not at all. Raises InputError."""
    ran, material, names, left_out = _ran(source, wanted)
    if wanted.redact:
        name = WITHOUT_NAME
    end = material.end(ran.candidate)
    asserts: list[str] = []
    unasserted: list[str] = []
    files = 1
    match wanted.form:
        case ExportForm.PYTEST:
            text, asserts = _pytest(ran, material, name, wanted, end)
            _write(path, text)
            if not wanted.never:
                recorded = [step.event for step in source.recorded.steps]
                rules = sorted({*_broken(ran, recorded)} - {*_broken(ran, ran.events)})
                unasserted = [f"violation {rule}" for rule in rules]
        case ExportForm.MANIFESTS:
            inputs = [each for each in material.inputs(ran.candidate) if _is_told(each.event)]
            left_out = left_out or _left_out(material.steps)
            of_cluster = manifests.of_every_cluster()
            own = [each for each in inputs if each.event.key not in of_cluster]
            written = list(manifests.files(own, f"History {name}", ran.info.settings))
            _write_folder(path, written)
            files = len(written)
        case ExportForm.CASE:
            profile = profiles.from_settings(ran.info.settings)
            case = cases.case(ran.events, profile, name, wanted.pod)
            tree = {"source": "redra", "suite": "allocator", "count": 1, "cases": [case]}
            _write(path, msgspec.json.format(msgspec.json.encode(tree), indent=2).decode() + "\n")
    return Exported(
        inputs=len(material.steps),
        decisions=len(StoryRun(ran).decisions),
        files=files,
        names=names,
        left_out=left_out,
        asserts=asserts,
        unasserted=unasserted,
    )


async def export_redacted(
    source: Source, path: Path, form: ToolForm | None
) -> tuple[Exported, JsonObject]:
    """Write the history without its names, as a bundle or for another tool. Raises InputError.

    It contains the outside inputs, and the decisions of the controllers here about them. Returns
    the counts of what was written.
    """
    ran, material, names, left_out = _ran(source, ExportRequest(redact=True))
    store = await run_stores.stored(ran, WITHOUT_NAME)
    info = await store.log.find_history(WITHOUT_NAME)
    assert info is not None, "it was stored just now"
    sink = BundleWriter(path) if form is None else recordings.TOOL_WRITERS[form](path)
    written = await exporting.export_history(
        store.log, info, sink, program=recordings.PROGRAM, file=path.name
    )
    done = Exported(
        inputs=len(material.steps),
        decisions=len(StoryRun(ran).decisions),
        names=names,
        left_out=left_out,
    )
    return done, written


def _ran(
    source: Source, wanted: ExportRequest
) -> tuple[Ran, Material, int | None, Mapping[str, int]]:
    """Decide the history again, redacted on request, with the same decisions.

    Returns also the number of replaced names, and the writes left out, by resource.
    """
    ran = _run(source, source.decided)
    if not wanted.redact:
        return ran, source.decided, None, {}
    steps = [step for step in source.decided.steps if _is_told(step.event)]
    left_out = _left_out(source.decided.steps)
    made = [event for event in source.decided.made if _is_told(event)]
    redacted = redaction.redaction_of(steps, made)
    material = Material(
        steps=[replace(redacted.input(step), number=n) for n, step in enumerate(steps)],
        made=[redacted.event(event) for event in made],
    )
    decisive = {
        name: value for name, value in source.info.settings.items() if name in _TOLD_SETTINGS
    }
    plain = msgspec.structs.replace(source.info, settings=decisive)
    again = _run(replace(source, info=plain), material)
    _check_same(ran, again, redacted)
    return again, material, len(redacted.names), left_out


def _left_out(steps: Iterable[Input]) -> Counter[str]:
    return Counter(step.event.key.resource for step in steps if not _is_told(step.event))


def _is_told(event: Event) -> bool:
    return places.is_exported(event.key.group, event.key.resource)


def _run(source: Source, material: Material) -> Ran:
    settings = {name: value for name, value in source.info.settings.items() if name != "recorded"}
    info = msgspec.structs.replace(source.info, settings=settings)
    return Runner(material, info, Engines()).run(source.whole(material))


def _check_same(before: Ran, after: Ran, redacted: redaction.Redaction) -> None:
    """Raise InputError unless every decision is as before, except for the names."""
    expected = [redacted.decision(event) for event in _decided(before.events)]
    actual = [redacted.decided(event) for event in _decided(after.events)]
    if expected == actual:
        return
    pairs = zip_longest(expected, actual)
    number, (left, right) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
    raise InputError(
        "without its names the history has other decisions, the first at decision "
        f"{number + 1} of {len(expected)}: {_said(left)} with names, {_said(right)} without",
        place="--redact",
        cure="make the history small first (redra minimise), or export it with its names",
    )


def _said(decided: redaction.Decided | None) -> str:
    """A decision as text, with the names of the redacted history."""
    if decided is None:
        return "nothing"
    key, outcome, (node, devices) = decided
    kind = "decision about" if key.resource == "decisions" else key.resource
    named = f"{kind} {key.namespace}/{key.name or '…'}"
    places = [*([f"on {node}"] if node else []), *("/".join(each) for each in devices)]
    return " ".join([named, *([outcome] if outcome else []), *places])


def _decided(events: Iterable[Event]) -> Iterator[Event]:
    """The decisions, and the writes that place pods, allocate claims, or end either.

    Other changes of pods and claims may be missing after redaction, such as annotations.
    """
    places: dict[str, object] = {}
    for event in events:
        if event.type is EventType.DECISION_RECORDED:
            yield event
        elif event.key[:2] in (api_resources.PODS, api_resources.RESOURCE_CLAIMS):
            place = redaction.placed(event)
            if event.type is EventType.OBJECT_DELETED or places.get(event.uid) != place:
                yield event
            places[event.uid] = place


_TEST = '''"""History {name}: {inputs} writes from outside, decided by the controllers of redra.

Made by `redra export --as pytest`. It needs redra installed, and nothing else: no server, no
cluster. `@pytest.mark.redra(profile=..., gates=..., quirks=...)` decides it by other settings.

{header}
"""

import json

HISTORY = json.loads(r"""
{story}
""")


def test_{function}(redra_history):
    history = redra_history(HISTORY)
{asserts}
'''


_PARTS = {
    "pods": "the outcome of its pods",
    "evictions": "the evictions of its pods",
    "refusals": "the refusals of its pods",
    "claims": "the outcome of its claims",
    "rules": "the outcome of its rules",
    "messages": "the messages of its pods",
}
"""The properties of a run that a test compares, and the text that says so."""

_REPAIRED = """It asserts what {fixed} decides (--expect repaired): defects of {release} that are
repaired there change what comes out ({numbers}). So it fails under {release},
and passes with `@pytest.mark.redra({marker})`."""


def _pytest(
    ran: Ran, material: Material, name: str, wanted: ExportRequest, end: Instant
) -> tuple[str, list[str]]:
    run = StoryRun(ran)
    parts: Mapping[str, Mapping[str, str]] = {}
    for predicate in wanted.never:
        if not run.shows(predicate, "--never"):
            raise InputError(
                f"the history, decided here, does not show it: {predicate}", place="--never"
            )
    never = list(wanted.never) or [f"violation {rule}" for rule in _broken(ran, ran.events)]
    repair = None
    release = repairs.profile_name(ran)
    header = f"It asserts what {release} decided (--expect recorded)."
    if wanted.expect is Expectation.REPAIRED:
        if wanted.never:
            raise InputError(
                "it cannot be combined with predicates that must not be shown",
                place="--expect",
            )
        repair = repairs.repair_of(ran, material)
        never, parts = [f"violation {rule}" for rule in repair.gone], repair.parts
        header = _REPAIRED.format(
            release=release,
            fixed=repair.fixed,
            numbers=", ".join(repair.numbers),
            marker=repair.marker,
        )
    elif never:
        header = "It asserts what must not be shown."
    asserts = [f"    assert not history.shows({predicate!r})" for predicate in never]
    if not asserts and not parts:
        further = {
            "evictions": run.evictions,
            "refusals": run.refusals,
            "claims": run.claims,
            "rules": run.rules,
        }
        parts = {"pods": run.pods, **{name: part for name, part in further.items() if part}}
    for part, fates in parts.items():
        lines = [f"        {name!r}: {fate!r}," for name, fate in fates.items()]
        asserts += [f"    assert history.{part} == {{", *lines, "    }"]
    inputs = material.inputs(ran.candidate)
    story = stories.story_of(inputs, material.made, ran.info.settings, ran.info.seed, end)
    encoded = msgspec.json.format(msgspec.json.encode(story), indent=1).decode()
    text = _TEST.format(
        name=name,
        header=header,
        inputs=len(material.steps),
        story=encoded,
        function=re.sub(r"\W+", "_", name).strip("_").lower() or "history",
        asserts="\n".join(asserts),
    )
    said = [f"that the history does not show: {predicate}" for predicate in never]
    under = f" under {repair.fixed}" if repair is not None else ""
    for part, fates in parts.items():
        said.append(f"{_PARTS[part]}{under}, {len(fates)}")
    return text, said


def _broken(ran: Ran, events: Sequence[Event]) -> list[str]:
    """The rules that events break under the switches of a run."""
    watch = InvariantWatch(ran.switches)
    watch.follow(events)
    return sorted({each.rule for each in watch.violations() if each.kind.is_failure})


def _write(path: Path, text: str) -> None:
    try:
        whole_files.write(path, text.encode())
    except OSError as problem:
        raise InputError(f"it cannot be written: {problem.strerror}", place=str(path)) from problem


def _write_folder(path: Path, files: Sequence[manifests.File]) -> None:
    """Write a folder that must not exist yet."""
    if path.exists():
        raise InputError("it already exists", place=str(path), cure="name a new folder")
    try:
        with whole_files.making(path) as partial:
            for file in files:
                content = file.content
                text = (
                    content
                    if isinstance(content, str)
                    else encode_yaml.encode_yaml(content, allow_unicode=True)
                )
                (partial / file.name).write_text(text, encoding="utf-8")
            (partial / "run.sh").chmod(0o755)
    except OSError as problem:
        raise InputError(f"it cannot be written: {problem.strerror}", place=str(path)) from problem
