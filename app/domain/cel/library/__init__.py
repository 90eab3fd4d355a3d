"""The functions of CEL and of its extensions."""
