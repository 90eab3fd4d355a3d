"""Everything about HTTP: paths, content types, Status bodies, discovery, OpenAPI, watches.

Belongs here: reading requests, choosing representations, encoding answers, `/redra/v1`, health and
metrics pages. Does not belong here: rules (what a write does is decided in the domain), storage,
effects other than the answer. Talks to the service only. Imported by bootstrap.
"""
