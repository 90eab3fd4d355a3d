"""One module per revision, one concern each; each says what an older running version notices."""
