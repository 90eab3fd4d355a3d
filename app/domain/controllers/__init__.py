"""What the control plane does by itself, as pure reconcilers.

Belongs here: scheduling, claims, eviction, rule status, garbage collection, workloads, and the
shapes of plans and decisions. Does not belong here: loops, leases, waiting (workers). Top layer of
the domain: imported by projections (shapes only), service and everything above.
"""
