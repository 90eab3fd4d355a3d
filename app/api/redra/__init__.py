"""redra's own API below `/redra/v1`."""
