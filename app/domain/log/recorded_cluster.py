"""The content of a real cluster as a recorder reads it: kinds, pages of lists, items of watches."""

from dataclasses import dataclass
from typing import NamedTuple

from app.domain.log.event import ObjectKey
from app.domain.log.records import Record
from app.domain.values import identifiers
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKind:
    """A kind that a cluster serves, with the version in which the recorder reads it."""

    group: str
    version: str
    resource: str
    kind: str
    is_namespaced: bool

    @property
    def name(self) -> str:
        """The name as kubectl writes it. Example: `resourceclaims.resource.k8s.io`, `pods`."""
        return identifiers.qualified_resource(self.group, self.resource)

    @property
    def key(self) -> ObjectKey:
        """The key in the log of events about the whole kind."""
        return ObjectKey(self.group, self.resource, "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """The identity of a cluster: its address, release, and the uid of `kube-system` if known.

    `namespace` is the only one whose objects are read, or empty.
    """

    server: str
    release: str
    uid: Uid
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchItem:
    """One item of a list or a watch: an object, a bookmark, or an object that cannot be read.

    `version` is the cluster's resource version. `written` is the time of the last write that a
    watched object states. An item without `record` is a bookmark or, when it has a `problem`, an
    object (`key`) that no view could fold.
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
    uid: Uid
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """One page of a list: the version of the whole list, and the token of the next page if any."""

    items: tuple[WatchItem, ...]
    version: str
    token: str = ""
