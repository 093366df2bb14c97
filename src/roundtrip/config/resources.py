"""Resources that pip does not install: the libraries of the console's pages, and the documentation.

In a checkout they are in its folders, where ``make run`` has npm install the libraries. A wheel contains
both.
"""

from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[3]
_CARRIED = Path(__file__).resolve().parents[1] / "carried"
IS_WHEEL = _CARRIED.is_dir()
LIBRARIES = (_CARRIED if IS_WHEEL else _CHECKOUT) / "node_modules"
"""The folder of the pages' libraries."""
DOCUMENTS = (_CARRIED if IS_WHEEL else _CHECKOUT) / "docs"
"""The folder of the documentation, which the pages show."""
