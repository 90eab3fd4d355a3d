"""Values of CEL, and what the language does with them: arithmetic, equality, conversions."""
