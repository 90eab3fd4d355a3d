"""Recorders of real clusters: `recorders` for any process, `process` for `redra record`."""
