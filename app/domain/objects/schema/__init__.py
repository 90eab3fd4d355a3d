"""What fields a kind has, and trees in that form: decoding, pruning, defaults, versions."""
