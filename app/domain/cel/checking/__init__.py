"""The check of an expression against the declarations of an environment."""
