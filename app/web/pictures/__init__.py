"""Pictures as SVG, each a function of an answer; each has a table or a list as its twin."""
