"""Checks over a real index: real holders are sold as, and a launch's deployer is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import asyncpg
import msgspec
import pytest

from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import (
    DeployerRecord,
    Evidence,
    HolderSells,
    LaunchRecord,
    Missing,
    PoolLaunch,
    Sold,
)
from roundtrip.domain.check.flags import JudgedCheck, raised_flags
from roundtrip.domain.check.holder_sells import lost_bps
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.engine.check_run import run_check
from roundtrip.services.engine.holder_sells import UNREAD
from roundtrip.services.engine.token_check import prepare_inputs
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.answer_fields import at
from roundtrip.store.check.token_index import MAX_CAUGHT, keep_caught_holders, read_caught_holders
from roundtrip.store.server.rows import as_bytes
from roundtrip_development.devnet import deploy as chain
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.dialects import DialectNode, Kind
from support.fixtures import closed_database, context_for, no_database
from support.hex_columns import as_address

NET = """
SELECT address.address, sum(CASE WHEN buys THEN token_raw ELSE -token_raw END) AS net FROM facts.trade
JOIN facts.pool ON pool.id = pool_id JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address ON address.id = trader_id WHERE token.address = $1 GROUP BY address.address
"""
MAX_HELD = """
SELECT address.address FROM facts.launch JOIN facts.position USING (token_id)
JOIN facts.address ON address.id = token_id WHERE bought_raw > sold_raw AND generation = 2
GROUP BY address.address ORDER BY count(*) DESC, address.address LIMIT 1
"""


async def most_held(ctx: Context) -> Address:
    """A launch that more wallets hold than are sold as."""
    return as_address(await ctx.pool.fetchval(MAX_HELD))


async def deep(
    ctx: Context, token: str, node: RpcNode | None = None, holders: Sequence[str] | None = None
) -> tuple[Evidence, Meter]:
    """A deep check. ``holders``: as if the index had told of these."""
    meter, begin = Meter(), await prepare_inputs(ctx, Address(token), deep=True)
    if holders is not None:
        answer = replace(begin.indexed, holders=tuple(Address(one) for one in holders))
        begin = replace(begin, indexed=answer)
    return (await run_check(ctx.means(node), begin, meter)).evidence, meter


def sells(evidence: Evidence) -> HolderSells:
    assert isinstance(evidence.holder_sells, HolderSells)
    return evidence.holder_sells


def balance(rpc: SyncRpc, token: str, holder: str) -> int:
    data = "0x70a08231" + holder[2:].rjust(64, "0")
    return int(rpc.call("eth_call", {"to": token, "data": data}, "latest"), 16)


@pytest.mark.parametrize("key", ["curve", "curve_usdg", "graduated", "graduated_usdg", "first_graduated", ""])
async def test_real_holders_sell_their_own_tokens_in_the_same_third_trip(
    indexed: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    token = built.tokens[key] if key else await most_held(indexed)
    evidence, meter = await deep(indexed, token)
    known, judgement = sells(evidence), judge(evidence, POLICY)
    # Other accounts are tried as senders where a token has functions.
    assert meter.trips == 3 + (key == "first_graduated")
    rows = await indexed.pool.fetch(NET, as_bytes(token))
    held = {as_address(who) for who, net in rows if net > 0}
    launch = evidence.launch
    assert isinstance(launch, LaunchRecord | PoolLaunch)
    tried = {one.holder for one in known.tried}
    assert tried <= held - {launch.deployer}
    assert len(tried) == len(known.tried) > (0 if key else 6)
    for one in known.tried:
        assert one.held_raw == balance(rpc, token, one.holder)
        assert isinstance(one.outcome, Sold)
        assert one.outcome.planned_raw == min(one.held_raw, known.control.planned_raw)
        assert one.outcome.sold_raw == one.outcome.planned_raw
        lost = lost_bps(known.control, one.outcome)
        assert isinstance(lost, int)
        # Who sells as much gets as much; who sells less gets more a token, of a pool that his sale moves.
        assert lost <= 0
        assert lost == 0 or one.outcome.planned_raw < known.control.planned_raw
    assert f"{len(tried)} real holders can sell it as a new wallet can." in judgement.verdict.text
    plain = judge(replace(evidence, holder_sells=None), POLICY)
    assert (plain.verdict.code, plain.verdict.level) == (judgement.verdict.code, judgement.verdict.level)


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_they_sell_on_nodes_that_count_otherwise_too(
    indexed: Context, rpc: SyncRpc, built: Built, kind: Kind
) -> None:
    node = DialectNode(rpc.url, kind)
    async with node.running(), context_for(node.url, built, indexed.pool, dialect=None) as ctx:
        await ctx.heads.refresh()
        for key in ("curve", "graduated", "first_graduated"):
            evidence, _ = await deep(ctx, built.tokens[key])
            text = judge(evidence, POLICY).verdict.text
            assert "3 real holders can sell it as a new wallet can. It names no owner" in text
            assert "could not" not in text


async def test_at_most_twelve_are_sold_as_and_only_by_deep_checks(indexed: Context) -> None:
    token = await most_held(indexed)
    drawn = [(await prepare_inputs(indexed, token, deep=True)).indexed.holders for _ in "ab"]
    assert all(0 < len(holders) <= POLICY.drawn_holders for holders in drawn)
    evidence, _ = await deep(indexed, token)
    assert len(sells(evidence).tried) == min(sells(evidence).known, POLICY.most_holders)
    plain = await prepare_inputs(indexed, token)
    assert plain.indexed.holders == ()


async def test_who_traded_and_holds_nothing_fills_no_place(indexed: Context, built: Built) -> None:
    """In any third of the draw."""
    token = built.tokens["graduated"]
    holders = [one.holder for one in sells((await deep(indexed, token))[0]).tried]
    nobody = [f"0x{n:040x}" for n in range(0x5A00, 0x5A00 + POLICY.drawn_holders - len(holders))]
    for drawn in (nobody + holders, [*nobody[:20], *holders, *nobody[20:]], holders + nobody):
        evidence, _ = await deep(indexed, token, holders=drawn)
        assert {one.holder for one in sells(evidence).tried} == set(holders)
    evidence, _ = await deep(indexed, token, holders=nobody)
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "ok")
    assert f"Of {len(nobody)} wallets that bought more than they sold, none holds enough" in verdict.text


async def test_where_holders_were_caught_lately_every_check_asks_them_first(indexed: Context) -> None:
    """Until they sell again: then a plain check asks none."""
    token = await most_held(indexed)
    drawn = (await prepare_inputs(indexed, token, deep=True)).indexed.holders
    now = at(indexed.now_s())
    since = now - timedelta(seconds=POLICY.recalled_s)

    async def keep(holders: Sequence[Address], age_s: int) -> None:
        async with indexed.pool.acquire() as connection:
            await connection.execute("DELETE FROM facts.caught_holder")
            seen_at = now - timedelta(seconds=age_s)
            await keep_caught_holders(connection, token, holders, (), True, seen_at, seen_at)

    for holders, age_s, is_caught in (
        (drawn[-2:], POLICY.recalled_s + 60, False),
        (drawn[-1:], 60, False),
        (drawn[-2:], 60, True),
    ):
        await keep(holders, age_s)
        plain = await prepare_inputs(indexed, token)
        assert (plain.deep, bool(plain.indexed.holders)) == (is_caught, is_caught)
    holders_asked = (await prepare_inputs(indexed, token)).indexed.holders
    assert set(holders_asked[2:4]) == set(drawn[-2:])
    assert len(set(holders_asked)) == len(holders_asked) <= POLICY.drawn_holders
    await keep(drawn, 60)
    async with indexed.pool.acquire() as connection:
        first = await read_caught_holders(connection, token, since)
    asked = (await prepare_inputs(indexed, token)).indexed.holders
    assert set(first) <= set(asked[: 2 + MAX_CAUGHT])
    answer = (await check(indexed, CheckParams(token))).answer
    assert "real holders can sell it as a new wallet can." in answer.verdict.text
    # Of those that were tried none is caught any more.
    left = await indexed.pool.fetchval("SELECT count(*) FROM facts.caught_holder")
    assert left == max(0, len(drawn) - POLICY.most_holders)
    await keep((), 60)
    assert not (await prepare_inputs(indexed, token)).deep


async def test_a_plain_check_and_one_without_an_index_ask_no_holder(indexed: Context, built: Built) -> None:
    token = built.tokens["curve"]
    plain = await check(indexed, CheckParams(token))
    assert plain.meter is not None
    assert plain.meter.trips == 2
    assert "holder" not in plain.answer.verdict.text
    evidence, meter = await deep(replace(indexed, pool=no_database()), token)
    assert (evidence.holder_sells, evidence.deployer, meter.trips) == (None, None, 2)


async def test_holders_that_the_database_does_not_tell_leave_the_verdict_open(
    indexed: Context, built: Built
) -> None:
    for token in (built.tokens["graduated"], built.tokens["plain"]):
        evidence, _ = await deep(replace(indexed, pool=closed_database()), token)
        assert evidence.holder_sells == Missing("node", UNREAD)
        assert judge(evidence, POLICY).verdict.level == "unknown"
    never_sold, _ = await deep(replace(indexed, pool=closed_database()), built.tokens["owner_only_sell"])
    assert judge(never_sold, POLICY).verdict.code == "cannot_sell"


async def test_code_an_insider_and_an_empty_wallet_are_not_asked(
    indexed: Context, rpc: SyncRpc, built: Built
) -> None:
    token = built.tokens["curve"]
    first, *_ = {one.holder for one in sells((await deep(indexed, token))[0]).tried}
    evidence, _ = await deep(indexed, token)
    all_known = sells(evidence).tried
    assert isinstance(evidence.launch, LaunchRecord)
    nobody = Address("0x" + "5a" * 20)
    deployer = evidence.launch.deployer
    rpc.call("anvil_impersonateAccount", first)
    gift = chain.calldata("transfer(address,uint256)", deployer, balance(rpc, token, first) // 2)
    giver = chain.ContractDeployer(rpc, first)
    giver.receipt(giver.send(token, gift))
    await indexed.heads.refresh()
    assert balance(rpc, token, deployer) > 0
    asked = [deployer, evidence.launch.curve, nobody, first]
    evidence, _ = await deep(indexed, token, holders=asked)
    assert [one.holder for one in sells(evidence).tried] == [first]
    assert sells(evidence).known == 4
    for code in ("0x60006000fd", "0xef0100" + "77" * 20):
        rpc.call("anvil_setCode", first, code)
        rpc.call("evm_mine")
        await indexed.heads.refresh()
        evidence, _ = await deep(indexed, token)
        assert {one.holder for one in sells(evidence).tried} == {o.holder for o in all_known} - {first}


# --- a node that fails ------------------------------------------------------------------------------


def _text_of(call: RpcCall) -> str:
    return str(msgspec.json.decode(msgspec.json.encode(call.params)))


@dataclass(frozen=True)
class LossyNode:
    """Passes every request on but those of a kind, which are lost with all that is sent with them."""

    node: RpcNode
    lost: Callable[[str], bool]

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[msgspec.Raw | RpcError]:
        if any(self.lost(_text_of(call)) for call in calls):
            raise NodeFault("it took too long")
        return await self.node.batch(calls, meter, timeout_s, budgeted)

    async def batches(
        self, groups: Sequence[Sequence[RpcCall]], meter: Meter
    ) -> list[list[msgspec.Raw | RpcError] | NodeFault]:
        answer = await self.node.batches(groups, meter)
        return [
            NodeFault("it took too long") if any(self.lost(_text_of(call)) for call in calls) else answers
            for calls, answers in zip(groups, answer, strict=True)
        ]


def is_sell_of(holders: set[Address]) -> Callable[[str], bool]:
    return lambda params: any(f"'from': '{holder}'" in params for holder in holders)


@pytest.mark.parametrize("looking", [True, False], ids=["what they hold", "what they sell for"])
async def test_what_is_lost_of_holders_that_are_known_leaves_the_verdict_open(
    indexed: Context, built: Built, looking: bool
) -> None:
    token = built.tokens["graduated"]
    whole, _ = await deep(indexed, token)
    holders = {one.holder for one in sells(whole).tried}
    assert len(holders) == 3
    asks_code = f"['{min(holders)}', "
    lost = (lambda params: params.startswith(asks_code)) if looking else is_sell_of(holders)
    evidence, _ = await deep(indexed, token, LossyNode(indexed.node, lost))
    gap = Missing("node", NodeFault("it took too long").message)
    if looking:
        assert evidence.holder_sells == gap
    else:
        assert [one.outcome for one in sells(evidence).tried] == [gap] * 3
    found = judge(evidence, POLICY)
    assert (found.verdict.code, found.verdict.level, found.missing) == ("unproven", "unknown", gap)


async def test_of_one_holder_nothing_that_is_lost_decides(indexed: Context, built: Built) -> None:
    token = built.tokens["graduated"]
    whole, _ = await deep(indexed, token)
    (first, *_) = sells(whole).tried
    deaf = LossyNode(indexed.node, is_sell_of({first.holder}))
    evidence, _ = await deep(indexed, token, deaf, [first.holder])
    verdict = judge(evidence, POLICY).verdict
    assert (verdict.code, verdict.level) == ("ok", "warn")
    assert "We could not find out whether 1 real holder can sell it." in verdict.text


async def test_such_an_answer_is_shared_shortly_and_counts_for_nobody(indexed: Context, built: Built) -> None:
    token = built.tokens["graduated"]
    whole, _ = await deep(indexed, token)
    deaf = LossyNode(indexed.node, is_sell_of({one.holder for one in sells(whole).tried}))
    answered = await check(replace(indexed, node=deaf), CheckParams(token, "1"))
    assert answered.answer.verdict.code == "unproven"
    assert (answered.ttl_ms, answered.counted) == (POLICY.node_fault_ttl_ms, False)


# --- who launched it --------------------------------------------------------------------------------

LAUNCHES = """
SELECT token.address AS token, deployer.address AS deployer, generation,
    token_id IN (SELECT token_id FROM facts.launch_step WHERE step = 'pooled') AS up
