"""Readers of embedded content: parts of emails, texts in the fields of documents."""
