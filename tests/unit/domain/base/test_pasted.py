"""What people paste where an address is expected."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.pasted import (
    MAX_CHARACTERS,
    PastedWord,
    find_only_word,
    find_short_query,
    find_words,
    list_symbols,
)

A = "0x" + "aB12" * 10
LOW = A.lower()
OTHER = "0x" + "cd34" * 10
HASH = "0x" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "chain_id"),
    [
        (A, None), (A.upper(), None), (A[2:], None), (f" {A} ", None), (f"{A}.", None), (f"{A},", None),
        (f'"{A}"', None), (f"`{A}`", None), (f"<{A}>", None), (f"'{A[2:]}'", None), (f"({A})", None),
        (f"is {A} safe?", None), (f"{A} and {A.lower()}", None), (f"CA: {A}", None), (f"CA:{A}", None),
        (f"https://robinhoodchain.blockscout.com/token/{A}", None),
        (f"https://robinhoodchain.blockscout.com/address/{A}?tab=txs#top", None),
        (f"https://dexscreener.com/robinhood/{A}", None),
        (f"https://app.uniswap.org/swap?outputCurrency={A}&inputCurrency=ETH", None),
        (f"https://etherscan.io/token/{A}", 1), (f"https://www.bscscan.com/address/{A}#code", 56),
        (f"https://dexscreener.com/base/{A}", 8453), (f"https://dexscreener.com/Ethereum/{A}?a=1", 1),
        (f"https://app.uniswap.org/explore/tokens/base/{A}", 8453),
        (f"https://app.uniswap.org/swap?chain=base&outputCurrency={A}", 8453),
        (f"https://app.uniswap.org/swap?outputCurrency={A}&chain=arbitrum", 42161),
        (f"https://x.example/{A}?chainId=10", 10), (f"https://x.example/t?network=bsc&a={A}", 56),
        (f"https://x.example/{A}?chain=robinhood", None), (f"https://x.example/mainnet/{A}", None),
        (f"https://x.example/swap?chain=mainnet&a={A}", 1), (f"https://base.example/token/{A}", None),
        (f"https://x.example/base-camp/{A}", None), (f"base {A} https://x.example/base/", None),
        (f"https://etherscan.io.evil.example/token/{A}", None),
        (f"eip155:4663:{A}", 4663), (f"eip155:1:{A}", 1), (f"eip155:4663/erc20:{A}", 4663),
        (f"eip155:8453/erc721:{A}/12", 8453), (f"ethereum:{A}", None), (f"ethereum:{A}@4663", 4663),
        (f"ethereum:pay-{A}@1", 1), (f"ethereum:{A}@1/transfer?uint256=1", 1), (f"eth:{A}", 1),
        (f"robinhood.blockscout.example/token/{A}", None), (f"basescan.org/token/{A}?a=1", 8453),
        (f"www.bscscan.com/address/{A}", 56), (f"see etherscan.io:443/token/{A}", 1),
        (f"(dexscreener.com/base/{A})", 8453), (f"x.example/swap?chain=base&a={A}", 8453),
        (f"x.example/etherscan.io/{A}", None), (f"me@etherscan.io/{A}", None), (f"base/{A}", None),
        (f"http://localhost:3000/base/{A}", 8453), (f"https://x.example/a:b@basescan.org/{A}", None),
        (f"rhc:{A}", None), (f"arb1:{A}", 42161), (f"{A} is the same as eip155:1:{A}", 1),
    ],
)  # fmt: skip
def test_the_address_is_taken_out(text: str, chain_id: int | None) -> None:
    assert find_only_word(text) == PastedWord(LOW, chain_id)


@pytest.mark.parametrize("text", [HASH, HASH[2:], f"https://etherscan.io/tx/{HASH}", f"tx {HASH}: why?"])
def test_a_hash_is_taken_out(text: str) -> None:
    found = find_only_word(text)
    assert found is not None
    assert found.word == HASH


@pytest.mark.parametrize(
    "text",
    [
        "", "PEPE", "vitalik.eth", A[:-1], f"{A}0", f"{A}z", f"a{A}", "0х" + A[2:], "０ｘ" + A[2:],
        f"is {A[2:]} safe?", HASH[:-1], f"{HASH}0", "eip155:1:", "$0x12",
    ],
)  # fmt: skip
def test_what_holds_none(text: str) -> None:
    assert find_words(text) == ()


def test_of_several_none_is_chosen() -> None:
    for text in (f"{A} or {OTHER}", f"https://x.example/tx/{HASH}?token={A}"):
        assert find_only_word(text) is None
        assert len(find_words(text)) == 2


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("FLASH", ["FLASH"]), ('"FLASH"', ['"FLASH"', "FLASH"]), ("“FLASH”", ["“FLASH”", "FLASH"]),
        ("‘FLASH’", ["‘FLASH’", "FLASH"]), ("„FLASH“", ["„FLASH“", "FLASH"]),
        ("«FLASH»", ["«FLASH»", "FLASH"]),
        ("`FLASH`", ["`FLASH`", "FLASH"]), ("$FLASH", ["$FLASH", "FLASH"]), ("#FLASH", ["#FLASH", "FLASH"]),
        ('"$FLASH"', ['"$FLASH"', "$FLASH", "FLASH"]), ('$"FLASH"', ['$"FLASH"', '$"FLASH', "FLASH"]),
        ("$$FLASH", ["$$FLASH", "$FLASH"]), ("$", ["$"]), ('""', ['""']), ("A$", ["A$"]), ("", []),
    ],
)  # fmt: skip
def test_quotes_and_tags_are_no_part_of_a_symbol_unless_they_are(text: str, symbols: list[str]) -> None:
    assert list_symbols(text) == symbols


@pytest.mark.parametrize("length", [81, 200, MAX_CHARACTERS])
def test_a_long_link_becomes_its_address(length: int) -> None:
    link = f"https://etherscan.io/token/{A}?q=".ljust(length, "x")
    assert find_short_query(link, 80) == f"{LOW}@1"
    assert find_short_query("x" * length, 80) == "x" * length
    with pytest.raises(ParamFault, match="2 different addresses or hashes"):
        find_short_query(f"{link} {OTHER}", 80)


@given(st.sampled_from([LOW, HASH]), st.none() | st.integers(0, 10**12 - 1))
def test_the_short_form_reads_back_and_fits(word: str, chain_id: int | None) -> None:
    pasted = PastedWord(word, chain_id)
    assert find_only_word(pasted.short()) == pasted
    assert len(pasted.short()) <= 80


@pytest.mark.parametrize(
    "piece", ["eip155:", "a-", "http://", "0x", A, f"https://{'a.' * 60}/", "/" * 9, ":", "a.", "www."]
)
def test_long_texts_take_no_time(piece: str) -> None:
    started_s = time.perf_counter()
    find_words((piece * 8000)[:64_000] + A)
    assert time.perf_counter() - started_s < 0.5
