"""One module per revision, one concern each; each states what an older running version notices."""
