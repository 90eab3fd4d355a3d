"""Rules about single objects: what the API refuses or drops, and names used for two objects."""

from collections.abc import Iterator

from app.analysis.lint.findings import LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import LintedObject, Subjects, lacks_pool
from app.domain.errors import Rejected
from app.domain.log import ObjectKey
from app.domain.objects import registry
from app.domain.objects.field_errors import FieldError, FieldErrorType
from app.domain.objects.reader import UnknownCluster
from app.domain.objects.registry import Kind
from app.domain.objects.rules import Rules
from app.domain.objects.schema import conversion
from app.domain.objects.write import admission, metadata
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.values import api_groups, counts
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

INVALID = LintRule(
    id="object-invalid",
    severity=LintSeverity.ERROR,
    reads="all kinds of resource.k8s.io, Node",
    means="The API server of the release refuses the object; a driver that publishes it publishes "
    "nothing.",
    cure="Correct the field as the message says. In YAML, n, off and 1e3 are texts only within "
    "quotes.",
    reference="docs/parity/objects.md 3 to 10",
)
UNKNOWN_FIELD = LintRule(
    id="field-unknown",
    severity=LintSeverity.WARNING,
    reads="all kinds of resource.k8s.io, Node",
    means="The release does not know the field in this version and drops it, so what it says is "
    "lost without an error.",
    cure="Write the field as the object's apiVersion has it, or write the apiVersion that has it.",
    reference="docs/parity/objects.md 12 and 13",
)
SELECTOR_INVALID = LintRule(
    id="selector-invalid",
    severity=LintSeverity.ERROR,
    reads="DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlicePatch",
    means="The CEL expression does not compile; the API server refuses the object.",
    cure="Try the expression with `redra cel`; it shows where compilation fails.",
    reference="docs/parity/allocator.md 11.1",
)
SELECTOR_TOO_COSTLY = LintRule(
    id="selector-too-costly",
    severity=LintSeverity.ERROR,
    reads="DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlicePatch",
    means="The estimated cost of the CEL expression exceeds the limit; the API server refuses the "
    "object.",
    cure="Avoid nested loops over attributes; compare single attributes instead.",
    reference="docs/parity/allocator.md 11.6",
)
DUPLICATE = LintRule(
    id="object-duplicate",
    severity=LintSeverity.WARNING,
    reads="all kinds",
    means="The sources hold two objects of one kind, namespace and name: applied, the later one "
    "replaces the earlier.",
    cure="Rename one of them; ResourceSlices best get their names by generateName.",
    reference="docs/parity/objects.md 2",
)
RULES = (INVALID, UNKNOWN_FIELD, SELECTOR_INVALID, SELECTOR_TOO_COSTLY, DUPLICATE)

EXPRESSION = ".cel.expression"
_WARN = WriteOptions(field_validation=FieldValidation.WARN)


def admit(
    subject: LintedObject, rules: Rules, now: Instant
) -> tuple[LintedObject, list[LintFinding]]:
    """The object as the API server would store it, and the reasons why it would refuse it.

    An object that cannot be converted is returned unchanged.
    """
    kind, group, version = _kind_of(subject.tree)
    if kind is None:
        return subject, [INVALID.at(subject.at(), _lack_of_kind(subject.tree))]
    try:
        if (group, version) not in kind.group_versions:
            conversion.check_version(kind, group, version)
        stored, dropped = admission.admit(
            kind, group, version, subject.tree, options=_WARN, rules=rules, now=now
        )
    except Rejected as problem:
        return subject, [INVALID.at(subject.at(), problem.message)]
    admitted = LintedObject(
        kind=kind.kind,
        tree=stored,
        source=subject.source,
        line=subject.line,
        revision=subject.revision,
    )
    notes = [
        UNKNOWN_FIELD.at(admitted.at(_quoted(text)), f"{text} in {version}") for text in dropped
    ]
    return admitted, [*notes, *_refusals(admitted, kind, rules, now)]


def _refusals(
    subject: LintedObject, kind: Kind, rules: Rules, now: Instant
) -> Iterator[LintFinding]:
    context = rules.context(UnknownCluster(), now)
    errors = metadata.check(kind, subject.tree)
    for error in (*errors, *rules.validate_create(kind, subject.tree, context)):
        yield _rule_of(error).at(subject.at(error.path), error.text)


def _rule_of(error: FieldError) -> LintRule:
    if error.path.endswith(EXPRESSION):
        if error.type is FieldErrorType.FORBIDDEN:
            return SELECTOR_TOO_COSTLY
        if error.type is FieldErrorType.INVALID:
            return SELECTOR_INVALID
    return INVALID


def _kind_of(tree: JsonObject) -> tuple[Kind | None, str, str]:
    name = meta.kind(tree)
    group, version = registry.split_api_version(meta.api_version(tree))
    kind = registry.find_kind(group, version, name)
    if kind is None and group == api_groups.RESOURCE:
        kind = next(
            (
                each
                for each in registry.find_name(name)
                if each.kind == name and each.group == group
            ),
            None,
        )
    return kind, group, version


def _lack_of_kind(tree: JsonObject) -> str:
    version, kind = meta.api_version(tree), meta.kind(tree)
    if not version or not kind:
        return f"{'kind' if version else 'apiVersion'} is missing, or is not text"
    return f"there is no kind {kind!r} in {version}"


def _quoted(text: str) -> str:
    """The path in a message such as `unknown field "spec.x"`."""
    parts = text.split('"')
    return parts[1] if len(parts) > 2 else ""


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """The findings in objects as they are stored, and names used for two objects."""
    yield from _without_pool(subjects)
    yield from _repeated(subjects)


def _without_pool(subjects: Subjects) -> Iterator[LintFinding]:
    """Slices without a driver or pool, which only a source that is no server can hold.

    Stored objects are not validated again; those of manifests are, and refused ones are left out.
    """
    for subject in subjects.of_kind("ResourceSlice"):
        if lacking := lacks_pool(subject.tree):
            verb = "are" if len(lacking) > 1 else "is"
            yield INVALID.at(subject.at("spec"), f"{' and '.join(lacking)} {verb} missing")


def _repeated(subjects: Subjects) -> Iterator[LintFinding]:
    """Names that are used for two objects of the sources.

    Objects that two sources have in common are reported once: the sources are alternatives.
    """
    first: dict[ObjectKey, LintedObject] = {}
    repeated: dict[tuple[str, str], list[tuple[LintedObject, LintedObject]]] = {}
    for number, subject in enumerate(subjects.objects):
        namespace, name = meta.place(subject.tree)
        if not name:
            continue
        earlier = first.setdefault(ObjectKey("", subject.kind, namespace, name), subject)
        if earlier is subject:
            continue
        # A name that occurs twice within one source is a separate mistake.
        is_alone = earlier.source == subject.source
        pair = (earlier.source, str(number) if is_alone else subject.source)
        repeated.setdefault(pair, []).append((earlier, subject))
    for (source, _), pairs in repeated.items():
        _, subject = pairs[0]
        message = f"{subject.text} is there already"
        if len(pairs) > 1:
            others = counts.of(len(pairs) - 1, "more object")
            message += (
                f", as {others} of {source}: where these are alternatives, name the sources that "
                "belong together"
            )
        places = [each.at() for each, _ in pairs]
        yield DUPLICATE.at(subject.at("metadata.name"), message, places)
