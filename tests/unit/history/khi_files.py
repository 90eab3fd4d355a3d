"""A writer of files of Kubernetes History Inspector, after the specification of version 6."""

import gzip
import struct
from datetime import UTC, datetime, timedelta

TYPES = ("k8sCluster", "apiVersion", "kind", "namespace", "resource", "subresource")
VERBS = ("create", "update", "patch", "delete")
NORMAL, DELETED, PARTIAL = 1, 2, 3
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, *parts):
    content = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field, value):
    return message(field, value.encode())


class KhiFile:
    """Objects of one or several clusters as revisions, in the order of the calls."""

    def __init__(self):
        self._texts = {}
        self._paths = {}
        self._timelines = {}
        self._items = {}
        self._forgotten = 0

    def revision(
        self,
        tree,
        *,
        at="2026-01-02T03:04:05Z",
        nanos=123_456_789,
        verb="create",
        state=NORMAL,
        principal="alice",
        body=True,
        cluster="c",
        subresource="",
    ):
        """Add a state of an object; without a body only that there was a change is known."""
        metadata = tree["metadata"]
        version = tree["apiVersion"]
        steps = [
            cluster,
            version if "/" in version else f"core/{version}",
            tree["kind"].lower(),
            metadata.get("namespace", "cluster-scope"),
            metadata["name"],
        ]
        timeline = self._timeline(tuple(steps + ([subresource] if subresource else [])))
        parts = []
        if at:
            seconds = int(datetime.fromisoformat(at).timestamp())
            parts.append(message(2, number(1, seconds), number(2, nanos)))
        if body:
            parts.append(message(3, self._struct(tree)))
        parts += [
            number(4, self._text(principal)),
            number(5, VERBS.index(verb) + 1),
            number(6, state),
        ]
        self._items.setdefault(timeline, []).append(message(2, *parts))

    def forget(self, value):
        """Leave a text out of the pool; what names it stays."""
        self._forgotten = self._texts[value]

    def content(self, *, first=b"KHI\x06", cluster_types=TYPES, items_max=None):
        """The bytes of the file; the pool comes last, since the order of chunks is free.

        Only the revisions of the first `items_max` timelines are in it.
        """
        styles = [message(2, number(1, at), text(2, label)) for at, label in enumerate(VERBS, 1)]
        styles += [message(4, number(1, style), number(6, style)) for style in (1, 2, 3)]
        styles += [
            message(5, number(1, at), text(2, label)) for at, label in enumerate(cluster_types, 1)
        ]
        timelines = [
            message(
                1,
                number(1, at),
                number(2, len(steps)),
                number(3, self._text(steps[-1])),
                number(4, at + 1000 if at in self._items else 0),
                number(5, self._timelines.get(steps[:-1], 0)),
            )
            for steps, at in self._timelines.items()
        ]
        items = [
            message(2, number(1, at + 1000), *revisions) for at, revisions in self._items.items()
        ]
        pool = [
            message(1, number(1, at), text(2, value))
            for value, at in sorted(self._texts.items())
            if at != self._forgotten
        ]
        pool += [
            message(2, number(1, at), message(2, *(varint(each) for each in names)))
            for names, at in self._paths.items()
        ]
        half = len(pool) // 2
        chunks = [
            (1, b""),
            (4, b"".join(styles)),
            (5, b"".join(timelines)),
            (5, b"".join(items[:items_max])),
            (3, b"\x0a\x02\x08\x01"),
            (2, b"".join(pool[:half])),
            (2, b"".join(pool[half:])),
        ]
        return first + b"".join(chunk(kind, content) for kind, content in chunks)

    def _timeline(self, steps):
        for length in range(1, len(steps) + 1):
            self._timelines.setdefault(steps[:length], len(self._timelines) + 1)
        return self._timelines[steps]

    def _text(self, value):
        return self._texts.setdefault(value, len(self._texts) + 1)

    def _struct(self, tree):
        leaves = list(_leaves(tree, ""))
        names = tuple(self._text(path) for path, _ in leaves)
        paths = self._paths.setdefault(names, len(self._paths) + 1)
        return number(1, paths) + b"".join(message(2, self._value(value)) for _, value in leaves)

    def _value(self, value):
        match value:
            case None:
                return number(1, 0)
            case bool():
                return number(5, value)
            case int():
                return number(2, value)
            case float():
                return varint(3 << 3 | 1) + struct.pack("<d", value)
            case str():
                return number(4, self._text(value))
            case dict():
                return message(6, self._struct(value))
            case datetime():
                seconds = (value - EPOCH) // timedelta(seconds=1)
                return message(8, number(1, seconds), number(2, value.microsecond * 1000))
        return message(7, *(message(1, self._value(item)) for item in value))


def chunk(kind, content):
    packed = gzip.compress(content)
    return struct.pack("<II", len(packed), kind) + packed


def _leaves(tree, above):
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}\0")
        else:
            yield f"{above}{name}", value
