"""Guesses which assets a wallet's calls move and which allowances they set, before they are run. Pure.

A candidate costs one read and proves nothing. The events of the run, and the access lists of nodes that
return them, find what is missed here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from roundtrip.chain.wallet.calls import Pair, Via, WatchedAssets
from roundtrip.domain.base.types import Address
from roundtrip.venues import abi, erc20, permit2
from roundtrip.venues.base import Call, Contracts

MAX_AT_FIRST, MAX_IN_ALL = 48, 256
"""The most tokens, and the most allowances, that the first run and a rerun read."""
_SELECTOR = 10
_ADDRESS_BYTES, _ID_BYTES = 20, 32
_MIN_ADDRESS = 2**64
"""A smaller word is a number: an address with that many leading zeros cannot be made, and precompiles hold no
assets."""
_MAX_MARKS, _PADDING = 2048, "00" * 8


class TokenLookup(Protocol):
    """Knows which token trades at a place."""

    def token_at(self, place: str) -> Address | None:
        """As ``VenueIndex.token_at``."""


@dataclass(frozen=True, slots=True)
class AssetsToWatch:
    """The assets to read, and the rest that exceeds the limit: then ``overlooked`` is True."""

    watched: WatchedAssets
    rest: WatchedAssets
    overlooked: bool


def look(calls: tuple[Call, ...], contracts: Contracts, index: TokenLookup | None) -> AssetsToWatch:
    """Lists weth and usdg, the indexed tokens of venues that the calls name, the calls' targets, and every
    address in their calldata."""
    tokens = dict.fromkeys((contracts.weth, contracts.usdg))
    for call in calls:
        tokens |= dict.fromkeys(indexed_tokens(call, index))
    tokens |= dict.fromkeys(call.to for call in calls)
    for call in calls:
        tokens |= dict.fromkeys(address_words(call.data))
    pairs = dict.fromkeys(pair for call in calls for pair in _pairs(call, contracts))
    return _cut(tuple(tokens), tuple(pairs), MAX_AT_FIRST)


def widen_look(watched: AssetsToWatch, tokens: tuple[Address, ...], pairs: tuple[Pair, ...]) -> AssetsToWatch:
    """Adds tokens and allowances; returns the same object where none is new."""
    at_first, rest = watched.watched, watched.rest
    all_tokens = dict.fromkeys((*at_first.tokens, *tokens, *rest.tokens))
    all_pairs = dict.fromkeys((*at_first.pairs, *pairs, *rest.pairs))
    if len(all_tokens) == len(at_first.tokens) and len(all_pairs) == len(at_first.pairs):
        return watched
    return _cut(tuple(all_tokens), tuple(all_pairs), MAX_IN_ALL)


def _cut(tokens: tuple[Address, ...], pairs: tuple[Pair, ...], limit: int) -> AssetsToWatch:
    rest = WatchedAssets(tokens[limit:], pairs[limit:])
    return AssetsToWatch(WatchedAssets(tokens[:limit], pairs[:limit]), rest, bool(rest.tokens or rest.pairs))


def indexed_tokens(call: Call, index: TokenLookup | None) -> Iterator[Address]:
    """Indexed tokens that the call names anywhere in its calldata, packed or not, by their own address or by
    a pool's or curve's address or id."""
    if index is None:
        return
    for place in (call.to, *_windows(call.data)):
        token = index.token_at(place)
        if token is not None:
            yield token


def _windows(data: str) -> Iterator[str]:
    """Every run of bytes of the calldata as long as an address or a pool's id."""
    body = data[2:].lower()
    for at in range(0, len(body) - 2 * _ADDRESS_BYTES + 1, 2):
        for size in (_ADDRESS_BYTES, _ID_BYTES):
            yield "0x" + body[at : at + 2 * size]


def marks(call: Call) -> Iterator[str]:
    """What the call may name a pool, a curve or a token by: its target, and the first ``_MAX_MARKS`` runs of
    bytes without the zeros that pad numbers."""
    yield call.to
    ends = (2 + 2 * _ADDRESS_BYTES, 2 + 2 * _ID_BYTES)
    likely = (window for window in _windows(call.data) if len(window) in ends and _PADDING not in window)
    yield from islice(likely, _MAX_MARKS)


def strange(
    addresses: tuple[Address, ...], contracts: Contracts, index: TokenLookup | None
) -> tuple[Address, ...]:
    """The addresses that may be tokens: not the exchanges' contracts, nor known pools and curves."""
    known = contracts.all_addresses()
    return tuple(
        address
        for address in addresses
        if address not in known
        and int(address, 16) >= _MIN_ADDRESS
        and (index is None or index.token_at(address) in (None, address))
    )


def address_words(data: str) -> Iterator[Address]:
    """The words of the calldata that may be addresses."""
    body = bytes.fromhex(data[_SELECTOR:])
    for index in range(len(body) // abi.WORD):
        address = abi.address_at(body, index)
        if address is not None and int(address, 16) >= _MIN_ADDRESS:
            yield address


def _pairs(call: Call, contracts: Contracts) -> Iterator[Pair]:
    """The call's target may be a token, and any address in its calldata a spender. Events show the allowances
    that are set inside the calls."""
    head, words = call.data[:_SELECTOR], list(address_words(call.data))
    if call.to == contracts.permit2:
        if head == permit2.APPROVE and len(words) > 1:
            yield Pair(words[0], words[1], "permit2")
        return
    vias: dict[str, Via] = {erc20.SET_APPROVAL_FOR_ALL: "all", erc20.SET_OPERATOR: "operator"}
    yield from (Pair(call.to, word, vias.get(head, "erc20")) for word in words)
