"""The store in memory: log, wake-up, leases and views with the full contract of the ports.

Belongs here: plain data structures that behave as the service expects of PostgreSQL. Tests, `redra
allocate` and replays without a database use them. Does not belong here: durability, and
features that only a test would need. Imported by bootstrap and tests.
"""

from app.adapters.memory.leases import MemoryLeases
from app.adapters.memory.log import MemoryLog
from app.adapters.memory.store import MemoryStore
from app.adapters.memory.views import MemoryViewStore
from app.adapters.memory.wakeup import MemoryWakeUp

__all__ = ["MemoryLeases", "MemoryLog", "MemoryStore", "MemoryViewStore", "MemoryWakeUp"]
