"""The controllers of CustomResourceDefinitions: deletion, and names that become free.

Belongs here: deleting the objects of a deleted definition and then the definition, and giving a
definition the names that were taken before. Does not belong here: whether names are taken and what
is served (objects/custom). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.definitions.reconciler import DefinitionReconciler

__all__ = ["DefinitionReconciler"]
