"""ResourcePoolStatusRequests: the number of devices, and of free ones, in each pool of a driver.

Belongs here: the answer to one request and its condition (objects.md 15). Does not belong here:
what makes a pool usable (devices/pools). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.pool_status.reconciler import NAME, PoolStatusReconciler

__all__ = ["NAME", "PoolStatusReconciler"]
