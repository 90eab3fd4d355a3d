"""Pages and pictures: pure functions from answers to HTML and SVG.

A page shows the same answer that the command line prints and `/redra/v1` returns as JSON, so the
three cannot disagree. Belongs here: the presentation of answers, in `links` (every view has a URL),
`frame` (the common parts of pages), `pages` (one module per page), `pictures` (SVG), `templates`
and `static`. Does not belong here: reading a log, waiting, and authorization. The routes in
`app/api/ui` do that and pass the answers in.

Templates escape all values; `svg` builds SVG and escapes too. A page has no inline script or style,
so that the Content-Security-Policy can forbid both.
"""
