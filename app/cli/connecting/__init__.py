"""Where the answers of reading commands come from: a server, or the data folder itself."""
