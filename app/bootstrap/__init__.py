"""The one place where ports meet adapters: what each process is made of.

Belongs here: opening stores, building rules, starting servers and workers. Does not belong here:
decisions. Only the command line and tests import it.
"""

from app.bootstrap.choices import settings
from app.bootstrap.histories import open_histories, rules_for, rules_of, views_of
from app.bootstrap.recordings import (
    Imported,
    Recording,
    export_history,
    import_history,
    rebuild,
)
from app.bootstrap.serving import serve, work
from app.bootstrap.stores import Store, find_history, memory_store, migrate, open_store

__all__ = [
    "Imported",
    "Recording",
    "Store",
    "export_history",
    "find_history",
    "import_history",
    "memory_store",
    "migrate",
    "open_histories",
    "open_store",
    "rebuild",
    "rules_for",
    "rules_of",
    "serve",
    "settings",
    "views_of",
    "work",
]
