"""What an expression may cost at most, and what an evaluation costs."""
