"""The lines of watches: one change or bookmark in the form that a client asked for."""

import base64
from collections.abc import Hashable

from app.api.kubernetes.negotiation import Shape
from app.api.kubernetes.representations import Representations, Target, encode
from app.domain.log import Event, Revision
from app.domain.objects.registry import Kind
from app.domain.values import api_groups, well_known
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject


def line(word: bytes, body: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (word, body)


def bookmark(target: Target, revision: Revision, *, is_initial_end: bool = False) -> bytes:
    """The line that tells the client up to which revision it was sent all changes."""
    return line(b"BOOKMARK", encode(_bookmark_tree(target, revision, is_initial_end)))


class Frames:
    """A cache of encoded watch lines that watchers share."""

    def __init__(self, representations: Representations, frames_max: int) -> None:
        self._representations = representations
        self._kept: Bounded[tuple[bytes, Shape, str, Hashable], bytes] = Bounded(frames_max)

    def frame(self, word: bytes, event: Event, target: Target) -> bytes:
        """The line for one change, with the complete object or with its metadata alone."""
        form = target.form
        place = word, form.shape, form.version, target.place(event)
        lines = self._kept.get(place)
        if lines is None:
            representations = self._representations
            body = (
                representations.object_bytes(event, target)
                if form.shape is Shape.OBJECT
                else representations.metadata_bytes(event, target)
            )
            lines = self._kept[place] = line(word, body)
        return lines


def _blueprint(target: Target) -> dict[str, str]:
    """The annotation that holds an empty list of the watched kind.

    Clients that list by watching build their list from it. Without it typed, dynamic and metadata
    clients of Go fall back to a plain list.
    """
    kind, version = target.kind.list_kind, target.api_version
    if target.form.shape is Shape.METADATA:
        kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{target.form.version}"
    elif target.form.shape is Shape.TABLE:
        return {}
    tree = {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": ""}, "items": []}
    text = base64.b64encode(encode(tree)).decode()
    return {"kubernetes.io/initial-events-list-blueprint": text}


def _bookmark_tree(target: Target, revision: Revision, is_initial_end: bool) -> JsonObject:
    metadata: JsonObject = {"resourceVersion": str(revision), "creationTimestamp": None}
    meta_version = f"meta.k8s.io/{target.form.version}"
    if is_initial_end:
        metadata["annotations"] = {well_known.INITIAL_EVENTS_END: "true"} | _blueprint(target)
    match target.form.shape:
        case Shape.OBJECT:
            tree: JsonObject = {
                "kind": target.kind.kind,
                "apiVersion": target.api_version,
                "metadata": metadata,
            }
            return tree | ({"spec": {}} if _has_spec(target.kind) else {})
        case Shape.METADATA:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": meta_version,
                "metadata": metadata,
            }
        case Shape.TABLE:
            partial = {
                "kind": "PartialObjectMetadata",
                "apiVersion": meta_version,
                "metadata": metadata,
            }
            return {
                "kind": "Table",
                "apiVersion": meta_version,
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None,
                "rows": [{"cells": [], "object": partial}],
            }


def _has_spec(kind: Kind) -> bool:
    return kind.group == api_groups.RESOURCE
