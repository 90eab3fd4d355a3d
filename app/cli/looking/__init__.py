"""Commands that show the answers of pages in a terminal or as files."""
