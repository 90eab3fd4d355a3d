"""The pages, one module each: functions from an answer and its frame to HTML."""
