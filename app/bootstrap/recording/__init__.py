"""Recorders of real clusters, made of their ports: `recorders` for any process, `process` for the
one of `redra record`."""
