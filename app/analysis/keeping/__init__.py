"""The state of a chronicle as bytes, from which a later program goes on.

Here belong the forms in which the state is kept, and what writes and reads them. When it is kept,
and where, is decided in `app.service.chronicles`.
"""
