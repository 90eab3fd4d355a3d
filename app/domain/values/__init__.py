"""General-purpose values, which could be a separate library.

Belongs here: quantities, semantic versions, label and field and node selectors, timestamps, name
formats, JSON trees and their patches. Does not belong here: anything that knows what a claim, a
device or an event of the log is. All of `app.domain` may import it; it imports only `errors`.
"""
