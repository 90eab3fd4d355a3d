"""Custom resource definitions after they were written: their end, and names that become free.

Belongs here: emptying and ending a definition that was deleted, and giving a definition the names
that it could not have before. Does not belong here: whether names are taken and what is served
(objects/custom). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.definitions.reconciler import DefinitionReconciler

__all__ = ["DefinitionReconciler"]
