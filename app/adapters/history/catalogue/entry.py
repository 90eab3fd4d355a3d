"""An entry of the catalogue of formats."""

from dataclasses import dataclass

from app.adapters.history.detection import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueEntry:
    """One format: its detection, its contents and gaps, and a command that produces a file."""

    name: str
    formats: tuple[Format, ...]
    detected_by: str
    gives: str
    lacks: str
    example: str
