"""Changed texts, grouped by their changed words: changes with the same words are one entry."""

from dataclasses import dataclass, field

from app.analysis.explain import pages
from app.analysis.explain.reasons import Reason, listed
from app.domain.log import ObjectKey

EXAMPLES_MAX = 5
"""The number of objects named for one change; all are counted."""

TEXT_MAX = 200
"""The maximum length of a text or a value."""


@dataclass(slots=True, kw_only=True, eq=False)
class Rewritten:
    """One change of a text, and the objects that show it.

    `what` is a condition, an Event, or the path of a field with its kind. `before` and `after` are
    the words or values that differ, empty where there are none. `whole` is the first complete new
    text, or the old one where the text is gone. `count` is that of changes: an object may have
    several, and `examples` has the first of the `objects`.
    """

    what: str
    before: str
    after: str
    whole: str = ""
    count: int = 0
    examples: list[ObjectKey] = field(default_factory=list)
    objects: set[ObjectKey] = field(default_factory=set)

    @property
    def words(self) -> tuple[str, str, str]:
        """The subject of the change, and the words that differ."""
        return self.what, self.before, self.after


def parts(left: str, right: str) -> tuple[str, str]:
    """The words in which two texts differ; whole texts where one is missing."""
    old, new = left.split(" "), right.split(" ")
    if not left or not right:
        return left, right
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return " ".join(old), " ".join(new)


def add(
    entries: dict[tuple[str, ...], Rewritten],
    what: str,
    before: str,
    after: str,
    key: ObjectKey,
    whole: str = "",
) -> None:
    """Counts a change of an object together with those that have the same words."""
    place = (what, before, after)
    change = entries.setdefault(
        place, Rewritten(what=what, before=before, after=after, whole=whole)
    )
    change.count += 1
    if len(change.examples) < EXAMPLES_MAX and key not in change.objects:
        change.examples.append(key)
    change.objects.add(key)


def reason_of(change: Rewritten) -> Reason:
    """A change as text."""
    before, after = (pages.shortened(text, TEXT_MAX) for text in (change.before, change.after))
    match bool(change.before), bool(change.after):
        case True, True:
            text = f'"{before}" becomes "{after}"'
        case True, False:
            text = f'no longer "{before}"'
        case False, True:
            text = f'now also "{after}"'
        case _:
            text = "in other words"
    names = listed([str(key) for key in change.examples], len(change.objects))
    rest = ""
    if change.whole and change.whole not in (change.before, change.after):
        rest = f"; such as: {pages.shortened(change.whole, TEXT_MAX)}"
    times = "once" if change.count == 1 else f"{change.count} times"
    return Reason(text=f"{change.what}, {times}: {text} ({names}){rest}")
