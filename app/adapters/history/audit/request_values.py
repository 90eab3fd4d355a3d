"""Values that a request gives, and that its own answer shows as others.

An audit log has the body of an update, a patch or a creation beside the object after it. A server
stores what is asked, fills in what is absent, and drops fields that it does not know. It puts no
other value in the place of a given one, unless a webhook changed the object, which the log says.
So an answer with another value belongs to another request, or one of the two was altered.
Parity: history-formats.md 4.3.

Only the part that the request may write is compared: of a status the status, else the spec, the
labels and the annotations, and the fields of an Event. A field without a value says nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.adapters.history.audit.event import AuditEvent
from app.domain.values import api_groups, api_resources, json_tree, quantity, timestamps
from app.domain.values.fields import core, meta, paths
from app.domain.values.json_tree import JsonObject, JsonView

_WEBHOOK = "mutation.webhook.admission.k8s.io/"
"""The beginning of the annotations that name what a webhook did to the object."""

_MUTATED = '"mutated":true'
_METADATA = ("labels", "annotations")
_IDENTITY = ("name", "namespace")
_OPEN = frozenset(("metadata.labels", "metadata.annotations"))
"""The maps from which a server drops nothing that was given."""

_MAY_LOSE_ITEMS = frozenset(("status.devices",))
"""Lists of which a server drops items: a claim that gives devices back loses their states."""

_PULLS, _ALWAYS = "imagePullPolicy", "Always"
"""The field to which an admission plug-in gives a value of its own, and that value."""

_GRACE = "terminationGracePeriodSeconds"
"""The field of which a server takes a negative number for 1."""

_GIVEN_GRACE = "deletionGracePeriodSeconds"
_IN_QUERY = "gracePeriodSeconds="

requested_grace = paths.integer("gracePeriodSeconds")
"""The grace period that the options of a deletion give, if any."""

_EVENTS = "events"
_ITEM = "item"
"""The path of an item of which only whether it fits counts."""

_JUDGED = frozenset((api_resources.PODS[1], api_resources.NODES[1], _EVENTS))
_OWN_OF_OBJECTS = frozenset(("apiVersion", "kind", "metadata", "spec", "status"))


def changed(event: AuditEvent, wanted: JsonView, shown: JsonObject) -> str:
    """The path of the first value of a request that its answer shows as another one, or empty."""
    reference = event.object_ref
    if reference is None or reference.subresource not in ("", "status"):
        return ""
    if reference.api_group != api_groups.RESOURCE and reference.resource not in _JUDGED:
        return ""
    if wanted.get("apiVersion", shown.get("apiVersion")) != shown.get("apiVersion"):
        return ""
    if (upon := meta.resource_version(wanted)) and not upon.isdecimal():
        return "metadata.resourceVersion"  # a server writes upon no version that it cannot read
    if any(_is_change(name, text) for name, text in (event.annotations or {}).items()):
        return ""
    parts = _parts(
        wanted, is_status=reference.subresource == "status", is_event=reference.resource == _EVENTS
    )
    others = (_other(value, _at(shown, path), path) for path, value in parts)
    return next(filter(None, others), "")


def ended(event: AuditEvent, shown: JsonObject) -> str:
    """The path of a grace period that is longer than the request for a deletion gives, or empty.

    A pod gets that of the request, else its own; without a node, and when it has finished, none. An
    earlier request may have given less, and none can give more. Parity: controllers.md 5.2.
    """
    reference, given = event.object_ref, meta.deletion_grace(shown)
    is_pod = reference is not None and reference.resource == "pods" and not reference.api_group
    options = event.request()
    if not (is_pod and given and isinstance(options, dict)) or _IN_QUERY in event.request_uri:
        return ""
    period = requested_grace(options)
    if period is None:
        period = core.grace_period(shown)
    if not core.node_name(shown) or core.is_finished(shown):
        period = 0
    longest = 1 if period is not None and period < 0 else period
    return f"metadata.{_GIVEN_GRACE}" if longest is not None and given > longest else ""


def _is_change(name: str, text: str) -> bool:
    return name.startswith(_WEBHOOK) and _MUTATED in text.replace(" ", "")


def _parts(wanted: JsonView, *, is_status: bool, is_event: bool) -> Iterator[tuple[str, Any]]:
    """The parts of a body that its request may write, each with its path."""
    metadata = meta.metadata(wanted)
    for name in _IDENTITY if is_status else (*_IDENTITY, *_METADATA):
        if metadata.get(name):
            yield f"metadata.{name}", metadata[name]
    names: tuple[str, ...] = ("status",) if is_status else ("spec",)
    if is_event:
        names = tuple(name for name in wanted if name not in _OWN_OF_OBJECTS)
    for name in names:
        if wanted.get(name) is not None:
            yield name, wanted[name]


def _at(shown: JsonView, path: str) -> Any:
    return json_tree.get(shown, *path.split("."))


def _other(wanted: Any, shown: Any, path: str) -> str:
    """The path of the first value below `wanted` that `shown` has as another one."""
    if wanted is None:
        return ""
    if isinstance(wanted, dict):
        if shown is None or "$patch" in wanted:
            return path if wanted and path in _OPEN else ""
        return _other_field(wanted, shown, path) if isinstance(shown, dict) else path
    if shown is None:
        return ""
    if isinstance(wanted, list):
        return _other_item(wanted, shown, path) if isinstance(shown, list) else path
    is_own = _is_of_server(path.rpartition(".")[2], wanted, shown)
    return "" if is_own or _is_same(wanted, shown) else path


def _is_of_server(name: str, wanted: Any, shown: Any) -> bool:
    """Whether a server itself puts this value in the place of the given one."""
    if name == _GRACE:
        return isinstance(wanted, int) and wanted < 0 and shown == 1
    return name == _PULLS and shown == _ALWAYS


def _other_field(wanted: Mapping[str, Any], shown: Mapping[str, Any], path: str) -> str:
    for name, value in wanted.items():
        deeper = f"{path}.{name}"
        if name not in shown:
            if path in _OPEN and value is not None:
                return deeper
        elif not name.startswith("$") and (other := _other(value, shown[name], deeper)):
            return other
    return ""


def _other_item(wanted: list[Any], shown: list[Any], path: str) -> str:
    """The first item that no item of the answer may be; a patch may name some of a list."""
    if path in _MAY_LOSE_ITEMS:
        return ""
    for index, item in enumerate(wanted):
        here = f"{path}[{index}]"
        beside = shown[index] if len(wanted) == len(shown) else None
        deeper = _other(item, beside, here) if beside is not None else here
        if deeper and not any(_fits(item, each) for each in shown):
            return deeper
    return ""


def _fits(wanted: Any, shown: Any) -> bool:
    return shown is not None and not _other(wanted, shown, _ITEM)


def _is_same(wanted: Any, shown: Any) -> bool:
    """Whether two single values are one for a server, which writes times and amounts in its way."""
    if wanted == shown and isinstance(wanted, bool) is isinstance(shown, bool):
        return True
    if isinstance(wanted, bool) or isinstance(shown, bool):
        return False
    if isinstance(wanted, str) and isinstance(shown, str):
        first, second = timestamps.instant_of(wanted), timestamps.instant_of(shown)
        if first is not None and second is not None:
            return timestamps.seconds_text(first) == timestamps.seconds_text(second)
    return str(wanted) == str(shown) or _is_same_amount(wanted, shown)


def _is_same_amount(wanted: Any, shown: Any) -> bool:
    try:
        amounts = quantity.from_json(wanted), quantity.from_json(shown)
    except ValueError:
        return False
    return quantity.compare(*amounts) == 0
