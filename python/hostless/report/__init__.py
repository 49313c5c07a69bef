"""`hostless report`: one HTML page of what hostless wrote as JSON, with nothing outside it.

`make_page` makes the page, `python -m hostless.report` is the command. Needs matplotlib and jinja2, which are imported
when a page is made.
"""

from .page import make_page

__all__ = ["make_page"]
