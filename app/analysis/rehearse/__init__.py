"""Rehearsal of an upgrade: how another release treats the inputs of a history.

Two runs of the same recorded inputs are compared, one under the cluster's release and one under the
other. `admission` applies the other API to a write, `versions` finds the API versions in use,
`contents` compares what is written, `defects` finds known defects that appear or disappear. Does
not belong here: differences that the release does not cause.
"""
