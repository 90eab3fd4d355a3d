"""The reason: one sentence, the reasons behind it, and the number of things that it covers."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.domain.log import ObjectKey
from app.domain.log.doubts import Doubt
from app.domain.values import api_resources, counts
from app.domain.values.json_tree import JsonObject, JsonView

NAMES_MAX = 3
"""The number of names shown as examples where many share a reason; counts stay exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason and the reasons behind it; `count` is the number of things that it covers.

    `revision` is that of the event that caused it (0: unknown, or many). `about` is the object that
    the reason is about. `issues` are the known issues of Kubernetes that were involved. A reason
    with `is_kept` is never cut from a page. `holds` tests whether a state of `about` makes the
    reason true; with the log, the event since which it is true can be found. `since` are the words
    after which the author and the time of that event are added to the text. `marked` is the only
    part of the text that decides. `unselected` is a selector, as causes name it, with the devices
    that it does not match, in groups. `rests_on` are the objects of other kinds than those that
    every answer is worked out from, without which the reason would not be known: a reader who may
    not see one of them does not get the reason. `unexplained` is a doubt about the recording, which
    shows an effect and not its cause. `denies` are the resources of which an object would make the
    reason untrue: where a recording may lack such objects, the text says so.
    """

    text: str
    children: tuple["Reason", ...] = ()
    count: int = 1
    revision: int = 0
    about: ObjectKey | None = None
    issues: tuple[str, ...] = ()
    is_kept: bool = False
    holds: Callable[[JsonView], bool] | None = field(default=None, compare=False, repr=False)
    since: str = ""
    marked: str = ""
    rests_on: tuple[ObjectKey, ...] = ()
    unselected: tuple[str, Sequence[Sequence[str]]] | None = field(
        default=None, compare=False, repr=False
    )
    unexplained: Doubt | None = None
    denies: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The text for people, followed by its issues and its revision."""
        issues = counts.plural(len(self.issues), "issue")
        notes = [f"known {issues} {', '.join(self.issues)}"] if self.issues else []
        if self.revision:
            notes.append(f"revision {self.revision}")
        return f"{self.text} ({'; '.join(notes)})" if notes else self.text

    def to_json(self) -> JsonObject:
        """The reason and its branch as JSON."""
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
        """Reads a branch from the JSON of `to_json`, without `holds` and `unselected`."""
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

    def seen_by(self, sees: Callable[[ObjectKey], bool]) -> "Reason":
        """The reason without those behind it that rest on objects which a reader does not see."""
        children = tuple(
            child.seen_by(sees) for child in self.children if all(map(sees, child.rests_on))
        )
        return self if children == self.children else replace(self, children=children)

    def as_recorded(self, unseen: Collection[str]) -> "Reason":
        """The reason, where denials name the `unseen` resources on whose objects they rest."""
        children = tuple(child.as_recorded(unseen) for child in self.children)
        text = as_recorded(self.text, self.denies, unseen)
        if text == self.text and children == self.children:
            return self
        return replace(self, text=text, children=children)

    def doubts(self) -> list[Doubt]:
        """The doubts of the branch, each once."""
        own = () if self.unexplained is None else (self.unexplained,)
        behind = (doubt for child in self.children for doubt in child.doubts())
        return list(dict.fromkeys((*own, *behind)))

    def size(self) -> int:
        """The number of reasons in the branch."""
        return 1 + sum(child.size() for child in self.children)


def only_node(names: Sequence[str]) -> ObjectKey | None:
    """The node that a line is about; None where it is about several."""
    return ObjectKey(*api_resources.NODES, "", names[0]) if len(names) == 1 else None


def as_recorded(text: str, denies: Iterable[str], unseen: Collection[str]) -> str:
    """A denial, followed by the `unseen` resources of which an object would make it untrue."""
    names = [name for name in denies if name in unseen]
    return f"{text}, as far as {' and '.join(names)} were recorded" if names else text


def listed(names: Sequence[str], count: int, noun: str = "") -> str:
    """The first names, and the number of the remaining ones."""
    shown = ", ".join(names[:NAMES_MAX])
    more = count - min(len(names), NAMES_MAX)
    if more <= 0:
        return shown
    rest = f" {noun.removesuffix('s') if more == 1 else noun}" if noun else ""
    return f"{shown} and {more} more{rest}"
