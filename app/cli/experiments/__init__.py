"""Commands that try a history or hand it on: the smallest that shows something, tests, matrices."""
