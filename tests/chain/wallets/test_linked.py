"""Who is linked to whom on the local chain; and by hand whatever must not link anybody."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import WalletParams
from roundtrip.services.wallets.linked import LinkedWallets, linked_wallets
from roundtrip.store.index.origins import ArchiveSearch, keep_archive_search
from roundtrip.venues.entry_point import ENTRY_POINTS
from roundtrip_development.devnet.actors import FUNDER, SERIAL, SNIPERS
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built
from support.made_index import MadeIndex, number_address
from support.one_batch import OneBatchNode
from support.told_blocks import START_S

ASKED, KIN, GIVER, OTHER = (number_address(0xAAA000 + n) for n in range(4))
TOKENS = [number_address(0x70CE000 + n) for n in range(12)]


async def asked(ctx: Context, wallet: str) -> LinkedWallets:
    answered = await linked_wallets(ctx, WalletParams(wallet))
    assert answered.counted
    return answered.answer


async def side_by_side(
    made: MadeIndex, tokens: Sequence[str] = TOKENS[:4], apart: int = 1, wallets: Sequence[str] = (ASKED, KIN)
) -> None:
    """Each of the wallets bought each of the tokens, ``apart`` blocks after the one before."""
    for place, token in enumerate(tokens):
        for nth, wallet in enumerate(wallets):
            await made.trade(token, wallet, 20 + 40 * place + nth * apart, ZERO_ADDRESS)
            await made.position(wallet, token, buys=1)


def scores(found: LinkedWallets) -> dict[str, int]:
    return {one.address: one.score for one in found.linked}


# --- the local chain -------------------------------------------------------------------------------


async def test_snipers_of_one_funder_are_found_with_their_evidence(indexed: Context, built: Built) -> None:
    one, *others = map(actor_address, SNIPERS)
    found = await asked(indexed, one)
    assert found.funder is not None
    assert msgspec.to_builtins(found.funder) == {
        "address": actor_address(FUNDER), "walletsFunded": 3, "standing": "links",
    }  # fmt: skip
    assert [linked.address for linked in found.linked] == [*sorted(others), actor_address(FUNDER)]
    for linked in found.linked[:2]:
        money, tokens = linked.reasons
        assert (money.kind, money.funder, money.wallets_funded) == ("same_funder", actor_address(FUNDER), 3)
        assert money.seconds_apart is not None
        assert money.seconds_apart <= 3
        assert (tokens.kind, tokens.shared, tokens.of_tokens, tokens.other_tokens) == (
            "same_tokens",
            10,
            10,
            10,
        )
        assert len(tokens.tokens) == 5
        # 40 for a funder of three and 25 for seconds; the ten tokens, most of half a weight, make 66.
        assert linked.score == 88
    (money,) = found.linked[2].reasons
    assert (money.kind, money.funder, found.linked[2].score) == ("funded_by", actor_address(FUNDER), 70)
    best = found.linked[0]
    why = " ".join(reason.text for reason in best.reasons)
    assert found.text.startswith(
        "3 other wallets may be linked to it. The most likely to belong to the same person is "
        f"{best.address}, with a score of 88 of 100. Why: {why} This is a hint, not proof: an employer, a "
        "friend or a faucet also pays people, and anyone can buy what others buy."
    )
    assert found.tokens_compared == 10


async def test_shared_tokens_are_two_real_buys_some_blocks_apart(indexed: Context, rpc: SyncRpc) -> None:
    one, other, _ = map(actor_address, SNIPERS)
    found = await asked(indexed, one)
    (linked,) = [linked for linked in found.linked if linked.address == other]
    for shared in linked.reasons[1].tokens:
        own, theirs = (rpc.call("eth_getTransactionByHash", tx) for tx in (shared.tx, shared.other_tx))
        assert (own["from"], theirs["from"]) == (one, other)
        assert abs(int(own["blockNumber"], 16) - int(theirs["blockNumber"], 16)) == shared.blocks_apart
        logs = [rpc.call("eth_getTransactionReceipt", tx)["logs"] for tx in (shared.tx, shared.other_tx)]
        assert all(shared.token.address in {log["address"] for log in some} for some in logs)


async def test_a_funder_is_linked_to_whom_it_funded(indexed: Context) -> None:
    found = await asked(indexed, actor_address(FUNDER))
    snipers = {actor_address(name) for name in SNIPERS}
    funded = {linked.address: linked for linked in found.linked if linked.address in snipers}
    assert funded.keys() == snipers
    for linked in funded.values():
        assert [reason.kind for reason in linked.reasons] == ["funded"]
        assert (linked.score, linked.reasons[0].funder) == (70, actor_address(FUNDER))


async def test_the_chains_machinery_and_other_contracts_are_linked_to_nobody(
    indexed: Context, built: Built
) -> None:
    for wallet, words in (
        (built.contracts["weth"], "everyone uses"),
        (min(ENTRY_POINTS), "everyone uses"),
        (ZERO_ADDRESS, "everyone uses"),
        (built.tokens["plain"], "is a contract"),
        (number_address(0xDEAD00), "does not know this wallet"),
    ):
        found = await asked(indexed, wallet)
        assert (found.linked, found.funder if words != "is a contract" else None) == ((), None)
        assert words in found.text


async def test_a_young_index_does_not_speak_of_thirty_days(indexed: Context) -> None:
    async with indexed.pool.acquire() as connection:
        [(number, at_s)] = await connection.fetch("SELECT number, at_s FROM facts.cursor")
        await connection.execute("UPDATE facts.cursor SET start_number = $1", number)
        try:
            found = await asked(indexed, actor_address(SERIAL))
        finally:
            await connection.execute("UPDATE facts.cursor SET start_number = 0")
    since = f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"
    assert (
        f"We have followed the chain only since {since} UTC, and it bought nothing since then" in found.text
    )
    assert "30 days" not in found.text


async def test_who_bought_nothing_is_told_so(indexed: Context) -> None:
    found = await asked(indexed, actor_address(SERIAL))
    assert found.tokens_compared == 0
    assert "It bought nothing in the last 30 days" in found.text


async def test_an_address_that_is_none_is_refused(indexed: Context) -> None:
    with pytest.raises(CallerFault) as refused:
        await asked(indexed, "0x12")
    assert refused.value.code == "bad_address"


# --- money, by hand --------------------------------------------------------------------------------


async def test_money_that_came_within_minutes_says_more(by_hand: Context, made: MadeIndex) -> None:
    for wallet, at_s in ((ASKED, 0), (KIN, 500), (OTHER, 50_000)):
        await made.funded(wallet, GIVER, START_S + at_s)
    found = await asked(by_hand, ASKED)
    assert scores(found) == {GIVER: 70, KIN: 65, OTHER: 40}
    (reason,) = found.linked[1].reasons
    assert reason.seconds_apart == 500
    assert "8 minutes apart, as did 3 wallets in all." in reason.text


@pytest.mark.parametrize(("crowd", "expected"), [(498, {GIVER: 25, KIN: 40}), (499, {})])
async def test_an_exchange_links_nobody(
    by_hand: Context, made: MadeIndex, crowd: int, expected: dict[str, int]
) -> None:
    """Two, and so many others: of more than 500 it is one."""
    await made.funded(ASKED, GIVER)
    await made.funded(KIN, GIVER)
    await made.crowd(GIVER, crowd)
    found = await asked(by_hand, ASKED)
    assert scores(found) == expected
    assert found.funder is not None
    assert found.funder.standing == ("links" if expected else "exchange")
    assert ("probably an exchange, and not a link" in found.text) is (not expected)
    # Asked itself, it is linked to nobody at all.
    own = await asked(by_hand, GIVER)
    assert ("probably an exchange" in own.text) is (not expected)


@pytest.mark.parametrize(("code", "standing"), [("0x6001", "contract"), ("0xef0100" + "ab" * 20, "links")])
async def test_a_funder_that_is_a_contract_links_nobody(
    by_hand: Context, made: MadeIndex, rpc: SyncRpc, code: str, standing: str
) -> None:
    """A wallet that runs another's code is a wallet."""
    await made.funded(ASKED, GIVER)
    await made.funded(KIN, GIVER)
    rpc.call("anvil_setCode", GIVER, code)
    found = await asked(by_hand, ASKED)
    assert found.funder is not None
    assert found.funder.standing == standing
    assert set(scores(found)) == ({GIVER, KIN} if standing == "links" else set())


