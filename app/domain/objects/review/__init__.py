"""Webhooks and admission policies: what others have to say about a write before it is done.

Belongs here: defaults and tables of the kinds of admissionregistration.k8s.io, which writes a
webhook or policy is about, and what policies say. Does not belong here: what is right in these
objects (`validation`), CEL (plugged in by `Rules`), and calls over the network.
"""
