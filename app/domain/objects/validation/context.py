"""What a rule may need beside the object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.domain.objects.profile import Profile


class AdmissionProblem(Protocol):
    """Why an expression is refused: `kind` is `too_long`, `invalid` or `too_costly`."""

    @property
    def kind(self) -> str: ...
    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The release imitated, the labels of the object's namespace, and the check for expressions.

    `check_expression` returns why an expression may not be stored, or None; it is given from
    outside because objects and CEL do not know each other.
    """

    profile: Profile
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    check_expression: Callable[[str, Profile], AdmissionProblem | None] = lambda _text, _profile: (
        None
    )
