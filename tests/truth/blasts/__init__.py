"""Whether `blast` says what happens: drawn worlds with a change, and their twins without it."""
