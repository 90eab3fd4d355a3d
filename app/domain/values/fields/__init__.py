"""The fields of Kubernetes objects: each path that several rooms read stands here once.

`meta` holds what every object has, `core` pods and nodes, `dra` the kinds of `resource.k8s.io`,
`decision_body` what the log keeps of a decision. A single field is a function of the object
(`meta.uid(pod)`); where four fields or more are read together there is a frozen record
(`dra.results(claim)`). Objects of recordings may be malformed: a value of another type counts as
absent, in every reader as in `json_tree`, and no reader fails.

Not here: rules, defaults, conversions between versions, and the readings of the independent judges.
"""
