"""The URLs of pages, which contain the history, the moment and the filter."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from app.domain.log import DECISION, ObjectKey

ROOT = "/ui/"
BELOW = "/ui/h/"
STATIC = "/ui/static/"
JOBS = "/ui/jobs"
SWEEP = "/ui/sweep"
FINDINGS = "findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The pages of one history at one moment; `moment` is empty for the present."""

    history: str
    moment: str = ""

    def to(self, part: str, **parameters: object) -> str:
        """The URL of a page; parameters without a value are left out."""
        at = f"@{quote(self.moment, safe=':')}" if self.moment else ""
        path = "" if part == FINDINGS else quote(part)
        return f"{BELOW}{quote(self.history)}{at}/{path}{query(parameters)}"

    def to_why(self, key: ObjectKey) -> str:
        """The URL of the page with the reasons for an object's state."""
        return self.to("why", **subject(key))

    def to_object(self, key: ObjectKey) -> str:
        """The URL of the page of an object."""
        return self.to("object", **subject(key))

    def at(self, moment: object) -> "Links":
        """The same history at another moment."""
        return replace(self, moment=str(moment))

    def now(self) -> "Links":
        """The same history at present."""
        return replace(self, moment="")


def job(name: str, first: int = 0) -> str:
    """The URL of the page of a job that belongs to no history, from one of its runs on."""
    return f"{JOBS}/{quote(name)}{query({'from': first or ''})}"


def has_page(key: ObjectKey) -> bool:
    """Whether the subject of an entry is an object of the cluster, which has a page.

    The subject of an entry about the history itself, such as its import, is no such object, nor is
    one that was refused before it had a name.
    """
    return bool(key.name) and key.group != DECISION.group


def query(parameters: Mapping[str, object]) -> str:
    """`?name=value&…`, empty when no parameter has a value."""
    present = {name: str(value) for name, value in parameters.items() if value not in ("", None)}
    return f"?{urlencode(present)}" if present else ""


def subject(key: ObjectKey) -> dict[str, str]:
    """The parameters that name an object."""
    return {"kind": key.qualified_resource, "namespace": key.namespace, "name": key.name}
