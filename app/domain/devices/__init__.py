"""What exists: devices, slices, pools, counters, capacity and taints, compiled from API objects.

Belongs here: frozen values made once from ResourceSlices, the merge of DeviceTaintRules and
ResourceSlicePatches into them, pools with their generation, completeness and validity, and the
rules by which nodes see them. Does not belong here: who gets what (`allocation`), when something
happens, I/O. Imports `objects`, `cel` and `values`; may be imported by `allocation`, `controllers`,
projections and the service.
"""
