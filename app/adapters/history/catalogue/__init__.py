"""The catalogue of formats that an import reads.

The reference page is generated from this table.
"""

from app.adapters.history.catalogue import audit_logs, objects, tools
from app.adapters.history.catalogue.entry import CatalogueEntry

ENTRIES: tuple[CatalogueEntry, ...] = (
    *audit_logs.ENTRIES,
    *objects.ENTRIES,
    *tools.ENTRIES,
)
