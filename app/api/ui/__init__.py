"""`/ui/`: pages. Paths, rights and headers are settled here; what a page looks like is `app.web`.

A page of a history is judged as the answer of `/redra/v1/histories/HISTORY/…` that it shows.
"""
