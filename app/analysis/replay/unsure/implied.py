"""Objects that no line of a recording shows, but whose existence follows from other objects.

A server refuses objects in a namespace that does not exist. The namespace controller deletes the
objects in a namespace whose deletion was requested. A claim that was generated for a pod has the
spec of the template that the pod names. If no line shows the namespace or the template itself, a
replay adds it, so that everything else can still be decided again. A line without a body shows
nothing but that a namespace was to end. Parity: controllers.md 2.2.
"""

from collections.abc import Iterator, Sequence

from app.analysis.replay.authors import NAMESPACES, UNNAMED
from app.analysis.replay.facts import subject_of
from app.analysis.replay.traces import is_event_object
from app.domain.log import Actor, Event, EventType, ObjectKey, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.records import BASELINE_VERB
from app.domain.values import (
    api_groups,
    api_resources,
    event_reasons,
    json_tree,
    timestamps,
    well_known,
)
from app.domain.values.fields import core, dra, entries, meta
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject

"""The reason of the Event in which the claim controller says that it did not find a template."""

_KINDS = frozenset((api_resources.NAMESPACES, api_resources.RESOURCE_CLAIM_TEMPLATES))


class Implied:
    """Finds the objects that the events of a recording imply; `before` takes them in order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._shown: set[ObjectKey] = set()
        self._claims: dict[tuple[str, str], JsonObject] = {}
        self._templates: dict[ObjectKey, JsonObject] = {}
        self._entries: dict[str, Sequence[JsonObject]] = {}
        self._living: set[ObjectKey] = set()
        self._namespaces: dict[ObjectKey, JsonObject] = {}
        self._uids: dict[ObjectKey, Uid] = {}
        self._admin: set[str] = set()
        self._refused: set[str] = set()
        bare: set[ObjectKey] = set()
        for event in events:
            if event.key[:2] in _KINDS:
                if not event.is_about_object:
                    bare.add(event.key)
                elif event.key in bare - self._shown and event.stamp.verb == BASELINE_VERB:
                    # Its creation has a line without a body, and another line shows it later.
                    self._uids.setdefault(event.key, event.uid)
                elif event.key not in self._uids:
                    self._shown.add(event.key)
            elif event.type is EventType.OBJECT_CREATED:
                self._note(event)

    def _note(self, event: Event) -> None:
        if (
            is_event_object(event.key)
            and core.event_object(event.object).reason == event_reasons.FAILED_CLAIM_CREATION
        ):
            self._refused.add(subject_of(event.object))
        if event.key[:2] != api_resources.RESOURCE_CLAIMS:
            return
        claim, owner = event.object, meta.controller(event.object)
        if any(each.exactly and each.exactly.admin_access for each in dra.requests(claim)):
            self._admin.add(event.key.namespace)
        entry = meta.annotation(claim, well_known.POD_CLAIM_NAME)
        if owner is not None and entry:
            self._claims.setdefault((owner.uid, entry), claim)

    def before(self, event: Event) -> Iterator[Event]:
        """The objects whose existence follows from the event, once each, as events before it."""
        if not event.is_about_object:
            yield from self._ended_by(event)
            return
        if event.key[:2] == api_resources.NAMESPACES:
            self._namespaces[event.key] = event.object
        is_end = event.type is EventType.OBJECT_DELETED
        if event.key.namespace:
            place = ObjectKey(*api_resources.NAMESPACES, "", event.key.namespace)
            if place not in self._shown and not is_end:
                self._living.add(place)
                self._namespaces[place] = self._namespace(event.key.namespace)
                yield self._made(place, self._namespaces[place], event)
            elif place in self._living and event.stamp.actor.user == NAMESPACES:
                self._living.remove(place)
                yield self._made(
                    place, _ending(self._namespace(place.name), event), event, "delete"
                )
        if event.key.resource == "pods" and not is_end:
            self._entries[event.uid] = core.resource_claims(event.object)
            if event.uid not in self._refused:
                yield from self._templates_of(event.uid, event)
        elif event.key[:2] == api_resources.RESOURCE_CLAIMS and not is_end:
            # The controller had not found a template before.
            yield from self._templates_of(meta.controller_uid(event.object), event)

    def _ended_by(self, event: Event) -> Iterator[Event]:
        """The request to delete a namespace whose line has no body: it says when, and of what."""
        is_request = event.type is EventType.GAP_OBSERVED and event.stamp.verb == "delete"
        namespace = self._namespaces.get(event.key)
        if is_request and namespace is not None and not meta.deletion_timestamp(namespace):
            self._living.discard(event.key)
            self._namespaces[event.key] = _ending(namespace, event)
            yield self._made(event.key, self._namespaces[event.key], event, "delete")

    def _templates_of(self, pod: str, event: Event) -> Iterator[Event]:
        """The templates of the claims that were generated for a pod."""
        for entry in self._entries.get(pod, ()):
            claim = self._claims.get((pod, entries.name(entry)))
            name = json_tree.text(entry, "resourceClaimTemplateName")
            if name and claim is not None:
                yield from self._template(name, _template_of(claim), event)

    def _template(self, name: str, tree: JsonObject, event: Event) -> Iterator[Event]:
        """The creation of the template of a pod's claim, or its change if it is known otherwise."""
        key = ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, event.key.namespace, name)
        before = self._templates.get(key)
        if before == tree or (before is None and key in self._shown):
            return
        self._templates[key] = tree
        yield self._made(key, tree, event, BASELINE_VERB if before is None else "update")

    def _made(
        self, key: ObjectKey, tree: JsonObject, event: Event, verb: str = BASELINE_VERB
    ) -> Event:
        """The write of an implied object, just before an event."""
        is_new = verb == BASELINE_VERB
        self._shown.add(key)
        uid = meta.uid(tree) or self._uids.get(key) or Uid(f"implied-{key}")
        metadata = {**tree["metadata"], "name": key.name, "uid": uid}
        if key.namespace:
            metadata["namespace"] = key.namespace
        return Event(
            revision=event.revision,
            type=EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED,
            key=key,
            uid=uid,
            body=canonical_json({**tree, "metadata": metadata}),
            stamp=Stamp(time=event.stamp.time, actor=Actor(user=UNNAMED), verb=verb),
        )

    def _namespace(self, name: str) -> JsonObject:
        """A namespace with the labels that its objects need, such as that for admin access."""
        labels = {"kubernetes.io/metadata.name": name}
        if name in self._admin:
            labels[well_known.ADMIN_ACCESS] = "true"
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"labels": labels},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }


def _ending(namespace: JsonObject, event: Event) -> JsonObject:
    """A namespace whose deletion was requested by the time of an event that deletes content."""
    since = timestamps.seconds_text(event.stamp.time)
    return {**namespace, "metadata": {**namespace["metadata"], "deletionTimestamp": since}}


def _template_of(claim: JsonObject) -> JsonObject:
    """The template from which a claim was generated."""
    annotations = dict(meta.annotations(claim))
    annotations.pop(well_known.POD_CLAIM_NAME, None)
    given = {"annotations": annotations, "labels": dict(meta.labels(claim))}
    return {
        "apiVersion": f"{api_groups.RESOURCE}/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {},
        "spec": {
            "metadata": {name: values for name, values in given.items() if values},
            "spec": json_tree.copy(dict(meta.spec(claim))),
        },
    }
