"""The namespace of a release of helm, for the manifests below its head.

    NAME: shop
    LAST DEPLOYED: Fri Jan  2 03:04:05 2026
    NAMESPACE: lab
    …
    MANIFEST:                                helm get all, helm status, helm install --debug

`helm get manifest` prints no head, and its manifests are placed like those of a file.
"""

import re
from collections.abc import Sequence

from app.adapters.history import kinds
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_HEAD = re.compile(
    r"^NAME: \S+\r?\nLAST DEPLOYED: [^\r\n]+\r?\nNAMESPACE: (?P<namespace>[a-z0-9-]+)\r?$",
    re.MULTILINE,
)


def heads(text: str) -> list[tuple[int, str]]:
    """The line and the namespace of each release."""
    if "\nLAST DEPLOYED: " not in text:
        return []
    return [
        (1 + text.count("\n", 0, match.start()), match["namespace"])
        for match in _HEAD.finditer(text)
    ]


def namespace_above(line: int, releases: Sequence[tuple[int, str]]) -> str:
    """The namespace of the last release above a line; empty without one."""
    return next((namespace for at, namespace in reversed(releases) if at < line), "")


def namespace_of(document: JsonView) -> str:
    """The namespace in a release as JSON, which has its manifests as a text."""
    if not isinstance(document.get("manifest"), str) or "chart" not in document:
        return ""
    namespace = document.get("namespace")
    return namespace if isinstance(namespace, str) else ""


def placed(tree: JsonObject, namespace: str) -> JsonObject:
    """The manifest of a namespaced kind, in the namespace of its release if it names none."""
    group, _ = kinds.split_version(meta.api_version(tree))
    metadata = meta.metadata(tree)
    is_manifest = bool(metadata.get("name")) and not metadata.get("uid")
    if not namespace or not is_manifest or metadata.get("namespace"):
        return tree
    if not kinds.is_namespaced(group, meta.kind(tree)):
        return tree
    return {**tree, "metadata": {**metadata, "namespace": namespace}}
