"""Values of CEL and their operations: arithmetic, equality, conversions."""
