"""Finds the address or transaction hash in pasted text: a link, an identifier such as CAIP-10, a sentence.
Finds the symbol in what people write for one. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from roundtrip.domain.base.errors import ParamFault

_WORD = re.compile(
    r"(?<![0-9a-z])0x(?P<digits>[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-z])(?:@(?P<chain>[0-9]{1,12})(?![0-9a-z]))?",
    re.IGNORECASE | re.ASCII,
)
_BARE = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)
_PUNCTUATION = " .,;:!?()[]{}<>\"'`"
_CAIP = re.compile(r"eip155:([0-9]{1,12})(?::|/[a-z0-9-]{3,8}:)$", re.IGNORECASE | re.ASCII)
"""CAIP-10 (an account) or CAIP-19 (an asset), up to the address."""
_SHORT_NAME = re.compile(r"(?<![0-9a-z.:/_-])([a-z0-9-]{2,16}):$", re.IGNORECASE | re.ASCII)
"""EIP-3770, up to the address."""
MAX_CHARACTERS = 8192
"""The longest pasted text: as long as the longest URL that servers commonly accept."""
_QUOTES = (
    "\"'`\xb4\xab\xbb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u2039\u203a"
    "\u300c\u300d\uff02\uff07"
)
_TAGS = "$#"
"""What people put before a symbol."""
_MAX_BEFORE = 200
"""Characters before an address in which its chain is looked for."""
_HOST = re.compile(
    r"(?:https?://|(?<![a-z0-9._~%@:/-])(?=[a-z0-9-]+\.))(?:www\.)?(?P<host>[a-z0-9.-]+)(?::[0-9]{1,5})?"
    r"/(?P<path>[^\s]*)$",
    re.IGNORECASE | re.ASCII,
)
"""A link up to the address, with or without its scheme."""
_BY_SHORT_NAME: Mapping[str, int] = MappingProxyType(
    {
        "eth": 1, "oeth": 10, "bnb": 56, "gno": 100, "matic": 137, "base": 8453, "arb1": 42161,
        "avax": 43114, "sep": 11155111,
    }
)  # fmt: skip
"""Short names of chains, as in the list of EIP-3770."""
_BY_HOST: Mapping[str, int] = MappingProxyType(
    {
        "etherscan.io": 1, "eth.blockscout.com": 1, "sepolia.etherscan.io": 11155111,
        "optimistic.etherscan.io": 10, "bscscan.com": 56, "gnosisscan.io": 100, "polygonscan.com": 137,
        "basescan.org": 8453, "base.blockscout.com": 8453, "arbiscan.io": 42161, "snowtrace.io": 43114,
    }
)  # fmt: skip
"""Explorers that show one chain."""
_BY_NAME: Mapping[str, int] = MappingProxyType(
    {
        "ethereum": 1, "eth": 1, "optimism": 10, "bsc": 56, "bnb": 56, "bnbchain": 56,
        "gnosis": 100, "unichain": 130, "polygon": 137, "matic": 137, "base": 8453, "arbitrum": 42161,
        "avalanche": 43114, "avax": 43114, "blast": 81457, "linea": 59144, "scroll": 534352, "zksync": 324,
        "sepolia": 11155111,
    }
)  # fmt: skip
"""Names of chains in links. This service's own chain is not another one, and not here."""
_CHAIN_VALUE = re.compile(
    r"[?&#](?:chain|chain_?id|network)=([a-z0-9-]{1,12})(?![a-z0-9-])", re.IGNORECASE | re.ASCII
)
_REST = re.compile(r"[^\s]*")


@dataclass(frozen=True, slots=True)
class PastedWord:
    """``word``: ``0x`` and 40 or 64 lower-case hex digits: an address, or a hash or pool id. ``chain_id``:
    the chain that the text names for it; None: it names none."""

    word: str
    chain_id: int | None = None

    def short(self) -> str:
        """The same in at most 79 characters; ``find_words`` reads it back."""
        return self.word if self.chain_id is None else f"{self.word}@{self.chain_id}"


def find_words(text: str) -> tuple[PastedWord, ...]:
    """The different addresses and hashes in a text, in order, each with the first chain named for it. Digits
    without ``0x`` count only where they are the whole text."""
    bare = text.strip(_PUNCTUATION)
    if _BARE.fullmatch(bare):
        return (PastedWord("0x" + bare.lower()),)
    chains: dict[str, int | None] = {}
    for match in _WORD.finditer(text):
        word = "0x" + match["digits"].lower()
        after = _REST.match(text[match.end() : match.end() + _MAX_BEFORE])
        chain_id = (
            int(match["chain"])
            if match["chain"]
            else _find_chain(
                text[max(0, match.start() - _MAX_BEFORE) : match.start()], after[0] if after else ""
            )
        )
        if chains.get(word) is None:
            chains[word] = chain_id
    return tuple(PastedWord(word, chain_id) for word, chain_id in chains.items())


def find_only_word(text: str) -> PastedWord | None:
    """The one address or hash in a text; None: it has none, or several."""
    words = find_words(text)
    return words[0] if len(words) == 1 else None


def find_short_query(text: str, max_length: int) -> str:
    """The text; of one longer than ``max_length`` with one address or hash in it, that one, with the chain
    that the text names. Raises ParamFault (bad_input): it has several."""
    words = find_words(text) if len(text) > max_length else ()
    if len(words) > 1:
        raise ParamFault(
            "bad_input", f"The text has {len(words)} different addresses or hashes. Look up one at a time."
        )
    return words[0].short() if words else text


def list_symbols(text: str) -> list[str]:
    """The symbols that a text may name, the likeliest first: as it is written, then without quotes around it,
    then without ``$`` or ``#`` before it."""
    unquoted = text.strip(_QUOTES + " ")
    untagged = unquoted[1:].lstrip(_QUOTES + " ") if unquoted[:1] in _TAGS else unquoted
    return [symbol for symbol in dict.fromkeys((text, unquoted, untagged)) if symbol]


def _find_in_link(path: str) -> int | None:
    """The chain that a segment of a link's path, or a value of its query, names; None: it names none."""
    for segment in path.partition("?")[0].split("/"):
        if (chain_id := _BY_NAME.get(segment.lower())) is not None:
            return chain_id
    for value in _CHAIN_VALUE.findall(path):
        if value.isdecimal():
            return int(value)
        if (chain_id := _BY_NAME.get(value.lower(), 1 if value.lower() == "mainnet" else None)) is not None:
            return chain_id
    return None


def _find_chain(before: str, after: str) -> int | None:
    """The chain that the text before an address, or the rest of a link after it, names for it."""
    if caip := _CAIP.search(before):
        return int(caip[1])
    if short := _SHORT_NAME.search(before):
        return _BY_SHORT_NAME.get(short[1].lower())
    link = _HOST.search(before)
    if link is None:
        return None
    return _BY_HOST.get(link["host"].lower()) or _find_in_link(link["path"] + after)
