"""What is wrong, or will be, with the objects that drivers and users of devices publish.

Pure answers to "would this work?" before anybody asks for a device. A rule has an id, a severity,
what it means, a cure and a reference; each family of rules is a module with `RULES` and `check`.
`subjects` is what they read: slices grouped into pools, devices with their candidates, requests.
`revisions` judges changes over time, everything else the objects as they stand.

Does not belong here: what the API refuses (`object-invalid` repeats its words), and judgements of
allocations that were made (`verify`, `explain`).
"""
