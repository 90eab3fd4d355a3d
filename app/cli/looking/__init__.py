"""Commands that show what pages show: the same answers, in a terminal or as files."""
