"""The rules of Dynamic Resource Allocation, as functions on values.

Belongs here: rules of Kubernetes and of redra's log, each a pure function (decide, fold,
reconcile) on values. Does not belong here: I/O, clocks, randomness, async, logging, HTTP, SQL.
Everybody may import this package; it imports nothing of ours outside itself.

Layers, from bottom to top: errors, values, log, {objects | cel}, devices, allocation, controllers.
"""
