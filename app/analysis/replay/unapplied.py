"""Recorded inputs that could not be applied in the world of a replay."""

from dataclasses import dataclass

from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.analysis.replay.writers import short_name
from app.domain.log import ObjectKey, Revision
from app.domain.values import timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Unapplied:
    """One input that was left out: the recorded write, its author, and the reason.

    `author` is empty where the recording does not name it.
    """

    revision: Revision
    time: Instant
    key: ObjectKey
    change: str
    author: str
    why: str

    @classmethod
    def of(cls, write: Input, why: str) -> "Unapplied":
        """The entry for an input."""
        author = "" if write.author == UNNAMED else short_name(write.author)
        return cls(
            revision=write.event.revision,
            time=write.time,
            key=write.event.key,
            change=write.event.type.value,
            author=author,
            why=why,
        )

    def to_json(self) -> JsonObject:
        """The entry as JSON for the command line and the API."""
        return {
            "revision": self.revision,
            "time": timestamps.micro_text(self.time),
            "object": str(self.key),
            "change": self.change,
            "author": self.author,
            "why": self.why,
        }
