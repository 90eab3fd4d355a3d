"""The sources of `redra lint`: manifests with lines, recordings and histories with revisions."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import anyio.to_thread

from app.adapters.clock import SystemClock
from app.adapters.history import kinds, opening
from app.adapters.history.field_lines import FieldLines
from app.adapters.history.limits import ImportLimits
from app.adapters.history.reading import ReadOptions
from app.adapters.history.yaml_documents import IsTemplate
from app.analysis.lint import linting
from app.analysis.lint.findings import FindingPlace, LintFinding
from app.analysis.lint.linting import LintReport
from app.analysis.lint.placing import PlacingBounds
from app.analysis.lint.revisions import PoolsOverTime
from app.analysis.lint.subjects import TOLD, LintedObject, Subjects, lacks_pool
from app.analysis.views import features_of
from app.bootstrap import manifests
from app.bootstrap.history_settings import history_settings
from app.bootstrap.linting import changes
from app.bootstrap.linting.changes import ObjectChange
from app.bootstrap.recordings import import_limits
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.log import HistoryInfo, ObjectKey, Revision
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.objects.rules import Rules
from app.domain.values import api_groups
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.ports import EventLog
from app.settings import Settings


@dataclass(kw_only=True, eq=False)
class _Sources:
    """The objects that were read: those of manifests in order, those of histories as last seen."""

    rules: Rules
    now: Instant
    limits: ImportLimits
    bounds: PlacingBounds
    written: list[LintedObject] = field(default_factory=list)
    subjects: list[LintedObject] = field(default_factory=list)
    findings: list[LintFinding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    prefixes: dict[tuple[str, int, str], str] = field(default_factory=dict)

    @property
    def options(self) -> ReadOptions:
        """The options for reading recordings."""
        return ReadOptions(now=self.now, rules=self.rules, limits=self.limits)

    def read_manifests(self, path: Path) -> bool:
        """Read the objects of a file; `-` is standard input. Raises InputError.

        Returns whether it holds any object; others than those of lint count, too.
        """
        documents = manifests.read_documents(path, self.limits, as_kubectl=True)
        for place, document in documents:
            source, _, line = place.rpartition(":")
            for prefix, tree in _objects(document, place):
                if not _is_ours(tree):
                    continue
                kind = meta.kind(tree)
                subject = LintedObject(
                    kind=kind or "object", tree=_placed(tree), source=source, line=int(line)
                )
                self.prefixes[(source, int(line), subject.text)] = prefix
                self.written.append(subject)
        return any(isinstance(document, dict) for _, document in documents)

    def read_file_of(self, path: Path, file: Path) -> bool:
        """As `read_manifests`; a template in a folder is not checked, and named."""
        try:
            return self.read_manifests(file)
        except IsTemplate as problem:
            if file == path:
                raise
            self.not_checked.append(str(problem))
            return False

    def read_changes(self, object_changes: Iterable[ObjectChange]) -> None:
        """Read the last state of each object, and the findings on the way."""
        states: dict[ObjectKey, LintedObject] = {}
        over_time = PoolsOverTime()
        for change in object_changes:
            subject = changes.converted(change.subject)
            is_slice = subject.kind == "ResourceSlice" and not lacks_pool(subject.tree)
            if change.is_deletion:
                states.pop(change.key, None)
                if is_slice:
                    over_time.forget(subject, change.time)
            else:
                states[change.key] = subject
                if is_slice:
                    over_time.see(subject, change.time)
        self.subjects += states.values()
        self.findings += over_time.findings()

    def report(self, ignored: Sequence[str]) -> LintReport:
        """The findings of the rules in all objects read; fields of files get their lines."""
        names = linting.check_rules(ignored)
        admitted, hidden, refusals = linting.admit(self.written, self.rules, self.now)
        subjects = Subjects.of((*admitted, *self.subjects), hidden)
        report = linting.lint(
            subjects,
            features=features_of(self.rules.profile),
            before=(*refusals, *self.findings),
            ignored=names,
            bounds=self.bounds,
        )
        lines = _Lines(self.prefixes)
        findings = tuple(
            replace(
                finding,
                place=lines.of(finding.place),
                related=tuple(lines.of(place) for place in finding.related),
            )
            for finding in report.findings
        )
        # Refused objects are counted too: they were checked.
        return replace(
            report,
            findings=findings,
            objects=len(self.written) + len(self.subjects),
            not_checked=tuple(self.not_checked),
        )


class _Lines:
    """The lines of fields in files with findings; each such file is read again once."""

    def __init__(self, prefixes: dict[tuple[str, int, str], str]) -> None:
        self._prefixes = prefixes
        self._files: dict[str, FieldLines | None] = {}

    def of(self, place: FindingPlace) -> FindingPlace:
        """The place, with the line of its field if its source is a file of manifests."""
        prefix = self._prefixes.get((place.source, place.line, place.object))
        if prefix is None:
            return place
        if place.source not in self._files:
            path = Path(place.source)
            content = path.read_bytes() if path.is_file() else None
            self._files[place.source] = None if content is None else FieldLines(content)
        lines = self._files[place.source]
        if lines is None:
            return place
        return replace(place, line=lines.line(place.line, prefix + place.field))


def lint_files(settings: Settings, paths: Sequence[Path], ignored: Sequence[str]) -> LintReport:
    """Lint files, folders, recordings and bundles. Raises InputError."""
    sources = _sources(settings)
    linting.check_rules(ignored)
    for path in paths:
        if str(path) != manifests.STANDARD_INPUT and not path.exists():
            raise InputError(_missing(path), place=str(path))
        if str(path) == manifests.STANDARD_INPUT:
            files = [path]
        elif opening.is_bundle(path):
            sources.read_changes(changes.of_bundle(path, sources.limits))
            continue
        elif changes.is_recording(path, sources.options):
            sources.read_changes(changes.of_recording(path, sources.options, sources.not_checked))
            continue
        else:
            files = _files(path)
        if not files:
            raise InputError("it holds no YAML or JSON file", place=str(path))
        have_objects = [sources.read_file_of(path, file) for file in files]
        if not any(have_objects):
            # A pipeline whose first part fails must not pass.
            name = "standard input" if str(path) == manifests.STANDARD_INPUT else str(path)
            raise InputError("it holds no object", place=name)
    return sources.report(ignored)


def _missing(path: Path) -> str:
    """The refusal of a file that is not there; a bare name may be meant as that of a history."""
    text = "there is no such file"
    is_bare = str(path) == path.name and not path.suffix
    return f"{text}; a history is checked with --history {path}" if is_bare else text


async def lint_log(
    settings: Settings,
    log: EventLog,
    info: HistoryInfo,
    until: Revision,
    *,
    profile: str,
    ignored: Sequence[str],
) -> LintReport:
    """Lint a history up to a revision, with the rules judged in a thread.

    `profile` is the release whose API checks objects (empty: that of the settings). Raises
    InputError for an unknown release or rule.
    """
    sources = _sources(replace(settings, profile=profile) if profile else settings)
    linting.check_rules(ignored)
    object_changes = await changes.of_history(log, info, until)

    def judge() -> LintReport:
        sources.read_changes(object_changes)
        return sources.report(ignored)

    return await anyio.to_thread.run_sync(judge, abandon_on_cancel=True)


def _sources(settings: Settings) -> _Sources:
    profile = profiles.from_settings(history_settings(settings))
    return _Sources(
        rules=rules_for(profile),
        now=SystemClock().now(),
        limits=import_limits(settings),
        bounds=PlacingBounds(
            attempts_max=settings.lint_attempts_max, steps_max=settings.lint_steps_max
        ),
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]

    def refuse(problem: OSError) -> None:
        raise InputError(
            f"the folder cannot be read: {problem.strerror}", place=str(problem.filename)
        ) from problem

    walk = os.walk(path, onerror=refuse)
    names = [Path(root, name) for root, _, in_root in walk for name in in_root]
    return [file for file in sorted(names) if file.is_file() and file.suffix in changes.MANIFESTS]


def _objects(document: object, place: str) -> Iterator[tuple[str, JsonObject]]:
    """The objects of a document, each with its path in the document.

    Raises InputError for an entry of a list that is no object: whoever made it has lost one.
    """
    if not isinstance(document, dict):
        return
    items = kinds.list_items(document)
    if items is None:
        yield "", document
        return
    for index, item in enumerate(document.get("items") or ()):
        if not isinstance(item, dict):
            raise InputError(f"items[{index}] must be an object", place=place)
    for index, item in enumerate(items):
        yield f"items[{index}].", item


def _placed(tree: JsonObject) -> JsonObject:
    """The object with the namespace to which it would be applied."""
    metadata, kind = tree.get("metadata"), str(tree.get("kind"))
    if (
        not isinstance(metadata, dict)
        or metadata.get("namespace")
        or not kinds.is_namespaced(api_groups.RESOURCE, kind)
    ):
        return tree
    return {**tree, "metadata": {**metadata, "namespace": kinds.DEFAULT_NAMESPACE}}


def _is_ours(tree: JsonObject) -> bool:
    """Whether rules read the object, or the API knows no such kind in its group.

    An object without a version counts as an object of its kind.
    """
    kind = meta.kind(tree)
    group, version = registry.split_api_version(meta.api_version(tree))
    if kind in TOLD:
        return group in (api_groups.RESOURCE, api_groups.CORE)
    return group == api_groups.RESOURCE and not registry.find_kind(group, version, kind)
