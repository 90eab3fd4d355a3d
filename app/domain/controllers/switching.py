"""Controllers that are switched off while a history goes on.

The annotation `redra.dev/controllers-off` of the namespace `kube-system` names them, separated by
commas: who tests a scheduler of their own switches ours off. Being a field of an object, it stands
in the log with its moment and its author, is kept by restarts and forks, and whoever may change the
namespace may change it. Names that are no controllers are passed over.
"""

from collections.abc import Iterable

from app.domain.controllers import registry
from app.domain.log import HistoryInfo, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.objects.reader import ObjectsReader
from app.domain.values import api_resources
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject

CONTROLLERS_OFF = "redra.dev/controllers-off"

PLACE = ObjectKey(*api_resources.NAMESPACES, "", "kube-system")
"""The object that has the annotation; every cluster has it, and nobody can delete it."""


def switched_off(objects: ObjectsReader) -> frozenset[str]:
    """The names of the controllers that are switched off now."""
    tree = objects.get(PLACE)
    if tree is None:
        return frozenset()
    named = (name.strip() for name in meta.annotation(tree, CONTROLLERS_OFF).split(","))
    return frozenset(named) & frozenset(registry.NAMES)


def states(info: HistoryInfo, objects: ObjectsReader) -> list[tuple[str, str]]:
    """Name and state of each controller of a history, in their order.

    `on` or `off`; `off (settings)` and `off (release)` hold for good, and on what is `recorded` no
    controller runs.
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
    """The merge patch of the namespace that switches just these off; null takes it away."""
    return {"metadata": {"annotations": {CONTROLLERS_OFF: ",".join(sorted(off)) or None}}}
