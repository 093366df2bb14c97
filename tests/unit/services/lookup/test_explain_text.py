"""What explain_transaction says of steps, fees, and contracts that are not known."""

from dataclasses import replace

import pytest

from roundtrip.chain.wallet.transactions import BlockAround, MinedTransaction, SentTransaction
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef, TxHash
from roundtrip.domain.transaction.account import (
    AllowanceGiven,
    MovedAsset,
    TransactionStep,
    TransactionSummary,
)
from roundtrip.services.lookup.entities import KnownEntities
from roundtrip.services.lookup.explain_text import (
    MAX_SHOWN,
    StepsText,
    WalletEffect,
    describe_call,
    describe_transaction,
)
from roundtrip.store.index.tokens import Label
from unit.venues.network import CONTRACTS, address

ALICE, BOB, TOKEN, POOL = address(0xA1), address(0xB2), address(0xC3), address(0xD4)
ETH = 10**18
NAMED = f'"PEPE" ({TOKEN})'
TEXTS = StepsText(
    CONTRACTS, KnownEntities(labels={TOKEN: Label(TOKEN, "PEPE", None, 18, None)}), frozenset({ALICE})
)
BUY = TransactionStep(
    "buy",
    ALICE,
    venue="amm_v3",
    at=POOL,
    token=TOKEN,
    paid=MovedAsset(ZERO_ADDRESS, ETH // 10),
    got=MovedAsset(TOKEN, 1_234_567_890 * ETH),
)
SEND = TransactionStep("transfer", ALICE, BOB, token=TOKEN, paid=MovedAsset(TOKEN, 7 * ETH))
SENT = SentTransaction(
    TxHash("0x01"), ALICE, BOB, 0, bytes.fromhex("deadbeef"), 90_000, 1, 2, (1_527, "0x", 0)
)
MINED = MinedTransaction(True, 21_000, 10**9, None, ())
AROUND = BlockAround(BlockRef(1_527, "0x", 1_800_000_000), "0x", address(0xE5), 0, 0)


def approved(amount_raw: int, spender: Address = BOB) -> TransactionStep:
    log = AllowanceGiven(TOKEN, ALICE, spender, amount_raw)
    return TransactionStep("approval", ALICE, spender, token=TOKEN, log=log)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (BUY, f"{ALICE} bought about 1,234,000,000 {NAMED} for 0.1 eth in the v3 pool {POOL}"),
        (replace(BUY, to=BOB), f"the v3 pool {POOL}, delivered to {BOB}"),
        (SEND, f"{ALICE} sent 7 {NAMED} to {BOB}"),
        (replace(SEND, actor=BOB, to=ALICE), f"{TOKEN} says that {BOB} sent 7 {NAMED} to {ALICE}"),
        (replace(SEND, actor=ZERO_ADDRESS), f"{TOKEN} says that 7 {NAMED} was minted to {BOB}"),
        (
            replace(SEND, actor=BOB, to=ALICE, paid=MovedAsset(TOKEN, 0)),
            f"{TOKEN} says that {BOB} sent 0 {NAMED} to {ALICE}: nothing moved (a transfer of 0 is a known "
            "trick to put a false address into your history)",
        ),
        (
            replace(SEND, paid=MovedAsset(TOKEN, 10**60)),
            f"{ALICE} sent an impossible amount of {NAMED} to {BOB}",
        ),
        (approved(2**256 - 1), f"{ALICE} allowed {BOB} to take any amount of its {NAMED}"),
        (approved(3 * ETH), f"{ALICE} allowed {BOB} to take up to 3 {NAMED}"),
        (approved(0), f"{ALICE} revoked the right of {BOB} to take its {NAMED}"),
        (TransactionStep("contract_made", ALICE, at=POOL), f"{ALICE} deployed the contract {POOL}"),
    ],
)
def test_a_step_in_words(step: TransactionStep, says: str) -> None:
    assert TEXTS.describe(step).endswith(says)


def test_steps_are_one_a_line() -> None:
    summary = TransactionSummary("trade", (BUY, SEND, SEND), (), (), (), 2)
    effect = WalletEffect(ALICE, {ZERO_ADDRESS: -ETH // 10, TOKEN: 5 * ETH}, "balance", False)
    assert describe_transaction(TEXTS, SENT, summary, effect, MINED, AROUND).split("\n") == [
        f"{ALICE} bought about 1,234,000,000 {NAMED} for 0.1 eth in the v3 pool {POOL}.",
        f"{ALICE} sent 7 {NAMED} to {BOB} (2 times).",
        "Contracts that are not pools we know reported 2 trades: we ignored them. "
        f"In total {ALICE} paid 0.1 eth and got 5 {NAMED}, not counting the fee. "
        "It is in block 1,527 of 2027-01-15 08:00:00 UTC; its fee was 0.000021 eth. "
        "Token amounts are as their contracts report them.",
    ]


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (1, f"of the account {address(1)} (account"),
        (2, f"of the accounts {address(1)}, {address(2)} (account"),
        (MAX_SHOWN, f"{address(MAX_SHOWN)} (account"),
        (MAX_SHOWN + 1, f"{address(MAX_SHOWN)} and 1 more (account"),
        (MAX_SHOWN + 2, f"{address(MAX_SHOWN)} and 2 more (account"),
    ],
)
def test_the_accounts_of_operations_are_named_and_the_rest_counted(count: int, says: str) -> None:
    accounts = tuple(address(number) for number in range(1, count + 1))
    summary = TransactionSummary("transfer", (SEND,), accounts, (), (), 0)
    text = describe_transaction(
        TEXTS, SENT, summary, WalletEffect(ALICE, {}, "balance", False), MINED, AROUND
    )
    assert text.startswith(f"{ALICE} submitted operations of the account")
    assert says in text


@pytest.mark.parametrize(("is_contract", "what"), [(True, "contract"), (False, "address")])
def test_what_is_not_known_is_called_unknown(is_contract: bool, what: str) -> None:
    assert describe_call(replace(TEXTS, is_contract=is_contract), SENT, "tried") == (
        f"{ALICE} tried to call the unknown {what} {BOB} (function selector 0xdeadbeef)."
    )
    paid = replace(SENT, value_wei=ETH // 3)
    assert "with 0.3333 eth (function selector" in describe_call(TEXTS, paid, "wants")
