"""The HTTP side: paths, content types, Status bodies, discovery, OpenAPI, watches.

Belongs here: reading requests, choosing representations, encoding responses, `/redra/v1`, health
and metrics pages. Does not belong here: rules (the domain decides what a write does), storage, and
effects other than the response. Uses the service, the answers of `app.analysis`, and the pages of
`app.web`. Imported by bootstrap.
"""