FROM facts.launch JOIN facts.address AS token ON token.id = token_id
JOIN facts.address AS deployer ON deployer.id = deployer_id
"""
TRADED = """
SELECT coalesce(sum(token_raw) FILTER (WHERE buys), 0) AS bought,
    coalesce(sum(token_raw) FILTER (WHERE NOT buys), 0) AS sold
FROM facts.trade JOIN facts.pool ON pool.id = pool_id JOIN facts.address AS token ON token.id = pool.token_id
JOIN facts.address AS trader ON trader.id = trader_id WHERE token.address = $1 AND trader.address = $2
"""


async def slowly(pool: asyncpg.Pool) -> dict[Address, DeployerRecord | None]:
    """What is known of each launch's deployer, out of the raw rows."""
    rows = await pool.fetch(LAUNCHES)
    traded = {row["token"]: (await pool.fetch(TRADED, row["token"], row["deployer"]))[0] for row in rows}
    found: dict[Address, DeployerRecord | None] = {}
    for row in rows:
        own = [one for one in rows if one["deployer"] == row["deployer"] and one["generation"] == 2]
        sold_own = sum(traded[one["token"]]["sold"] > 0 and _half_gone(traded[one["token"]]) for one in own)
        here = traded[row["token"]]
        got = max(int(here["bought"]), int(here["sold"]))
        record = DeployerRecord(len(own), sum(one["up"] for one in own), sold_own, got, int(here["sold"]))
        found[as_address(row["token"])] = record if row["generation"] == 2 else None
    return found


