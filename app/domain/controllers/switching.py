"""Controllers that are switched off while a history is running.

The annotation `redra.dev/controllers-off` of the namespace `kube-system` names them, separated by
commas; for example, users who test their own scheduler switch this one off. Because it is a field
of an object, the log records its time and author, restarts and forks keep it, and the permission to
change the namespace includes it. Names that are not controllers are ignored.
"""

from collections.abc import Iterable

from app.domain.controllers import registry
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CONTROLLERS_OFF = "redra.dev/controllers-off"

KUBE_SYSTEM = ObjectKey(*api_resources.NAMESPACES, "", "kube-system")
"""The object with the annotation; every cluster has it, and it cannot be deleted."""


def switched_off(objects: ObjectsReader) -> frozenset[str]:
    """The names of the controllers that are switched off now."""
    tree = objects.get(KUBE_SYSTEM)
    return frozenset() if tree is None else named(tree)


def named(tree: JsonView) -> frozenset[str]:
    """The names of controllers that a state of `KUBE_SYSTEM` switches off."""
    names = (name.strip() for name in meta.annotation(tree, CONTROLLERS_OFF).split(","))
    return frozenset(names) & frozenset(registry.NAMES)


def states(info: HistoryInfo, objects: ObjectsReader) -> list[tuple[str, str]]:
    """The name and state of each controller of a history, in order.

    A state is `on` or `off`; `off (settings)` and `off (release)` are permanent. On a history that
    is `recorded` no controller runs.
    """
    options = registry.options_from(info.settings)
    running = registry.running(profiles.from_settings(info.settings), options)
    off = switched_off(objects)

    def state(name: str) -> str:
        if info.is_decided_elsewhere:
            return "recorded"
        if name in options.off:
            return "off (settings)"
        if name not in running:
            return "off (release)"
        return "off" if name in off else "on"

    return [(name, state(name)) for name in registry.NAMES]


def annotation_patch(off: Iterable[str]) -> JsonObject:
    """The merge patch of the namespace that switches exactly these off; null for none."""
    return {"metadata": {"annotations": {CONTROLLERS_OFF: ",".join(sorted(off)) or None}}}
