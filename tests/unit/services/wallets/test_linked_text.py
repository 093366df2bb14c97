"""What linked_wallets says."""

from dataclasses import replace

import pytest

from roundtrip.domain.base.types import BlockRef
from roundtrip.domain.wallets.linked import Money, SameTokens
from roundtrip.services.wallets.linked import Candidate, Funder, LinkedRecord, present
from roundtrip.store.index.cursor import Cursor
from unit.domain.holding import address

WALLET, FUNDER, OTHER = address(0xA1), address(0xF1), address(0xB2)
NONE = LinkedRecord(Cursor(0, BlockRef(9, "0x09", 1_800_000_000)), WALLET, is_met=True)
LINKED = replace(
    NONE,
    funder=Funder(FUNDER, 3, False),
    tokens_compared=10,
    candidates=(Candidate(OTHER, (Money("same_funder", 3, 125),), SameTokens(9, 10, 12, 1_234, 30_000), ()),),
)


def text(record: LinkedRecord, *contracts: str) -> str:
    return present(1, record, {one: one in contracts for one in (WALLET, FUNDER, OTHER)}, 20).text


def test_the_text_of_a_linked_wallet() -> None:
    (linked,) = present(1, LINKED, dict.fromkeys((WALLET, FUNDER, OTHER), False), 20).linked
    assert [reason.text for reason in linked.reasons] == [
        f"Both got their first eth from {FUNDER}, 2 minutes apart, as did 3 wallets in all.",
        "Both bought 9 of the 10 tokens compared, within ten blocks of each other. It traded 1,234 tokens in "
        "all.",
    ]
    why = " ".join(reason.text for reason in linked.reasons)
    assert text(LINKED) == (
        f"1 other wallet may be linked to it. The most likely to belong to the same person is {OTHER}, with "
        f"a score of {linked.score} of 100. Why: {why} This is a hint, not proof: an employer, a friend or a "
        "faucet also pays people, and anyone can buy what others buy. "
        f"Its first eth came from {FUNDER}. We compared 10 tokens that it bought in the last 30 days."
    )


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (replace(NONE, is_machinery=True), "not a person's wallet: we link it to no wallet."),
        (replace(NONE, is_exchange=True), "it is probably an exchange, which we link to no wallet."),
        (replace(NONE, is_met=False), "so it knows nothing that could link it to another."),
        (
            NONE,
            "We found no other wallet that is linked to it. We do not know who sent it its first eth. "
            "It bought nothing in the last 30 days, so there were no tokens to compare.",
        ),
        (
            replace(NONE, funder=Funder(FUNDER, 501, False)),
            "which sent over 500 wallets their first eth: probably an exchange, and not a link.",
        ),
        (
            replace(NONE, funder=Funder(FUNDER, 2, True)),
            "a contract that everyone uses: that links no wallets.",
        ),
    ],
)
def test_what_links_no_wallets_is_said(record: LinkedRecord, says: str) -> None:
    assert says in text(record)


def test_contracts_link_no_wallets() -> None:
    assert text(NONE, WALLET) == ("This address is a contract, not a wallet: we link contracts to no wallet.")
    assert f"came from {FUNDER}, a contract: that links no wallets." in text(LINKED, FUNDER)
