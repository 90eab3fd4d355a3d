"""Everything about HTTP: paths, content types, Status bodies, discovery, OpenAPI, the web UI.

Does not belong here: rules. Talks to the service only. Imported by bootstrap.
"""
