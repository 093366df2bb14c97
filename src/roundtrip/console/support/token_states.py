"""Symbols and verdicts of the tokens that a page names."""

from collections.abc import Iterable, Mapping
from typing import Any

from roundtrip.api.operations.operation import Operation
from roundtrip.console.support.page_request import Visit
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.services.watch.token_states import StatesParams, TokenStates, token_states

_STATES = Operation(
    name="token_states",
    title="Symbols and verdicts of tokens",
    description="",
    params=StatesParams,
    answer=TokenStates,
    handler=lambda call: token_states(call.ctx, call.params),
    on_mcp=False,
    counts="never",
    errors=("busy",),
)


async def read_token_states(visit: Visit, addresses: Iterable[str]) -> Mapping[str, Any]:
    """The index's symbol and newest check of each token, by address. Empty: the index cannot be read now,
    and a page shows its tokens by their addresses."""
    tokens = sorted(set(addresses))
    try:
        states: Mapping[str, Any] = (await visit.ask_old(_STATES, tokens=tokens))["states"] if tokens else {}
    except RoundtripError:
        return {}
    return states
