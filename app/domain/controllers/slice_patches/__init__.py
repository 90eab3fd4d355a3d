"""The warnings to administrators about their ResourceSlicePatches (KEP-5027).

Belongs here: warnings about selectors that fail on a device. Does not belong here: the merge itself
(devices). Imported by the registry of controllers and by tests.
"""

from app.domain.controllers.slice_patches.warnings import PatchWarningReconciler

__all__ = ["PatchWarningReconciler"]
