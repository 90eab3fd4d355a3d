"""Lets volumes and claims of volumes end once nobody uses them.

Belongs here: when the finalizers that admission gave them go. Does not belong here: binding and
provisioning of volumes, which nobody does here. Imported by the registry of controllers.
"""

from app.domain.controllers.volume_protection.reconciler import VolumeProtectionReconciler

__all__ = ["VolumeProtectionReconciler"]
