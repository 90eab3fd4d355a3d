"""From text to a syntax tree."""
