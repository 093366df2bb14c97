"""Symbols and verdicts of the tokens that a page names."""

from collections.abc import Iterable, Mapping

from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.support.shown_verdict import TokenState
from roundtrip.services.watch.inbox import StatesParams, token_states

_STATES = page_operation(token_states, counts="never", errors=("busy",))


async def read_token_states(visit: Visit, addresses: Iterable[str]) -> Mapping[str, TokenState]:
    """The index's symbol and newest check of each token, by address. Empty: the index cannot be read now,
    and a page shows its tokens by their addresses."""
    tokens = sorted(set(addresses))
    try:
        return (await visit.ask(_STATES, StatesParams(tokens))).states if tokens else {}
    except RoundtripError:
        return {}
