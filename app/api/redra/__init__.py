"""The API of redra itself, below `/redra/v1`."""
