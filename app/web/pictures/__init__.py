"""Pictures as SVG, each a function of an answer.

The page shows the same data as a table or a list.
"""
