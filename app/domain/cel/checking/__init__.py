"""Types: declarations of functions, and the check of an expression."""
