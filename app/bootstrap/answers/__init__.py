"""Questions about histories, answered for the command line: why, blast radius, differences."""
