"""Rules about ResourceSlicePatches (KEP-5027)."""

from collections.abc import Iterator

from app.analysis.lint.findings import FindingPlace, LintFinding, LintRule, LintSeverity
from app.analysis.lint.subjects import LintedObject, Subjects
from app.domain.devices import compiling, patches
from app.domain.devices.patches import SlicePatch
from app.domain.errors import InputError
from app.domain.values import counts
from app.domain.values.fields import meta

FAILS = LintRule(
    id="patch-selector-fails",
    severity=LintSeverity.ERROR,
    reads="ResourceSlicePatch, DeviceClass, ResourceSlice",
    means="A selector of the patch fails on a device: the patch does not apply to that device, and "
    "only a warning event says so.",
    cure="Check the driver first and use has() or optional chaining with orValue().",
    reference="docs/parity/objects.md 9; KEP-5027",
)
IDLE = LintRule(
    id="patch-matches-nothing",
    severity=LintSeverity.WARNING,
    reads="ResourceSlicePatch, DeviceClass, ResourceSlice",
    means="The filter of the patch matches no device of the sources, or others win everywhere: the "
    "patch changes nothing.",
    cure="Compare the names and selectors of the filter with the slices, and the priorities.",
    reference="docs/parity/objects.md 9; KEP-5027",
)
TIE = LintRule(
    id="patch-priority-tie",
    severity=LintSeverity.WARNING,
    reads="ResourceSlicePatch, ResourceSlice",
    means="Two patches of one priority set one attribute or capacity of one device: the older one "
    "wins, so deleting and creating it again changes devices.",
    cure="Give the patches different priorities.",
    reference="docs/parity/objects.md 9; KEP-5027",
)
RULES = (FAILS, IDLE, TIE)


def check(subjects: Subjects) -> Iterator[LintFinding]:
    """All rules on all patches."""
    by_name = {
        meta.name(each.tree): (each, compiled)
        for each in subjects.of_kind("ResourceSlicePatch")
        if (compiled := _compiled(each, subjects)) is not None
    }
    if not by_name or not subjects.devices:
        return
    failed: set[str] = set()
    for problem in subjects.inventory.patch_problems():
        if problem.patch in by_name and problem.patch not in failed:
            failed.add(problem.patch)
            subject, _ = by_name[problem.patch]
            place = subject.at("spec.devices.filter.selectors")
            yield FAILS.at(place, f"on device {'/'.join(problem.device)}: {problem.problem}")
    applied = {each.patch for device in subjects.devices for each in device.patches}
    for name, (subject, _) in by_name.items():
        if name not in applied and name not in failed:
            place = subject.at("spec.devices.filter")
            yield IDLE.at(place, f"it changes none of {counts.of(len(subjects.devices), 'device')}")
    yield from _ties(by_name, subjects, failed)


def _compiled(subject: LintedObject, subjects: Subjects) -> SlicePatch | None:
    try:
        return patches.patch_of(subject.tree, subjects.compiler)
    except InputError:
        return None  # `object-invalid` says so


def _ties(
    by_name: dict[str, tuple[LintedObject, SlicePatch]], subjects: Subjects, failed: set[str]
) -> Iterator[LintFinding]:
    reported: set[frozenset[str]] = set()
    ordered = list(by_name.items())
    for position, (name, (subject, patch)) in enumerate(ordered):
        for other_name, (other, second) in ordered[:position]:
            pair = frozenset((name, other_name))
            shared = _fields(patch) & _fields(second)
            if patch.priority != second.priority or not shared or pair in reported:
                continue
            if not pair & failed and _meet(patch, second, subjects):
                reported.add(pair)
                related: list[FindingPlace] = [other.at("spec.devices.priority")]
                message = f"priority {patch.priority}, as {other_name}; both set {min(shared)}"
                yield TIE.at(subject.at("spec.devices.priority"), message, related)


def _fields(patch: SlicePatch) -> set[str]:
    return {*patch.attributes, *patch.capacity}


def _meet(first: SlicePatch, second: SlicePatch, subjects: Subjects) -> bool:
    """Whether both patches apply to some device."""
    classes = {
        name: patches.class_filter_of(subject.tree, subjects.compiler)
        for name, subject in subjects.classes.items()
    }
    both = (first, second)
    for device in subjects.devices:
        if not device.patches:
            continue
        published = compiling.device_of((device.id[0], device.id[1]), device.tree, device.text)
        if len(patches.select(published, both, classes)[0]) > 1:
            return True
    return False
