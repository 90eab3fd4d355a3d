"""What a real cluster shows of itself to a recorder: its kinds, and objects at their versions."""

from dataclasses import dataclass
from typing import NamedTuple

from app.domain.log.event import ObjectKey
from app.domain.log.records import Record
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """A kind that a cluster serves, in the version in which it is read."""

    group: str
    version: str
    resource: str
    kind: str
    is_namespaced: bool

    @property
    def name(self) -> str:
        """As kubectl writes it. Example: `resourceclaims.resource.k8s.io`, `pods`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def key(self) -> ObjectKey:
        """Where events about the whole kind stand in the log."""
        return ObjectKey(self.group, self.resource, "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """Which cluster it is: its address, release, and the uid of `kube-system` where it is known."""

    server: str
    release: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a list or a watch shows at one place: an object, a bookmark, or what cannot be read.

    `version` is the cluster's resource version, `written` when a watched object says that it was
    written last. Without `record` it is a bookmark, or, with a
    `problem`, an object (`key`) that no view could fold.
    """

    version: str
    record: Record | None = None
    key: ObjectKey | None = None
    problem: str = ""
    written: Instant | None = None


class ObjectVersion(NamedTuple):
    """An object of a kind without its content."""

    namespace: str
    name: str
    uid: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One page of a list: the version of the whole list, and the token of the next page if any."""

    sightings: tuple[Sighting, ...]
    version: str
    token: str = ""
