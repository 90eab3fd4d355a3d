"""The routes of the pages below `/ui/`: paths, rights and headers. `app.web` renders the pages.

A page of a history needs the rights of the answer `/redra/v1/histories/HISTORY/…` that it shows.
"""
