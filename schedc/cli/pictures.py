"""Files that are drawn: refused before the work whose end they are."""

from importlib.util import find_spec
from pathlib import Path

from schedc.cli.files import require_suffix, require_writable
from schedc.errors import UserError

PICTURES = (".svg", ".png", ".pdf")
PAGES = (".html",)


def require_picture(path: Path, what: str) -> None:
    """`what` is said before the suffixes there are, as in `a plot is written as`. Raises UserError."""
    require_suffix(path, PICTURES, what)
    require_matplotlib()
    require_writable(path)


def require_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise UserError("a picture needs matplotlib: pip install 'schedc[plot]'")


def require_page(path: Path) -> None:
    require_suffix(path, PAGES, "a page is written as")
    require_writable(path)
