"""The names of objects on the command line, for every command that takes them.

`KIND/NAME` and `KIND NAME` are equivalent, as in kubectl, and the name may be preceded by its
namespace: `KIND/NAMESPACE/NAME`. A kind is given by its kind, plural, singular or short name in any
case, with or without its group. The reader of the history knows the kinds.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.domain.errors import InputError

if TYPE_CHECKING:  # heavy: not needed for answers of a server
    from app.domain.log import ObjectKey
    from app.domain.values.json_tree import JsonView
    from app.domain.values.selectors import LabelSelector

METAVAR = "KIND/NAME"
_CURE = "write it as KIND/NAME, as in pod/web"


WordsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[HISTORY] [KIND/NAME]",
        help="The history, or HISTORY@MOMENT; a single object to show.",
    ),
]


AuthorOption = Annotated[
    str,
    typer.Option(
        "--author", "--by", metavar="NAME", help="Only what this author did, or a part of the name."
    ),
]


class ObjectFilter:
    """A filter of events by name, namespace and labels of their objects, and by their author.

    Empty values match all. `author` is a part of the author's name, in any case. `check_known`
    raises InputError for an unknown kind or name.
    """

    def __init__(self, text: str, namespace: str, labels: str = "", author: str = "") -> None:
        """Raises InputError for labels that are no label selector."""
        self._namespace = namespace
        self._author = author.strip().lower()
        self._labels: LabelSelector | None = None
        if labels.strip():
            from app.domain.values import selectors

            try:
                self._labels = selectors.parse_labels(labels.strip())
            except selectors.SelectorError as problem:
                raise InputError(str(problem), place=f"label selector {labels!r}") from problem
        self._name = ""
        self._word = ""
        self._kinds: set[tuple[str, str]] = set()
        if text:
            from app.domain.objects import registry

            kind, _, name = text.partition("/")
            self._word = kind
            front, slash, rest = name.partition("/")
            self._name = rest if slash else name
            self._namespace = front if slash else namespace
            self._kinds = {(one.group, one.plural) for one in registry.named(kind)}
            if not self._kinds:
                # A kind that the history defines; the word is its plural.
                self._kinds = {(kind.partition(".")[2], kind.partition(".")[0].lower())}

    @property
    def takes_all(self) -> bool:
        """True if the filter matches every object."""
        parts = self._kinds, self._namespace, self._author
        return not any(parts) and self._labels is None

    def takes_event(self, key: "ObjectKey", tree: "JsonView", author: str) -> bool:
        """True if the filter matches the object of an event, with the labels that the event has.

        With labels, decisions and requests, which have none, match never.
        """
        if not self.takes(key) or self._author not in author.lower():
            return False
        if self._labels is None:
            return True
        from app.domain.values.fields import meta

        return "metadata" in tree and self._labels.matches(meta.labels(tree))

    def takes(self, key: "ObjectKey") -> bool:
        """True if the filter matches an object.

        With a kind, cluster-scoped objects match in any namespace.
        """
        is_placed = self._namespace in ("", key.namespace)
        return (
            (not self._kinds or self._is_of_kind(key))
            and (is_placed or bool(self._kinds and not key.namespace))
            and self._name in ("", key.name)
        )

    def check_known(self, keys: "Collection[ObjectKey]", authors: Collection[str]) -> None:
        """Raise InputError if no object or author of a history matches, with similar names."""
        if not any(self._author in author.lower() for author in authors):
            names = {*authors, *(author.rpartition(":")[2] for author in authors)}
            raise _unknown("author", self._author, sorted(names))
        if any(map(self.takes, keys)):
            return
        from app.analysis import scope
        from app.domain.objects import registry
        from app.domain.values import api_resources, counts

        of_kind = [key for key in keys if not self._kinds or self._is_of_kind(key)]
        if self._word and not of_kind and not registry.named(self._word):
            raise scope.no_kind(self._word)
        places = {key.namespace for key in keys if key.namespace}
        places |= {key.name for key in keys if key[:2] == api_resources.NAMESPACES}
        if self._namespace and self._namespace not in places:
            raise _unknown("namespace", self._namespace, sorted(places))
        if not self._name:
            # The namespace exists, but has no object of this kind.
            return
        elsewhere = sorted({key.namespace for key in of_kind if key.name == self._name})
        if elsewhere:
            raise InputError(
                f"{self._word} {self._name!r} does not occur in namespace {self._namespace}",
                cure=f"there is one in {counts.plural(len(elsewhere), 'namespace')} "
                f"{' and '.join(elsewhere)}",
            )
        raise _unknown(self._word, self._name, sorted({key.name for key in of_kind}))

    def _is_of_kind(self, key: "ObjectKey") -> bool:
        return (key.group, key.resource) in self._kinds


def _unknown(noun: str, name: str, known: Sequence[str]) -> InputError:
    """The error for a name that does not occur, with similar names."""
    from app.analysis import scope

    return InputError(
        f"{noun} {name!r} does not occur in the history",
        cure=scope.nearest(name, known) or "leave it out to see all",
    )


def names(texts: Sequence[str], kind: str) -> list[str]:
    """The names of objects of one kind, given as `NAME` or `KIND/NAME`.

    Raises InputError for another kind.
    """
    from app.domain.objects import registry

    plain: list[str] = []
    for text in texts:
        word, slash, name = "/".join(text.split()).partition("/")
        if slash and not {*registry.named(word)} & {*registry.find_name(kind)}:
            raise InputError(f"{text!r} is no {kind}", cure=f"write it as {kind}/NAME, or NAME")
        plain.append(name if slash else word)
    return plain


def placed(text: str, namespace: str) -> str:
    """`KIND/NAME` with the namespace before the name, if the kind is namespaced."""
    from app.domain.objects import registry

    kind, _, name = text.partition("/")
    if not namespace or "/" in name or not any(one.namespaced for one in registry.named(kind)):
        return text
    return f"{kind}/{namespace}/{name}"


def joined(words: Sequence[str]) -> str:
    """The words of an object as `KIND/NAME`.

    Raises InputError for words that name no object or more than one.
    """
    parts = [part for word in words for part in word.split()]
    kind, slash, name = "/".join(parts).partition("/")
    is_one = len(parts) == 1 or (len(parts) == 2 and "/" not in parts[0])
    if not kind or not slash or not name.strip("/") or not is_one:
        raise InputError(f"{' '.join(words)!r} does not name an object", cure=_CURE)
    return f"{kind}/{name}"


def after_history(words: Sequence[str]) -> tuple[str, list[str]]:
    """The history and object of `[HISTORY] [KIND/NAME]` or `[HISTORY] [KIND NAME]`.

    One word without a slash is a history, two such words are kind and name, three are history, kind
    and name.
    """
    if not words:
        return "", []
    if len(words) == 1:
        return (words[0], []) if "/" not in words[0] else ("", [words[0]])
    if "/" in words[0] or (len(words) == 2 and "/" not in words[1]):
        return "", list(words)
    return words[0], list(words[1:])
