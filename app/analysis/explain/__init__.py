"""Why an object is as it is: trees of reasons, and their text."""
