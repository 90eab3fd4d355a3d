"""Readers and writers of history formats: all code that knows the layout of recordings on disk.

Belongs here: detection, bounded unpacking, one reader per format that yields canonical records,
joining of several sources into one ordered stream, writers, the native bundle. Does not belong
here: how records become events (service/importing) and what a record is (domain/log/records).
Imported by bootstrap and tests only.
"""
