"""The joining of records from several sources into one ordered stream."""
