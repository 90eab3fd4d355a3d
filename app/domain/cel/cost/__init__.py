"""The cost models: the estimated maximum of an expression, and the cost of an evaluation."""
