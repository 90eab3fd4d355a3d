"""The order of effects: the one write path, queries, watches, folding, reconciling, replay.

Belongs here: the group writer, the runtime of a history, histories, replay modes. Does not belong
here: technology names (SQL, HTTP) and rules of Kubernetes. Imported by api, workers and bootstrap;
imports analysis, ports, projections and the domain.
"""
