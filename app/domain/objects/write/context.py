"""The context of a write of one object, for its decision and its review."""

from typing import Self

import msgspec

from app.domain.log import ObjectKey, Stamp
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules
from app.domain.objects.write.commands import PatchObject, UpdateObject, WriteOptions


class WriteContext(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The object, version, stamp, rules and options of a write.

    `key` is the key in the log. `group`, `version` and `subresource` are those of the request;
    `reader` shows the objects before the write.
    """

    reader: ObjectsReader
    rules: Rules
    stamp: Stamp
    kind: Kind
    key: ObjectKey
    group: str
    version: str
    subresource: str = ""
    options: WriteOptions

    @classmethod
    def of_change(
        cls,
        command: PatchObject | UpdateObject,
        reader: ObjectsReader,
        rules: Rules,
        stamp: Stamp,
        *,
        kind: Kind,
        key: ObjectKey,
    ) -> Self:
        """The write of a patch or an update."""
        return cls(
            reader=reader,
            rules=rules,
            stamp=stamp,
            kind=kind,
            key=key,
            group=command.key.group,
            version=command.version,
            subresource=command.subresource,
            options=command.options,
        )

    @property
    def api_version(self) -> str:
        """Group and version in the form of `apiVersion`."""
        return registry.api_version(self.group, self.version)
