"""The interface through which controllers read feature gates; `objects.profile.Profile` fits it."""

from dataclasses import dataclass
from typing import Protocol


class Gates(Protocol):
    """Feature gates of one cluster."""

    def enabled(self, gate: str) -> bool:
        """True when the gate is on."""
        ...


@dataclass(frozen=True, slots=True)
class EverythingOn:
    """All gates are on except the named ones; for callers without a profile."""

    off: frozenset[str] = frozenset()

    def enabled(self, gate: str) -> bool:
        """True unless the gate was named."""
        return gate not in self.off
