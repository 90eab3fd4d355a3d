"""Observations about a pod: specs, statuses and Events, without a decision of a controller.

Belongs here: what other components reported about a pod, and what its containers get of its claims.
Does not belong here: reasons of decisions; their modules are in the package above. Imported by the
service that explains and by the findings.
"""
