"""What a user may do, and what a reader gets to see."""
