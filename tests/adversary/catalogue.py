"""The register of alterations: what each does, to which recordings, and the due verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.adversary.log import Log

AGREES, PART, FAILS = "agrees", "in part", "fails"

SAME = "as before"
"""The verdict of the recording as it is."""

NOT_BLAMED = "does not fail"
"""Something may be missing: it agrees or is compared in part, and is never called wrong."""

NOT_PASSED = "does not agree"
"""Wrong, with a gap that may be why: it fails or is compared in part, and never agrees."""

REFUSED_OR_NOT_BLAMED = "is refused or does not fail"
"""What no server writes: a refusal that names the place, or as `NOT_BLAMED`."""

REFUSED_OR_NOT_PASSED = "is refused or does not agree"
"""What no server writes, and wrong: a refusal that names the place, or as `NOT_PASSED`."""

QUICKSTART, MIG, TPU = "a-quickstart", "b-mig-partitions", "c-multihost-tpu"
TAINTS, IGNORED = "e-taints", "e-taints-rules-ignored"
SOAK, VERSIONS = "i-soak-short", "j-api-versions"
SMALL = (QUICKSTART, MIG, TPU, TAINTS, VERSIONS)
ALL = (QUICKSTART, MIG, TPU, TAINTS, IGNORED, VERSIONS, SOAK)

PROFILES = {IGNORED: "1.36.2"}
"""The release whose rules decide, where it is not 1.36: that scheduler saw no rules (C24)."""


@dataclass(frozen=True)
class Alteration:
    """One alteration of some recordings, with the verdicts that were fixed before any run."""

    name: str
    family: str
    recordings: Sequence[str]
    verify: str
    decide: str
    change: "Change"

    @property
    def why(self) -> str:
        """What the alteration does and why the verdicts follow from the specification."""
        return " ".join((self.change.__doc__ or "").split())


Change = Callable[[Log], str | bytes | None]
"""Changes the log, or returns the text of the altered file."""

ALTERATIONS: dict[str, Alteration] = {}


def alteration(
    family: str, recordings: Sequence[str] | str, *, verify: str, decide: str
) -> Callable[[Change], Change]:
    """Registers a function as an alteration of that name."""

    def register(change: Change) -> Change:
        name = change.__name__
        assert name not in ALTERATIONS
        assert change.__doc__
        chosen = (recordings,) if isinstance(recordings, str) else tuple(recordings)
        ALTERATIONS[name] = Alteration(name, family, chosen, verify, decide, change)
        return change

    return register
