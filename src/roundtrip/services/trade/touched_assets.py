"""Where to look for what a wallet's calls move and allow, before they are run. Pure.

Candidates cost a read each and prove nothing; what is missed here is found by the events of the run, and by
the access lists of nodes that tell them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from roundtrip.chain.blocks.venue_index import VenueIndex
from roundtrip.chain.wallet.calls import Pair, Via, WatchedAssets
from roundtrip.domain.base.types import Address
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call, Contracts

MOST_AT_FIRST, MOST_IN_ALL = 48, 256
"""So many tokens, and as many allowances, are read in the first run, and so many when it is run again."""
_SELECTOR = 10
_ADDRESS_BYTES, _ID_BYTES = 20, 32
_LEAST_ADDRESS = 2**64
"""Below it a word is a number: nobody can make an address with so many zeros in front, and precompiles hold
nothing."""


@dataclass(frozen=True, slots=True)
class AssetsToWatch:
    """What is looked at, and what more is to be: ``overlooked`` when that passes what can be."""

    watched: WatchedAssets
    rest: WatchedAssets
    overlooked: bool


def look(calls: tuple[Call, ...], contracts: Contracts, index: VenueIndex | None) -> AssetsToWatch:
    """The money side, what is known to trade wherever these calls lead, their targets, and every address in
    their calldata."""
    tokens = dict.fromkeys((contracts.weth, contracts.usdg))
    for call in calls:
        tokens |= dict.fromkeys(indexed_tokens(call, index))
    tokens |= dict.fromkeys(call.to for call in calls)
    for call in calls:
        tokens |= dict.fromkeys(address_words(call.data))
    pairs = dict.fromkeys(pair for call in calls for pair in _pairs(call, contracts))
    return _cut(tuple(tokens), tuple(pairs), MOST_AT_FIRST)


def widen_look(watched: AssetsToWatch, tokens: tuple[Address, ...], pairs: tuple[Pair, ...]) -> AssetsToWatch:
    """With more to look at; the same object where there is nothing new."""
    at_first, rest = watched.watched, watched.rest
    all_tokens = dict.fromkeys((*at_first.tokens, *tokens, *rest.tokens))
    all_pairs = dict.fromkeys((*at_first.pairs, *pairs, *rest.pairs))
    if len(all_tokens) == len(at_first.tokens) and len(all_pairs) == len(at_first.pairs):
        return watched
    return _cut(tuple(all_tokens), tuple(all_pairs), MOST_IN_ALL)


def _cut(tokens: tuple[Address, ...], pairs: tuple[Pair, ...], most: int) -> AssetsToWatch:
    rest = WatchedAssets(tokens[most:], pairs[most:])
    return AssetsToWatch(WatchedAssets(tokens[:most], pairs[:most]), rest, bool(rest.tokens or rest.pairs))


def indexed_tokens(call: Call, index: VenueIndex | None) -> Iterator[Address]:
    """Tokens that are known to trade at a pool, a curve or under a key that the call names anywhere, packed
    or not, or that it names themselves."""
    if index is None:
        return
    target_token = index.token_at(call.to)
    if target_token is not None:
        yield target_token
    body = call.data[2:].lower()
    for at in range(0, len(body) - 2 * _ADDRESS_BYTES + 1, 2):
        for size in (_ADDRESS_BYTES, _ID_BYTES):
            token = index.token_at("0x" + body[at : at + 2 * size])
            if token is not None:
                yield token


def strange(
    addresses: tuple[Address, ...], contracts: Contracts, index: VenueIndex | None
) -> tuple[Address, ...]:
    """Those that may be tokens: not the exchanges' own machinery, nor pools and curves that are known."""
    known = contracts.all_addresses()
    return tuple(
        address
        for address in addresses
        if address not in known
        and int(address, 16) >= _LEAST_ADDRESS
        and (index is None or index.token_at(address) in (None, address))
    )


def address_words(data: str) -> Iterator[Address]:
    """Words of the calldata that may be addresses."""
    body = bytes.fromhex(data[_SELECTOR:])
    for index in range(len(body) // abi.WORD):
        address = abi.address_at(body, index)
        if address is not None and int(address, 16) >= _LEAST_ADDRESS:
            yield address


def _pairs(call: Call, contracts: Contracts) -> Iterator[Pair]:
    """Who is called may be the token, and any address in its calldata the spender. What is allowed within
    the calls, events tell."""
    head, words = call.data[:_SELECTOR], list(address_words(call.data))
    if call.to == contracts.permit2:
        if head == permit2.APPROVE and len(words) > 1:
            yield Pair(words[0], words[1], "permit2")
        return
    vias: dict[str, Via] = {erc20.SET_APPROVAL_FOR_ALL: "all", erc20.SET_OPERATOR: "operator"}
    yield from (Pair(call.to, word, vias.get(head, "erc20")) for word in words)
