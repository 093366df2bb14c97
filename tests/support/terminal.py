"""What a terminal shows."""

import io

from rich.console import Console, RenderableType


def printed(drawn: RenderableType) -> str:
    """What a terminal without colours gets."""
    into = io.StringIO()
    Console(file=into, width=100, color_system=None, force_terminal=True, highlight=False).print(drawn)
    return into.getvalue()
