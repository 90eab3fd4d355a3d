"""The defects of each release, as the defaults of the quirks' switches.

Gates and served versions of a release are in `objects.profile` and `objects.registry`; this module
adds the differences without a gate. A history may still switch each quirk. Parity:
controllers.md 10.
"""

from dataclasses import replace

from app.domain.allocation import Quirks
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.objects.profile import Profile

_FAILS_TO_SCORE = ("1.36.0", "1.36.1")
"""Early patch releases with r2: those before 1.36.2, the patch level of the reference."""


def quirks_of(profile: Profile) -> ControllerQuirks:
    """The defects of the controllers that the release has."""
    minor = profile.minor
    return replace(
        ControllerQuirks(),
        c15=minor < 37,
        c24=profile.ignores_rules,
        r1=minor < 35,
        r2=minor == 35 or profile.patch in _FAILS_TO_SCORE,
        r3=minor < 36,
        r4=minor < 37,
        r5=minor < 36,
        r7=minor < 37,
        r8=minor < 37,
    )


def allocator_quirks_of(profile: Profile) -> Quirks:
    """The defects of the allocator that the release has.

    Since 1.37 refused or undone candidates release their counters and constraints, so q1, q2 and q5
    are repaired.
    """
    return Quirks.named("q1", "q2", "q5") if profile.minor >= 37 else Quirks()
