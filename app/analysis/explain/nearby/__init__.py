"""Facts beside a refusal: names that differ a little, full nodes, nodes without a driver, updates.

A fact of another object that a user would look at next. It blames nothing: it stands beside the
reason. Imported by `circumstances` and `unasked`.
"""
