"""The reason: one sentence, what is behind it, and how many things it stands for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.domain.log import ObjectKey
from app.domain.values.json_tree import JsonObject, JsonView

NAMES_MAX = 3
"""Names given as examples where many share a reason; counts stay exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason and what is behind it; `count` is how many things it stands for.

    `revision` is that of the event that made it so (0: not known, or many), `about` the object that
    it is about, `issues` are the known issues of Kubernetes that took part. A reason with
    `is_kept` is never cut from a page. `holds` tells of a state of `about` whether the reason is
    true of it: whoever has the log finds the event since which it is. `marked` is the part of the
    text by which alone it is so. `unselected` are a selector, as causes name it, and the devices
    that it does not take, in groups.
    """

    text: str
    children: tuple["Reason", ...] = ()
    count: int = 1
    revision: int = 0
    about: ObjectKey | None = None
    issues: tuple[str, ...] = ()
    is_kept: bool = False
    holds: Callable[[JsonView], bool] | None = field(default=None, compare=False, repr=False)
    marked: str = ""
    unselected: tuple[str, Sequence[Sequence[str]]] | None = field(
        default=None, compare=False, repr=False
    )

    @property
    def line(self) -> str:
        """The text as people read it, with the issues and the revision that it has."""
        issues = "issue" if len(self.issues) == 1 else "issues"
        notes = [f"known {issues} {', '.join(self.issues)}"] if self.issues else []
        if self.revision:
            notes.append(f"revision {self.revision}")
        return f"{self.text} ({'; '.join(notes)})" if notes else self.text

    def to_json(self) -> JsonObject:
        """The branch as JSON."""
        body: JsonObject = {"text": self.text}
        if self.count != 1:
            body["count"] = self.count
        if self.revision:
            body["revision"] = self.revision
        if self.about is not None:
            about = self.about
            body["about"] = {
                "group": about.group,
                "resource": about.resource,
                "namespace": about.namespace,
                "name": about.name,
            }
        if self.issues:
            body["issues"] = list(self.issues)
        if self.is_kept:
            body["kept"] = True
        if self.marked:
            body["marked"] = self.marked
        if self.children:
            body["children"] = [child.to_json() for child in self.children]
        return body

    @classmethod
    def from_json(cls, body: JsonObject) -> "Reason":
        """The branch that `to_json` wrote, but for `holds` and `unselected`."""
        about = body.get("about")
        return cls(
            text=body["text"],
            children=tuple(map(cls.from_json, body.get("children", ()))),
            count=body.get("count", 1),
            revision=body.get("revision", 0),
            about=None if about is None else ObjectKey(**about),
            issues=tuple(body.get("issues", ())),
            is_kept=body.get("kept", False),
            marked=body.get("marked", ""),
        )

    def size(self) -> int:
        """How many reasons there are in the branch."""
        return 1 + sum(child.size() for child in self.children)


def listed(names: Sequence[str], count: int, noun: str = "") -> str:
    """The first names, and how many there are beyond them."""
    shown = ", ".join(names[:NAMES_MAX])
    more = count - min(len(names), NAMES_MAX)
    if more <= 0:
        return shown
    rest = f" {noun.removesuffix('s') if more == 1 else noun}" if noun else ""
    return f"{shown} and {more} more{rest}"