@pytest.mark.parametrize("which", ["router", "entry point"])
async def test_known_machinery_as_a_funder_links_nobody(
    by_hand: Context, made: MadeIndex, built: Built, which: str
) -> None:
    funder = min(ENTRY_POINTS) if which == "entry point" else built.contracts["multicall3"]
    await made.funded(ASKED, funder)
    await made.funded(KIN, funder)
    found = await asked(by_hand, ASKED)
    assert (scores(found), found.funder and found.funder.standing) == ({}, "machinery")


@pytest.mark.parametrize(
    ("code", "linked"), [("0x6001", False), ("0xef0100" + "ab" * 20, True), ("0x", True)]
)
async def test_a_contract_is_linked_to_nobody(
    by_hand: Context, made: MadeIndex, rpc: SyncRpc, code: str, linked: bool
) -> None:
    await made.funded(KIN, ASKED)
    rpc.call("anvil_setCode", KIN, code)
    assert (KIN in scores(await asked(by_hand, ASKED))) is linked
    rpc.call("anvil_setCode", KIN, "0x")
    rpc.call("anvil_setCode", ASKED, code)
    found = await asked(by_hand, ASKED)
    assert ("is a contract" in found.text, KIN in scores(found)) == (not linked, linked)


async def test_what_an_archive_told_of_the_funder_counts(by_hand: Context, made: MadeIndex) -> None:
    """It is older than what the sync saw; when it came is not known then."""
    await made.funded(ASKED, OTHER)
    await made.funded(KIN, GIVER)
    await keep_archive_search(made.connection, ASKED, ArchiveSearch(FirstSeen(1, 1, GIVER), 1))
    found = await asked(by_hand, ASKED)
    assert scores(found) == {GIVER: 70, KIN: 40}
    await keep_archive_search(
        made.connection, KIN, ArchiveSearch(FirstSeen(1, 1, number_address(0xFFF001)), 1)
    )
    unmet = await asked(by_hand, KIN)
    assert (unmet.linked, unmet.funder and unmet.funder.wallets_funded) == ((), 0)


