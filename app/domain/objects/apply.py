"""Server-side apply. Parity: api-surface.md 9."""

from app.domain.errors import UnsupportedMediaType
from app.domain.log import Stamp
from app.domain.objects.commands import PatchObject
from app.domain.objects.decided import Decided
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.rules import Rules


def decide_apply(
    reader: ObjectsReader, command: PatchObject, stamp: Stamp, rules: Rules
) -> Decided:
    """Not offered yet. Raises UnsupportedMediaType, so that clients fall back."""
    raise UnsupportedMediaType("server-side apply is not offered")
