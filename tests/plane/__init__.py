"""A control plane of its own, written from the specification, that writes honest audit logs.

It shares no code with redra. `world` draws a cluster from a seed, and `faults` lets it do one thing
wrong. What redra says of the logs is judged by what the world knows.
"""
