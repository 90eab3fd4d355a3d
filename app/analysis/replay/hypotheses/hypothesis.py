"""A hypothesis about a difference: one thing that could have been otherwise there."""

from dataclasses import dataclass, replace

from app.analysis.replay.variants import Variant
from app.domain.log import ObjectKey

_OF_ALL = ("quirks", "remade", "is_paced", "is_limited", "hidden+is_limited")
"""The changes that are about more than one object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One thing that is changed: a value added to one set of a variant, or a switch.

    `reason` is the class that it proves, `detail` says what was changed.
    """

    reason: str
    detail: str
    field: str
    target: object = None

    @property
    def change(self) -> tuple[str, object]:
        """The change; equal for hypotheses about several differences that change the same."""
        return self.field, self.target

    @property
    def is_local(self) -> bool:
        """Whether the change is about one object; a switch changes all that happens."""
        return self.field not in _OF_ALL

    @property
    def _claims(self) -> frozenset[ObjectKey]:
        return self.target if isinstance(self.target, frozenset) else frozenset()

    def on(self, variant: Variant) -> Variant:
        """The variant with the change."""
        match self.field:
            case "quirks":
                first = variant.released_first | self._claims
                return replace(_again(variant), released_first=first)
            case "remade" if isinstance(self.target, frozenset):
                return replace(_again(variant), remade=variant.remade | self.target)
            case "is_paced":
                return replace(variant, is_paced=True)
            case "is_limited":
                return replace(variant, is_limited=True)
            case "hidden" | "hidden+is_limited" if isinstance(self.target, frozenset):
                pods = frozenset(uid for uid, _ in self.target)
                return replace(
                    variant,
                    hidden=variant.hidden | self.target,
                    unanswered=variant.unanswered | pods,
                    is_limited=variant.is_limited or self.field != "hidden",
                )
            case names:
                several = self.target if isinstance(self.target, frozenset) else {self.target}
                added = {name: getattr(variant, name) | several for name in names.split("+")}
                return replace(variant, **added)


def _again(variant: Variant) -> Variant:
    """The variant in which finished pods are looked at again when that was recorded."""
    switches = variant.switches.with_quirks(c8=True, c22=True)
    return replace(variant, switches=switches, resyncs=True)
