"""Lint: problems, present or future, in objects that drivers and users of devices publish.

Pure answers to "would this work?" before a device is requested. A rule has an id, a severity, a
meaning, a cure and a reference; each family of rules is a module with `RULES` and `check`.
`subjects` has the inputs of rules: slices grouped into pools, devices with their candidates,
requests. `revisions` judges changes over time; all other modules judge the current objects.

Does not belong here: what the API refuses (`object-invalid` repeats its messages), and judgements
of allocations that were made (`verify`, `explain`).
"""
