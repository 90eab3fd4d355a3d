"""Commands that run a history in many ways: the smallest that shows something, matrices of runs."""
