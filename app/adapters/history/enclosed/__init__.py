"""Files and texts that stand in others: parts of letters, texts in the fields of documents."""
