"""The fields of Kubernetes objects: each path that several packages read is defined here once.

`meta` has the fields of every object, `core` those of pods and nodes, `dra` those of the kinds of
`resource.k8s.io`, `entries` those that entries of many lists have, `decision_body` those of a
recorded decision. A single field is a function of the object (`meta.uid(pod)`) or of the part that
has it (`entries.name(container)`); readers of a part whose field an object has as well end in `_of`
(`meta.labels_of(metadata)`). Four or more fields that are read together form a frozen record
(`dra.results(claim)`). Objects of recordings may be malformed: every reader treats a value of
another type as absent, as `json_tree` does, and no reader fails.

Does not belong here: rules, defaults, conversions between versions, and the readers of the
independent judges.
"""