# --- tokens, by hand -------------------------------------------------------------------------------


async def test_three_tokens_in_the_same_moments_link_and_two_do_not(
    by_hand: Context, made: MadeIndex
) -> None:
    await side_by_side(made, TOKENS[:2])
    assert scores(await asked(by_hand, ASKED)) == {}
    await made.trade(TOKENS[2], ASKED, 300, ZERO_ADDRESS)
    await made.trade(TOKENS[2], KIN, 301, ZERO_ADDRESS)
    await made.position(ASKED, TOKENS[2], buys=1)
    await made.position(KIN, TOKENS[2], buys=1)
    assert scores(await asked(by_hand, ASKED)) == {KIN: 48}


@pytest.mark.parametrize(("apart", "at_s", "linked"), [(10, 2, True), (11, 2, False), (5, 3, False)])
async def test_a_moment_is_ten_blocks_and_two_seconds(
    by_hand: Context, made: MadeIndex, apart: int, at_s: int, linked: bool
) -> None:
    for place, token in enumerate(TOKENS[:4]):
        number = 20 + 40 * place
        first = await made.trade(token, ASKED, number, ZERO_ADDRESS, at_s=START_S + number)
        second = await made.trade(token, KIN, number + apart, ZERO_ADDRESS, at_s=START_S + number + at_s)
        assert first != second
        await made.position(KIN, token, buys=1)
    found = await asked(by_hand, ASKED)
    assert (KIN in scores(found)) is linked
    if linked:
        assert {shared.blocks_apart for shared in found.linked[0].reasons[0].tokens} == {apart}


