"""Webhooks and admission policies, which review a write before it is stored.

Belongs here: defaults and tables of the kinds of admissionregistration.k8s.io, which writes a
webhook or policy matches, the requests and responses of webhooks, and the evaluation of policies.
Does not belong here: validation of these objects (`validation`), CEL (plugged in by `Rules`), and
calls over the network.
"""
