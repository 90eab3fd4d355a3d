"""The protection of volumes and volume claims from deletion while they are in use.

Belongs here: removing the finalizers that admission added. Does not belong here: binding and
provisioning of volumes, which are not emulated. Imported by the registry of controllers.
"""

from app.domain.controllers.volume_protection.reconciler import VolumeProtectionReconciler

__all__ = ["VolumeProtectionReconciler"]