async def test_sells_in_the_same_moments_link_nobody(by_hand: Context, made: MadeIndex) -> None:
    for place, token in enumerate(TOKENS[:5]):
        await made.trade(token, ASKED, 20 + 40 * place, ZERO_ADDRESS)
        await made.trade(token, KIN, 21 + 40 * place, ZERO_ADDRESS, buys=False)
    assert scores(await asked(by_hand, ASKED)) == {}


async def test_launches_that_everybody_rushes_to_link_nobody(by_hand: Context, made: MadeIndex) -> None:
    """Forty wallets beside it each time."""
    crowd = [number_address(0xBBB000 + n) for n in range(40)]
    await side_by_side(made, TOKENS[:5], apart=0, wallets=[ASKED, *crowd])
    assert scores(await asked(by_hand, ASKED)) == {}


async def test_a_bot_that_buys_everything_is_linked_to_nobody(by_hand: Context, made: MadeIndex) -> None:
    await side_by_side(made, TOKENS[:5])
    assert scores(await asked(by_hand, ASKED)) == {KIN: 80}
    await made.many_positions(KIN, 500)
    assert scores(await asked(by_hand, ASKED)) == {}
    # Asked itself, it is linked to nobody who happens to stand beside it.
    for place in range(60):
        await made.trade(number_address(0x9000 + place), KIN, 400 + place, ZERO_ADDRESS)
    assert scores(await asked(by_hand, KIN)) == {}


async def test_an_exchange_beside_it_is_left_out(by_hand: Context, made: MadeIndex) -> None:
    await side_by_side(made, TOKENS[:5])
    await made.crowd(KIN, 501)
    assert scores(await asked(by_hand, ASKED)) == {}


async def test_at_most_twenty_are_listed_and_the_best_first(by_hand: Context, made: MadeIndex) -> None:
    """Forty that had their eth late, five that had it at once, and one that also bought the same."""
    await made.funded(ASKED, GIVER)
    late = [number_address(0xBBB000 + n) for n in range(40)]
    near = [number_address(0xCCC000 + n) for n in range(5)]
    for wallet in late:
        await made.funded(wallet, GIVER, START_S + 90_000)
    for wallet in (*near, KIN):
        await made.funded(wallet, GIVER, START_S + 9)
    await side_by_side(made)
    found = await asked(by_hand, ASKED)
    assert len(found.linked) == 20
    assert found.linked[0].address == KIN
    assert [reason.kind for reason in found.linked[0].reasons] == ["same_funder", "same_tokens"]
    assert set(near) <= {linked.address for linked in found.linked[:7]}
    assert [linked.score for linked in found.linked] == sorted(scores(found).values(), reverse=True)


# --- the node --------------------------------------------------------------------------------------


@dataclass(slots=True)
class CodelessNode(OneBatchNode):
    """A node that does not tell some addresses' code; all of them: it does not answer at all."""

    node: Any
    deaf_to: set[str] | None

    async def batch(
        self, calls: Sequence[RpcCall], meter: Meter | None = None, timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:  # fmt: skip
        if self.deaf_to is None:
            raise NodeFault("it took too long")
        answers: list[msgspec.Raw | RpcError] = await self.node.batch(calls)
        deaf = [bool(call.params) and call.params[0] in self.deaf_to for call in calls]
        return [RpcError(-32000, "no") if one else answer for one, answer in zip(deaf, answers, strict=True)]


@pytest.mark.parametrize("deaf_to", [None, {ASKED}, {GIVER}])
async def test_without_a_node_nobody_is_linked(
    by_hand: Context, made: MadeIndex, deaf_to: set[str] | None
) -> None:
    """Who is a contract is not known then; of the wallet and its funder it has to be."""
    await made.funded(ASKED, GIVER)
    with pytest.raises(NodeFault):
        await asked(replace(by_hand, node=CodelessNode(by_hand.node, deaf_to)), ASKED)


async def test_whose_code_is_not_known_is_left_out(by_hand: Context, made: MadeIndex) -> None:
    for wallet in (ASKED, KIN, OTHER):
        await made.funded(wallet, GIVER)
    found = await asked(replace(by_hand, node=CodelessNode(by_hand.node, {KIN})), ASKED)
    assert set(scores(found)) == {GIVER, OTHER}