def _half_gone(traded: asyncpg.Record) -> bool:
    return bool(2 * traded["sold"] >= traded["bought"])


def flagged(evidence: Evidence) -> set[str]:
    judgement: Judgement = judge(evidence, POLICY)
    return set(raised_flags(JudgedCheck(evidence, judgement, POLICY))) & {"serial_deployer", "deployer_sold"}


async def test_the_deployer_of_every_launch_is_told_and_flagged(indexed: Context) -> None:
    met: set[str] = set()
    for token, expected in (await slowly(indexed.pool)).items():
        begin, meter = await prepare_inputs(indexed, token), Meter()
        evidence = (await run_check(indexed.means(), begin, meter)).evidence
        assert evidence.deployer == expected, token
        if expected is None:
            assert flagged(evidence) == set()
            continue
        serial = expected.launches >= 5 and 5 * expected.graduated < expected.launches
        sold = expected.sold_raw > 0 and 2 * expected.sold_raw >= expected.got_raw
        flags = {name for name, up in (("serial_deployer", serial), ("deployer_sold", sold)) if up}
        assert flagged(evidence) == flags
        met |= flags
    assert met == {"serial_deployer", "deployer_sold"}


async def test_the_answer_has_the_deployer_as_an_object(indexed: Context, built: Built) -> None:
    answer = (await check(indexed, CheckParams(built.tokens["graduated"]))).answer
    assert answer.launchpad is not None
    result = answer.launchpad.deployer
    assert result is not None
    assert (result.launches, result.graduated, result.sold_own) == (13, 4, 0)


async def test_an_index_that_names_another_deployer_tells_nothing(indexed: Context, built: Built) -> None:
    token, meter = Address(built.tokens["graduated"]), Meter()
    begin = await prepare_inputs(indexed, token)
    other = replace(begin.indexed, deployer=Address("0x" + "77" * 20))
    evidence = (await run_check(indexed.means(), replace(begin, indexed=other), meter)).evidence
    assert begin.indexed.record is not None
    assert evidence.deployer is None
