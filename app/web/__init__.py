"""Pages and pictures: pure functions from answers to HTML and SVG.

A page is made of the same answer that the command line prints and `/redra/v1` gives as JSON, so the
three cannot disagree. What belongs here is how an answer is shown: `links` (every view is a URL),
`frame` (what stands around each page), `pages` (one module for each), `pictures` (SVG), `templates`
and `static`. Nothing here reads a log, waits, or judges who may see what; that is done by the
routes in `app/api/ui`, which hand the answers in.

Templates escape everything; SVG is built by `svg`, which escapes too. A page holds no script and no
style of its own, so that the Content-Security-Policy can forbid both.
"""
