"""Loops: wake, read, take one bounded step, back off.

Belongs here: the loop of a controller, leases, supervision, the projector's loop. Does not belong
here: rules (they are reconcilers of the domain). Imported by bootstrap.
"""
