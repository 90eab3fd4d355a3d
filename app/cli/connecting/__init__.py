"""The sources of the answers of reading commands: a server, or the data folder."""
