"""Loops: wake, read, take one bounded step, back off.

Does not belong here: rules (they are reconcilers of the domain). Imported by bootstrap.
"""
