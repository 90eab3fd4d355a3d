"""The device taint eviction controller: which pods are evicted for which taint, and when.

Belongs here: taints and tolerations of allocated devices, the instants of eviction, cancellation
and execution (controllers.md 1.1 to 1.5). Does not belong here: the status of rules, which only
reads the state kept here. Imported by `rule_status`, the registry of controllers and tests.
"""

from app.domain.controllers.eviction.reconciler import EvictionReconciler
from app.domain.controllers.eviction.state import TaintState

__all__ = ["EvictionReconciler", "TaintState"]
