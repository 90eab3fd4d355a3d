"""The binding cycle: the writes of a successful attempt, at once or when devices are ready."""
