"""The binding cycle: what a successful attempt writes, at once or when drivers are ready."""
