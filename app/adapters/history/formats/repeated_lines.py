"""The lines of a watch stream that show what the stream has shown to be over.

Parity: history-formats.md 5. A delivery may repeat a line. A server behind the others lists objects
from its cache that are gone, and a client that connects again with an earlier version is sent the
changes since then once more.
"""

from array import array

from app.adapters.history.reading import Notes
from app.domain.log import ObjectKey
from app.domain.log.records import comparable_version

_DOUBLED = "lines that repeat the one before them are left out, and are not taken for a new list"
_GONE = (
    "lines that add an object in a version from before its deletion, which the stream shows above "
    "them, are left out"
)
_AGAIN = "changes that the stream has shown before later ones are left out"


class RepeatedLines:
    """The line before, the deletions and the changes of one stream, as far as it is read.

    The changes are a list of numbers until a version falls, which most streams never see. Equal
    versions do not make equal changes: a store that was restored gives its versions anew.
    """

    __slots__ = ("_before", "_changes", "_deleted", "_lookup", "_newest", "_source")

    def __init__(self, source: str) -> None:
        self._source = source
        self._before: tuple[str, ObjectKey, str, str] | None = None
        self._deleted: dict[str, str] = {}
        self._newest: dict[tuple[str, str], str] = {}
        self._changes = array("q")
        self._lookup: set[int] | None = None

    def forget_line(self) -> None:
        """No line stands directly before the next one."""
        self._before = None

    def repeats(
        self,
        kind: str,
        key: ObjectKey,
        identity: tuple[str, str],
        content: int,
        position: str,
        notes: Notes,
    ) -> bool:
        """Whether a line shows nothing new, which is noted.

        `identity` is its uid and version; lines of equal content have an equal `content`.
        """
        uid, shown = identity
        version = comparable_version(shown)
        same, self._before = self._before, (kind, key, uid, shown)
        if kind == "ADDED" and same == self._before and shown:
            # It is a doubled line, or a list that shows this object alone; deliveries that repeat a
            # line are common. Of a longer list that begins with it the next object is known, too.
            reason = _DOUBLED
        elif kind == "ADDED" and uid and version and version <= self._deleted.get(uid, ""):
            reason = _GONE
        elif kind != "ADDED" and version and self._is_again(key, version, content):
            reason = _AGAIN
        else:
            self._note(kind, key, uid, version, content)
            return False
        notes.add_alike(reason, f"{self._source}:{position}")
        return True

    def _is_again(self, key: ObjectKey, version: str, content: int) -> bool:
        if version >= self._newest.get((key.group, key.resource), ""):
            return False
        if self._lookup is None:
            self._lookup = set(self._changes)
        if content in self._lookup:
            return True
        # The store was restored: its versions are given anew, and what was deleted may be there.
        self._deleted.clear()
        self._newest.clear()
        self._changes = array("q")
        self._lookup = None
        return False

    def _note(self, kind: str, key: ObjectKey, uid: str, version: str, content: int) -> None:
        if kind == "DELETED" and uid:
            self._deleted[uid] = version
        if kind == "ADDED" or not version:
            return
        name = key.group, key.resource
        self._newest[name] = max(version, self._newest.get(name, ""))
        self._changes.append(content)
        if self._lookup is not None:
            self._lookup.add(content)
