"""The command that checks tokens over a node alone: no database, no server, no local chain."""

import argparse
import asyncio
import contextlib
import gc
import sys
from collections.abc import Iterator

from roundtrip.domain.base.errors import CallerFault, RoundtripError
from roundtrip.domain.base.pasted import find_only_word
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.library.checker import Checker
from roundtrip.services.support.cancel_on_error import at_once

from .check_output import CheckOutput, Outcome
from .judging import node_of, worst_exit

_AT_ONCE = 4
"""Checks of several tokens that run at the same time."""
_AGAIN_S = 5.0
"""How often a watched token is checked. A token's owner can change it without a trace in the logs."""
_GC_THRESHOLD = 100_000
"""Imports make many objects that stay: the collector would walk them again and again."""


WrongLine = tuple[str, CallerFault]
"""A line of standard input that names no token, and why."""


def run_check(given: argparse.Namespace) -> int:
    """Runs the command; returns the exit code. Raises CallerFault."""
    gc.set_threshold(_GC_THRESHOLD)
    url, network = node_of(given)
    tokens = list(_read_addresses(given.addresses, network.chain_id))
    if not tokens:
        raise CallerFault("bad_address", "Standard input has no address.")
    is_single = len(given.addresses) == 1 and given.addresses != ["-"]
    run = CheckRun(
        Checker(url, network=network),
        tokens,
        given.amount,
        given.deep,
        CheckOutput(is_single, given.json, network.listed_tokens()),
    )
    return asyncio.run(run.watch() if given.watch else run.once())


def _read_addresses(given: list[str], chain_id: int) -> Iterator[Address | WrongLine]:
    """The addresses, in order; those of standard input line by line. Raises CallerFault: an argument is
    none."""
    for word in given:
        if word != "-":
            yield _read_address(word.strip(), chain_id)
            continue
        for text in filter(None, map(str.strip, sys.stdin)):
            try:
                yield _read_address(text, chain_id)
            except CallerFault as fault:
                yield text[:80], fault


def _read_address(text: str, chain_id: int) -> Address:
    """The one address in a text. Raises CallerFault: it has none, several, or one of another chain."""
    pasted = find_only_word(text)
    try:
        address = parse_address(text if pasted is None else pasted.word)
    except ValueError as error:
        raise CallerFault("bad_address", f"{text[:80]!r}: {error}.") from None
    if pasted is not None and pasted.chain_id not in (None, chain_id):
        named = f"{text[:80]!r} names chain {pasted.chain_id}; this checks tokens of chain {chain_id}."
        raise CallerFault("bad_address", named)
    return address


class CheckRun:
    """Checks tokens and shows the outcomes; returns exit codes."""

    def __init__(
        self,
        checker: Checker,
        tokens: list[Address | WrongLine],
        amount: str | None,
        deep: bool,
        output: CheckOutput,
    ) -> None:
        self._checker, self._tokens, self._output = checker, tokens, output
        self._amount, self._deep = amount, deep
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def once(self) -> int:
        """Each token once, shown in their order. Raises CallerFault."""
        levels = []
        async with self._checker:
            checks = [asyncio.create_task(self._check(token)) for token in self._tokens]
            try:
                with self._output.showing_progress():
                    for token, check in zip(self._tokens, checks, strict=True):
                        outcome = await check
                        self._output.show(token if isinstance(token, str) else token[0], outcome)
                        levels.append(level_of(outcome))
            finally:
                for check in checks:
                    check.cancel()
                await asyncio.gather(*checks, return_exceptions=True)
        return worst_exit(levels)

    async def watch(self) -> int:
        """Each token again and again, until it is interrupted. Raises CallerFault."""
        levels: dict[Address | WrongLine, str] = dict.fromkeys(self._tokens, "unknown")
        with contextlib.suppress(asyncio.CancelledError):
            async with self._checker:
                await at_once(*(self._watch(token, levels) for token in self._tokens))
        return worst_exit(list(levels.values()))

    async def _watch(self, token: Address | WrongLine, levels: dict[Address | WrongLine, str]) -> None:
        shown: object = None
        task = asyncio.current_task()
        # A library beneath may take a cancellation for a timeout, and then it is not raised here.
        while task is not None and not task.cancelling():
            outcome = await self._check(token)
            levels[token] = level_of(outcome)
            if (found := finding_of(outcome)) != shown:
                self._output.show(token if isinstance(token, str) else token[0], outcome)
                shown = found
            await asyncio.sleep(_AGAIN_S)

    async def _check(self, token: Address | WrongLine) -> Outcome:
        """The check, or why there is none. Raises CallerFault."""
        if isinstance(token, tuple):
            return token[1]
        async with self._places:
            try:
                return await self._checker.check_with_card(
                    token, amount_eth=self._amount, deep=self._deep, on_step=self._output.note_step
                )
            except CallerFault:
                raise
            except RoundtripError as error:
                return error


def level_of(outcome: Outcome) -> str:
    """The level of a verdict; a check that failed is no pass."""
    return "unknown" if isinstance(outcome, RoundtripError) else outcome.answer.verdict.level


def finding_of(outcome: Outcome) -> object:
    """What is compared while a token is watched: an outcome is shown again only when this changes."""
    if isinstance(outcome, RoundtripError):
        return outcome.message
    return outcome.answer.verdict, outcome.answer.flags
