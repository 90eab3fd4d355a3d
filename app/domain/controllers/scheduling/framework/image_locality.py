"""The score ImageLocality: prefers nodes that already have the images of a pod.

An image counts with its size times the share of all nodes that have it, so that a common image
attracts more pods than one that would gather them all on a single node. The sum over the pod's
images is bounded by 23 MiB below and 1000 MiB per image above, and scaled to 0 to 100.

Example: ten nodes, an image of 500 MiB on four of them: 500 * 0.4 = 200 MiB, and for a pod of one
container 100 * (200 - 23) / (1000 - 23) = 18.

Parity: controllers.md 4.5. If nodes report different sizes for one name, the largest is taken
(upstream: that of the first report).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.values import json_tree
from app.domain.values.bounded import Bounded
from app.domain.values.fields import core, meta
from app.domain.values.json_tree import JsonObject, JsonView

SCORE_MAX = 100

MEBIBYTE = 1024 * 1024
SUM_MIN = 23 * MEBIBYTE
SUM_MAX_PER_IMAGE = 1000 * MEBIBYTE

KNOWN_MAX = 32
"""The number of sets of images whose scores are cached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedImages:
    """The full names of a pod's images, and the number of images that sets the upper bound."""

    names: tuple[str, ...]
    count: int


class ImageIndex:
    """The images that the nodes report, by image name."""

    def __init__(self) -> None:
        self._sizes: dict[str, dict[str, int]] = {}
        self._reported: dict[str, Sequence[JsonObject]] = {}
        self._known: Bounded[tuple[WantedImages, int], Mapping[str, int]] = Bounded(KNOWN_MAX)

    def __bool__(self) -> bool:
        return bool(self._reported)

    def put(self, node: str, reported: Sequence[JsonObject]) -> None:
        """Replaces the images of a node; `reported` is its `status.images`."""
        if self._reported.get(node, ()) == reported:
            return
        self.remove(node)
        if not reported:
            return
        self._reported[node] = reported
        for image in reported:
            for name in json_tree.texts(image, "names"):
                sizes = self._sizes.setdefault(name, {})
                sizes[node] = max(sizes.get(node, 0), json_tree.integer(image, "sizeBytes") or 0)

    def remove(self, node: str) -> None:
        """Removes the images of a node."""
        for image in self._reported.pop(node, ()):
            for name in json_tree.texts(image, "names"):
                sizes = self._sizes.get(name, {})
                sizes.pop(node, None)
                if not sizes:
                    self._sizes.pop(name, None)
        self._known.clear()

    def scores(self, wanted: WantedImages, nodes: int) -> Mapping[str, int]:
        """The scores by node that has one of the images; `nodes` is the number of all nodes."""
        known = self._known.get((wanted, nodes))
        if known is None:
            known = self._known[wanted, nodes] = self._count(wanted, nodes)
        return known

    def _count(self, wanted: WantedImages, nodes: int) -> Mapping[str, int]:
        sums: dict[str, int] = {}
        for name in wanted.names:
            sizes = self._sizes.get(name)
            if sizes:
                counted = int(max(sizes.values()) * (len(sizes) / nodes))
                for node in sizes:
                    sums[node] = sums.get(node, 0) + counted
        return {node: score(total, wanted.count) for node, total in sums.items()}


def score(total: int, count: int) -> int:
    """The score for a sum of sizes in bytes of `count` images."""
    most = SUM_MAX_PER_IMAGE * count
    bounded = min(max(total, SUM_MIN), most)
    return SCORE_MAX * (bounded - SUM_MIN) // (most - SUM_MIN)


def wanted_by(pod: JsonView, *, counts_volumes: bool) -> WantedImages:
    """The images of a pod's containers and image volumes.

    Volumes always add to the sum; whether they raise its upper bound differs between releases (r4).
    """
    spec = meta.spec(pod)
    names = [
        full_name(json_tree.text(container, "image"))
        for container in (
            *core.init_containers_of(spec),
            *core.containers_of(spec),
        )
    ]
    count = len(names)
    for volume in json_tree.objects(spec, "volumes"):
        if "image" in volume:
            names.append(full_name(json_tree.text(volume, "image", "reference")))
            count += counts_volumes
    return WantedImages(names=tuple(names), count=count)


def full_name(name: str) -> str:
    """The name with the tag `latest` when it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
