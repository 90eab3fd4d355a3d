"""The status of DeviceTaintRules: the progress of the evictions of each rule.

Belongs here: the condition `EvictionInProgress`, when it is computed and how often it is written
(controllers.md 1.6). Does not belong here: the evictions themselves. Imported by the registry of
controllers and by tests.
"""

from app.domain.controllers.rule_status.reconciler import RuleStatusReconciler

__all__ = ["RuleStatusReconciler"]
