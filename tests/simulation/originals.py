"""What identifies a cluster in the audit log of a recording, and where a file still has it.

It reads the lines of the log themselves and imports nothing of redra.
"""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAMES = {"name", "generateName", "namespace", "nodeName", "pool", "device", "counterSet"}
_OTHERS = {"request", "string", "version", "image", "uid", "shareID", "systemUUID", "machineID"}
_ADDRESSES = {"podIP", "hostIP", "ip", "address", "clusterIP"}
_FREE = {"labels", "matchLabels", "nodeSelector", "annotations"}

PUBLIC = {
    # Every cluster has them.
    *("default", "kube-node-lease", "kube-public", "kube-system", "kubernetes"),
    *("system-node-critical", "system-cluster-critical", "default-scheduler", "None"),
    # Drivers keep their names; a part of a name is also that of a request or of a namespace.
    *("gpu.example.com", "gpu.nvidia.com", "tpu.google.com", "gpu", "tpu"),
    # Names of attributes stay, and words of the API and of the formats; each is a name as well.
    "shared",
    *("pod", "taints", "one", "whole"),
    # The control plane.
    *("system:apiserver", "system:kube-scheduler", "system:kube-controller-manager"),
}
"""Words of recordings that may be in a redacted file."""

_CONTROLLERS = "system:serviceaccount:kube-system:"
_WORD = re.compile(r"[\w./:@-]+")
_COMPARED = re.compile(r"\d+(\.\d+){0,2}")
"""Numbers and versions, which selectors compare."""


def read(log: Path) -> set[str]:
    """The texts that identify a cluster; those of two characters are everywhere by chance."""
    words: set[str] = set()
    with gzip.open(log, "rt") as lines:
        for line in lines:
            event = json.loads(line)
            words |= {event["user"]["username"], event.get("userAgent", ""), event["auditID"]}
            words |= {*event.get("sourceIPs", ())}
            reference = event.get("objectRef") or {}
            words |= {reference.get("name", ""), reference.get("namespace", "")}
            for body in ("requestObject", "responseObject"):
                words |= {*_texts(event.get(body), "", "")}
    return {
        word
        for word in words - PUBLIC
        if len(word) > 2 and not _COMPARED.fullmatch(word) and not word.startswith(_CONTROLLERS)
    }


def _texts(tree: Any, field: str, above: str) -> Iterator[str]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from _texts(value, name, field)
    elif isinstance(tree, list):
        for item in tree:
            yield from _texts(item, field, above)
    elif isinstance(tree, str) and (field in _NAMES | _OTHERS | _ADDRESSES or above in _FREE):
        yield tree


def left(words: set[str], content: str) -> list[str]:
    """Those of the texts that a content has as whole words."""
    tokens = {*_WORD.findall(content)}
    tokens |= {part for token in tokens for part in re.split(r"[./:@]", token)}
    tokens |= {token.strip(".:/-@") for token in tokens}
    return sorted(
        word for word in words if (word in tokens if _WORD.fullmatch(word) else word in content)
    )
