"""Shows checks in a terminal: a card, a line each, or JSON."""

import contextlib
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Union

from rich.console import Console
from rich.status import Status
from rich.text import Text

from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.market.look_alikes import ListedToken

from .check_card import draw_card, draw_failure, draw_line, draw_narrow_card

if TYPE_CHECKING:
    from roundtrip.library.node_checks import CheckWithCard

Outcome = Union["CheckWithCard", RoundtripError]
"""A check, or why there is none."""
_WIDTH = 100
"""Of a card without a terminal."""
_NARROW = 72
"""Columns below which the card's table would be a column of words."""


class CheckOutput:
    """``is_single``: one token, which gets a card; else each gets a line. ``as_json``: the API's answers
    instead. ``listed``: tokens that the card compares the symbol with."""

    def __init__(self, is_single: bool, as_json: bool, listed: tuple[ListedToken, ...] = ()) -> None:
        self._is_single, self._as_json, self._listed = is_single, as_json, listed
        is_terminal = sys.stdout.isatty()
        self._console = Console(highlight=False, width=None if is_terminal else _WIDTH)
        # On one terminal both need the same console, which moves the progress out of the way.
        self._progress = self._console if is_terminal and not as_json else Console(stderr=True)
        self._status: Status | None = None

    @contextlib.contextmanager
    def showing_progress(self) -> Iterator[None]:
        """Shows what the check does while the block runs, where a person looks on. Several answers in JSON
        are progress by themselves."""
        if not self._progress.is_terminal or (self._as_json and not self._is_single):
            yield
            return
        with self._progress.status("opening") as self._status:
            yield

    def note_step(self, step: str) -> None:
        """Shows what a check begins to do."""
        if self._status is not None:
            self._status.update(step)

    def show(self, token: str, outcome: Outcome) -> None:
        """Prints one outcome."""
        if self._as_json:
            self._print_json(outcome)
        elif isinstance(outcome, RoundtripError):
            self._console.print(draw_failure(token, outcome, self._is_single), soft_wrap=True)
        elif self._is_single:
            self._show_card(outcome)
        else:
            self._console.print(draw_line(outcome.answer, outcome.card), soft_wrap=True)

    def _show_card(self, outcome: "CheckWithCard") -> None:
        shown = outcome.answer, outcome.card, self._listed
        if self._console.is_terminal and self._console.width >= _NARROW:
            self._console.print(draw_card(*shown))
        elif self._console.is_terminal:
            self._console.print(Text("\n").join(draw_narrow_card(*shown)), soft_wrap=True)
        else:
            with self._console.capture() as captured:
                self._console.print(draw_card(*shown))
            # A table fills its lines with blanks, which say nothing to a program.
            print("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))

    def _print_json(self, outcome: Outcome) -> None:
        """The answer or the error in the API's own bytes."""
        if isinstance(outcome, RoundtripError):
            error = {"error": {"code": outcome.code, "message": outcome.message}}
            body = json.dumps(error, separators=(",", ":"), ensure_ascii=False).encode()
        else:
            # Imported here: a command that prints no JSON starts faster without it.
            body = import_module("msgspec").json.encode(outcome.answer)
        sys.stdout.buffer.write(body + b"\n")
        sys.stdout.buffer.flush()
