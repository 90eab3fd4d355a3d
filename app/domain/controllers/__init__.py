"""The controllers of the control plane, as pure reconcilers.

Belongs here: scheduling, claims, eviction, rule status, garbage collection, workloads, and the
types of plans and decisions. Does not belong here: loops, leases, waiting (workers). This is the
top layer of the domain: imported by projections (types only), the service and everything above.
"""
