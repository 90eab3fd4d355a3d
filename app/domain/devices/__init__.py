"""Devices, slices, pools, counters, capacity and taints, compiled from API objects.

Belongs here: frozen values made once from ResourceSlices, the merge of DeviceTaintRules and
ResourceSlicePatches into them, pools with their generation, completeness and validity, and the
rules that decide which nodes see them. Does not belong here: allocating devices to claims
(`allocation`), timing, I/O. Imports `objects`, `cel` and `values`; may be imported by `allocation`,
`controllers`, projections and the service.
"""
