"""That enough people mark a wallet as a scam is told wherever the wallet is."""

import contextlib
from collections.abc import AsyncIterator

from roundtrip.domain.base.types import Address
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.lookup.look_up import find
from roundtrip.services.lookup.look_up_answer import LookUpParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.wallets.history import wallet_history
from roundtrip.store.community import public_names
from roundtrip.store.server.rows import as_bytes
from roundtrip_development.devnet.world import Built
from support.made_index import MadeIndex, number_address

WALLET, FUNDER, NAMED = (number_address(0x5CA000 + n) for n in range(3))
MARKED = "is marked as a scam by 4 people: that is their word, not proof."


@contextlib.asynccontextmanager
async def marked(ctx: Context, wallet: str, mark: str = "scam") -> AsyncIterator[None]:
    async with ctx.pool.acquire() as connection:
        await connection.execute(
            "INSERT INTO accounts.public_name (wallet, what, key, said, people, is_first)"
            " VALUES ($1, 'mark', $2, $2, 4, true)",
            as_bytes(wallet),
            mark,
        )
    try:
        yield
    finally:
        async with ctx.pool.acquire() as connection:
            await connection.execute("DELETE FROM accounts.public_name WHERE wallet = $1", as_bytes(wallet))


async def text_of(ctx: Context, query: str) -> str:
    return (await find(ctx, LookUpParams(query))).answer.text


async def test_it_is_told_of_a_wallet_that_is_looked_up(by_hand: Context, made: MadeIndex) -> None:
    assert "scam" not in await text_of(by_hand, WALLET)
    async with marked(by_hand, WALLET):
        assert (await text_of(by_hand, WALLET)).endswith(f"It {MARKED}")
    async with marked(by_hand, WALLET, "good"):
        assert "mark" not in await text_of(by_hand, WALLET)


async def test_it_is_told_of_who_launched_what_is_looked_up(indexed: Context, built: Built) -> None:
    async with marked(indexed, built.accounts[5]):
        assert f"Its deployer {MARKED}" in await text_of(indexed, built.tokens["curve"])
        assert f"It {MARKED}" in await text_of(indexed, built.accounts[5])


async def test_it_is_told_first_in_a_wallets_history(by_hand: Context, made: MadeIndex) -> None:
    await made.funded(WALLET, FUNDER)
    async with marked(by_hand, WALLET), marked(by_hand, FUNDER):
        text = (await wallet_history(by_hand, WalletParams(WALLET))).answer.text
    assert text.startswith("This wallet ") or text.startswith("Its funder ")
    assert f"This wallet {MARKED}" in text
    assert f"Its funder {FUNDER} {MARKED}" in text
    assert "scam" not in (await wallet_history(by_hand, WalletParams(WALLET))).answer.text


async def test_a_check_tells_it_of_who_is_behind_a_token(indexed: Context, built: Built) -> None:
    """The verdict stays what was seen."""
    token = CheckParams(built.tokens["curve"])
    plain, deployer = (await check(indexed, token)).answer, built.accounts[5]
    async with marked(indexed, deployer):
        result = (await check(indexed, token)).answer
    assert result.verdict.text == f"{plain.verdict.text} Its deployer {deployer} {MARKED}"
    assert (result.verdict.code, result.verdict.level) == (plain.verdict.code, plain.verdict.level)


async def test_only_whom_enough_people_mark_as_a_scam_is_found(by_hand: Context, made: MadeIndex) -> None:
    async with marked(by_hand, WALLET), marked(by_hand, NAMED, "bad"), by_hand.pool.acquire() as connection:
        assert await public_names.scams(connection, [WALLET, NAMED, FUNDER]) == {Address(WALLET): 4}
        assert await public_names.scams(connection, []) == {}
