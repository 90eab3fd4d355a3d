"""Objects that an earlier list of a cluster shows and a later one does not: they are gone.

A list is of a part of the cluster: of a namespace, or of what a selector matches. Only one that
selects like the list before shows that an object is gone. All kinds in one list were selected in
one way. So a list that shows any object of the earlier file selects like that:

    first file    pods a/x, claims a/x, b/y
    second file   pods a/z, claims a/x          x was listed again: pod a/x is gone
                                                b is in no list: nothing is said of claim b/y

A list of several namespaces is one of all of them. Where a later list shows only other objects of a
type than the earlier one, or none, either those before are gone or it is another part: whether they
are is not known. It is another part if it shows an object that the earlier list would have shown.

Parity: history-formats.md 6.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from app.adapters.history.formats import list_pages
from app.adapters.history.formats.list_pages import Chains
from app.adapters.history.reading import Listing, absent_record
from app.domain.log import ObjectKey
from app.domain.log.records import ABSENT, Loss, Op, Quality, Record
from app.domain.values.identifiers import Uid

Place = tuple[str, str, str]
"""Group, resource and namespace."""

_UNKNOWN = "a later list shows only others: whether the objects before are gone is not known"


@dataclass(slots=True)
class _Listed:
    """The objects of a type and namespace in a file: their uids, versions and lists.

    `types` are those that its lists show, `is_of_all` when one of them is of all namespaces.
    """

    uids: dict[ObjectKey, Uid] = field(default_factory=dict)
    newest: str = ""
    oldest: str = ""
    lists: set[str] = field(default_factory=set)
    types: AbstractSet[tuple[str, str]] = frozenset()
    is_of_all: bool = False

    def add(self, record: Record, of_list: str) -> None:
        """Record an item of a list."""
        version = record.order_key[1]
        self.uids[record.key] = record.uid
        self.newest = max(self.newest, version)
        self.oldest = min(self.oldest or version, version)
        self.lists.add(of_list)


@dataclass(slots=True)
class _ListedFile:
    """The objects that the lists of a file show."""

    name: str
    newest: str = ""
    places: dict[Place, _Listed] = field(default_factory=lambda: defaultdict(_Listed))

    def types_of(self, of_list: str) -> AbstractSet[tuple[str, str]]:
        """The types of which a list shows objects."""
        return {place[:2] for place, listed in self.places.items() if of_list in listed.lists}

    def is_of_all(self, of_list: str) -> bool:
        """Whether a list shows several namespaces, and so is one of all."""
        shown = {place[2] for place, listed in self.places.items() if of_list in listed.lists}
        return len(shown - {""}) > 1

    def conclude(self) -> None:
        """Note what each type and namespace was listed with; call it after the last item."""
        for listed in self.places.values():
            listed.types = {each for one in listed.lists for each in self.types_of(one)}
            listed.is_of_all = any(map(self.is_of_all, listed.lists))


@dataclass(slots=True)
class LaterLists:
    """The objects that each file lists; files are compared in the order of their newest versions.

    `before` has what the files before showed last of each type and namespace.
    """

    files: dict[int, _ListedFile] = field(default_factory=dict)
    before: dict[Place, _Listed] = field(default_factory=dict)

    def note(self, record: Record, number: int) -> None:
        """Record an item of a list.

        Single objects are ignored: they do not show which others exist.
        """
        if record.op is not Op.BASELINE or "[" not in record.position or not record.order_key[1]:
            return
        place = (record.group, record.resource, record.namespace)
        file = self.files.setdefault(number, _ListedFile(record.source))
        file.places[place].add(record, record.position.rpartition("[")[0])
        file.newest = max(file.newest, record.order_key[1])

    def ends(self, chains: Chains) -> Iterator[Record]:
        """The deletions of objects that are gone in a later list, and gaps where they may be.

        A list in pages is one list, and tells nothing where a page of it is missing.
        """
        for number in sorted(self.files, key=lambda index: (self.files[index].newest, index)):
            file = self.files[number]
            file.conclude()
            again = self._lists_again(file)
            shown: dict[Place, _Listed] = {}
            for place, listed in file.places.items():
                listing = (file.name, *place[:2])
                if listing in chains.partial:
                    continue
                pages = chains.together.get(listing)
                if pages:
                    listed.uids = self._united(place, pages)
                begins = chains.begins.get(listing, "")
                yield from self._compared(number, place, listed, again, begins)
                shown[place] = listed
            for place in sorted(self.before.keys() - file.places.keys()):
                if (file.name, *place[:2]) not in chains.partial:
                    yield from self._not_shown(number, place, again)
            self.before |= shown

    def _lists_again(self, file: _ListedFile) -> AbstractSet[str]:
        """The lists of a file that show an object which was listed before."""
        return {
            each
            for place, listed in file.places.items()
            if place in self.before and self.before[place].uids.keys() & listed.uids.keys()
            for each in listed.lists
        }

    def _not_shown(self, number: int, place: Place, again: AbstractSet[str]) -> Iterator[Record]:
        """The ends of listed objects of a type and namespace that a file lacks."""
        file, before = self.files[number], self.before[place]
        of_type = {each for each in again if place[:2] in file.types_of(each)}
        beside = {each for each in again if not before.types.isdisjoint(file.types_of(each))}
        if place[2] and any(map(file.is_of_all, of_type)):
            yield from self._gone(number, sorted(before.uids.items()))
            del self.before[place]
        elif before.is_of_all if of_type else beside:
            yield self._gap(number, place)
            before.types, before.is_of_all = frozenset(), False

    def _compared(
        self,
        number: int,
        place: Place,
        listed: _Listed,
        again: AbstractSet[str],
        begins: str,
    ) -> Iterator[Record]:
        """The ends that a file shows of listed objects of a type and namespace."""
        before = self.before.get(place)
        if before is None or not before.uids:
            return
        is_of_others = bool(listed.uids) and not before.uids.keys() & listed.uids.keys()
        if is_of_others and listed.oldest <= before.newest:
            return
        if is_of_others and not again & listed.lists:
            yield self._gap(number, place)
            return
        gone = sorted(before.uids.keys() - listed.uids.keys())
        # A page before the first one may show those that come before it.
        elsewhere = [key for key in gone if list_pages.order_key(key.namespace, key.name) < begins]
        listed.uids |= {key: before.uids[key] for key in elsewhere}
        yield from self._gone(number, [(key, before.uids[key]) for key in gone[len(elsewhere) :]])

    def _gone(self, number: int, objects: Iterable[tuple[ObjectKey, Uid]]) -> Iterator[Record]:
        """The deletions of objects that are gone in a file."""
        file = self.files[number]
        for index, (key, uid) in enumerate(objects, start=1):
            order = (0, file.newest, 4, number, index)
            yield absent_record(key, uid, source=file.name, order_key=order)

    def _gap(self, number: int, place: Place) -> Record:
        """The gap of a type in a namespace, or of all of it without one."""
        file = self.files[number]
        group, resource, namespace = place
        return Record(
            source=file.name,
            position=f"{ABSENT}{resource}",
            op=Op.GAP,
            group=group,
            resource=resource,
            namespace=namespace,
            object_quality=Quality.IDENTITY,
            order_key=(0, file.newest, 4, number, 0),
            losses=(Loss.GAP,),
            message=_UNKNOWN,
        )

    def _united(self, place: Place, pages: Collection[Listing]) -> dict[ObjectKey, Uid]:
        """The objects of a type and namespace in lists that are one."""
        uids: dict[ObjectKey, Uid] = {}
        for file in self.files.values():
            if (file.name, *place[:2]) in pages and place in file.places:
                uids |= file.places[place].uids
        return uids
