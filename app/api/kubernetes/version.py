"""The `/version` document: the emulated release. Parity: api.md 2."""

import platform

from app.domain.objects.profile import Profile
from app.domain.values.json_tree import JsonObject


def version_document(profile: Profile) -> JsonObject:
    """The server version that `kubectl version` shows."""
    minor = profile.minor
    return {
        "major": "1",
        "minor": str(minor),
        "emulationMajor": "1",
        "emulationMinor": str(minor),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v{profile.patch or f'{profile.version}.0'}",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": "redra",
        "platform": "linux/amd64",
    }
