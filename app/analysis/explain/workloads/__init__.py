"""Workloads and their pods: Deployments, Jobs, StatefulSets, and whatever else makes pods.

Belongs here: the states of a workload's pods, what ended those that are gone, and why the API
refuses further ones. Does not belong here: the reasons of a single pod; their modules are in the
package above. Imported by the service that explains and by the findings.
"""
