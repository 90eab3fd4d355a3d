"""ResourceSlicePatches (KEP-5027): administrators override attributes and capacity of devices.

Selectors see the device as its driver published it. Precedence applies per attribute and per
capacity: first the higher priority, then the older patch; a removal counts as a value. The age is
the creationTimestamp, which has whole seconds; within a second the revision of the creation
decides, and the name only if that is not known. Parity: KEP-5027, objects.md 9.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from app.domain.devices import compiling
from app.domain.devices.device_selectors import (
    DeviceSelector,
    SelectorCompileError,
    SelectorCompiler,
)
from app.domain.devices.model import AppliedPatch, Device, PatchProblem
from app.domain.errors import InputError
from app.domain.values import json_tree
from app.domain.values.fields import dra, meta
from app.domain.values.identifiers import DeviceId, Uid
from app.domain.values.json_tree import JsonObject, JsonView


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePatch:
    """A ResourceSlicePatch, compiled.

    `attributes` and `capacity` map qualified names to API values; `{"null": …}` removes an entry.
    `created` is the revision of its creation, 0 when that is not known. `selectors` are the
    selectors of the filter itself; `problem` is the error text of one that does not compile.
    """

    name: str
    uid: Uid
    priority: int
    created_at: str
    created: int
    class_name: str
    driver: str
    pool: str
    device: str
    selectors: tuple[DeviceSelector, ...]
    problem: str
    attributes: JsonView
    capacity: JsonView

    @property
    def precedence(self) -> tuple[int, str, int, str]:
        """The sort key of patches; the first patch wins."""
        return (-self.priority, self.created_at, self.created, self.name)

    def names(self, device: DeviceId) -> bool:
        """Whether the names in the filter include the device; selectors are not evaluated here."""
        return (
            (not self.driver or self.driver == device[0])
            and (not self.pool or self.pool == device[1])
            and (not self.device or self.device == device[2])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFilter:
    """The selectors of a DeviceClass, or the problem that prevents their evaluation."""

    selectors: tuple[DeviceSelector, ...]
    problem: str


def patch_of(tree: JsonObject, compiler: SelectorCompiler, created: int = 0) -> SlicePatch:
    """The compiled patch of an API object that was created at revision `created`.

    Raises InputError for an unreadable quantity, and for a value that is no object.
    """
    spec = json_tree.mapping(tree, "spec", "devices")
    device_filter = json_tree.mapping(spec, "filter")
    name = meta.name(tree)
    place = f"ResourceSlicePatch {name}: spec.devices"
    attributes, capacity = dra.attributes(spec), dra.capacity(spec)
    for field, values in (("attributes", attributes), ("capacity", capacity)):
        for entry, value in values.items():
            if not isinstance(value, Mapping):
                raise InputError("the value is not an object", place=f"{place}.{field}[{entry}]")
    compiling.capacity_of(capacity, f"{place}.capacity")
    selectors, problem = _compiled(json_tree.objects(device_filter, "selectors"), compiler)
    return SlicePatch(
        name=name,
        uid=meta.uid(tree),
        priority=json_tree.integer(spec, "priority") or 0,
        created_at=meta.creation_timestamp(tree),
        created=created,
        class_name=dra.device_class_name(device_filter),
        driver=json_tree.text(device_filter, "driver"),
        pool=json_tree.text(device_filter, "pool"),
        device=json_tree.text(device_filter, "device"),
        selectors=selectors,
        problem=problem,
        attributes=attributes,
        capacity=capacity,
    )


def as_old_as(patch: SlicePatch, before: SlicePatch | None) -> SlicePatch:
    """The patch with the creation revision of `before`, if that is the same object by uid."""
    if before is None or before.uid != patch.uid:
        return patch
    return replace(patch, created=before.created)


def class_filter_of(tree: JsonView, compiler: SelectorCompiler) -> ClassFilter:
    """The selectors of a DeviceClass object."""
    selectors, problem = _compiled(dra.class_selectors(tree), compiler)
    return ClassFilter(selectors=selectors, problem=problem)


def merge(
    device: Device, patches: Iterable[SlicePatch], classes: Mapping[str, ClassFilter]
) -> tuple[Device, tuple[PatchProblem, ...]]:
    """The device with all matching patches applied, and the patches that failed on it."""
    matching, problems = select(device, patches, classes)
    if not matching:
        return device, tuple(problems)
    attributes = dict(device.attributes)
    capacity = dict(device.capacity_tree)
    applied: list[AppliedPatch] = []
    decided: set[tuple[str, str]] = set()
    for patch in matching:
        for field, target, changes in (
            ("attributes", attributes, patch.attributes),
            ("capacity", capacity, patch.capacity),
        ):
            for name, value in changes.items():
                if (field, name) not in decided:
                    decided.add((field, name))
                    applied.append(_apply(device, patch, field, target, name, value))
    changed = replace(
        device,
        attributes=attributes,
        capacity_tree=capacity,
        capacity=compiling.capacity_of(capacity, f"device {device.text}: capacity"),
        patches=tuple(applied),
    )
    return changed, tuple(problems)


def select(
    device: Device, patches: Iterable[SlicePatch], classes: Mapping[str, ClassFilter]
) -> tuple[list[SlicePatch], list[PatchProblem]]:
    """The patches that select a device, in order of precedence, and those that failed on it."""
    matching: list[SlicePatch] = []
    problems: list[PatchProblem] = []
    for patch in sorted(patches, key=lambda patch: patch.precedence):
        if not patch.names(device.id):
            continue
        matches, problem = _selects(device, patch, classes)
        if problem:
            problems.append(PatchProblem(patch=patch.name, device=device.id, problem=problem))
        elif matches:
            matching.append(patch)
    return matching, problems


def _apply(
    device: Device,
    patch: SlicePatch,
    field: str,
    target: JsonObject,
    name: str,
    value: JsonView,
) -> AppliedPatch:
    """Sets or removes one entry; a name in the driver's domain also replaces its short form."""
    domain, _, short = name.partition("/")
    spellings = [name, short] if domain == device.id[0] else [name]
    present = [spelling for spelling in spellings if spelling in target]
    removed = field == "attributes" and "null" in value
    old = target.get(present[0]) if present else None
    for spelling in present:
        if removed or spelling != present[0]:
            del target[spelling]
    if not removed:
        written = dict(value)
        if field == "capacity" and isinstance(old, Mapping) and "requestPolicy" in old:
            written["requestPolicy"] = old["requestPolicy"]
        target[present[0] if present else name] = written
    return AppliedPatch(patch=patch.name, field=field, name=name, removed=removed)


def _selects(
    device: Device, patch: SlicePatch, classes: Mapping[str, ClassFilter]
) -> tuple[bool, str]:
    selectors: Sequence[DeviceSelector] = ()
    if patch.class_name:
        class_selectors = classes.get(patch.class_name)
        if class_selectors is None:
            return False, ""
        if class_selectors.problem:
            return False, f"class {patch.class_name}: {class_selectors.problem}"
        selectors = class_selectors.selectors
    if patch.problem:
        return False, patch.problem
    for selector in (*selectors, *patch.selectors):
        verdict = selector.judge((device,))[0]
        if verdict.error:
            return False, verdict.error
        if not verdict.match:
            return False, ""
    return True, ""


def _compiled(
    trees: Iterable[JsonView], compiler: SelectorCompiler
) -> tuple[tuple[DeviceSelector, ...], str]:
    selectors = []
    for index, tree in enumerate(trees):
        expression = dra.selector_expression(tree)
        try:
            selectors.append(compiler.compile(expression))
        except SelectorCompileError as problem:
            return (), f"selector #{index}: CEL compile error: {problem}"
    return tuple(selectors), ""
