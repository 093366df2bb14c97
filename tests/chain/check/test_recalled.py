"""A wallet that could not sell in one check trades again in the next ones, and a proof shows it."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from chain.check.test_proof import at_a_new_block, changed, fetched, network_file, verified
from roundtrip.chain.blocks.environments import draw
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Crowd, CrowdTrade, Evidence, RefusedCall
from roundtrip.services.check.handler import check
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.check_answer import Check
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from truth.spring_trial import deploy_spring
from truth.springs import SpringCase, drawn

__all__ = ["network_file"]


async def deploy_unknown(ctx: Context, rpc: SyncRpc, built: Built, case: SpringCase) -> Address:
    """The token, of which no check keeps wallets: another test's had its address before the chain was put
    back, and the database has its checks."""
    token = Address(deploy_spring(rpc, built, case))
    await ctx.pool.execute("DELETE FROM facts.recalled_wallet WHERE token = $1", bytes.fromhex(token[2:]))
    await at_a_new_block(ctx, rpc)
    return token


async def check_with(ctx: Context, token: str, label: str) -> Check:
    """A check whose wallets are drawn by this label."""
    entropy = hashlib.sha256(label.encode()).digest()
    return (await check(replace(ctx, entropy=lambda: entropy), CheckParams(token))).answer


async def last_crowd(ctx: Context, token: str) -> list[CrowdTrade]:
    """What the crowd met in the newest check."""
    query = "SELECT document FROM facts.evidence WHERE token = $1 ORDER BY id DESC LIMIT 1"
    document = await ctx.pool.fetchval(query, bytes.fromhex(token[2:]))
    crowds = [venue.crowd for venue in canonical_json.load(Evidence, document).venues]
    return [trade for crowd in crowds if isinstance(crowd, Crowd) for trade in crowd.trades]


async def is_forgotten_by(pool: asyncpg.Pool, token: str, seconds: int) -> None:
    await pool.execute(
        "UPDATE facts.recalled_wallet SET seen_at = seen_at - $2 * interval '1 second' WHERE token = $1",
        bytes.fromhex(token[2:]),
        seconds,
    )


async def test_a_wallet_that_could_not_sell_is_tried_first_for_a_day(
    ctx: Context, rpc: SyncRpc, built: Built, tmp_path: Path, network_file: Path
) -> None:
    """One wallet in sixteen cannot sell. Once one was met, no later check depends on luck."""
    case = next(case for case in drawn(9, 29, ("address, 1 in 16",)) if not case.takes_bps)
    token = await deploy_unknown(ctx, rpc, built, case)
    labels = (f"first {number}" for number in range(40))
    codes = [(await check_with(ctx, token, next(labels))).verdict.code]
    while codes[-1] == "ok":
        codes.append((await check_with(ctx, token, next(labels))).verdict.code)
    assert codes[-1] == "cannot_sell"
    refused = {
        trade.wallet.wallet
        for trade in await last_crowd(ctx, token)
        if isinstance(trade.outcome, RefusedCall)
    }
    later = await check_with(ctx, token, "later")
    first = (await last_crowd(ctx, token))[0]
    assert later.verdict.code == "cannot_sell"
    assert first.wallet.wallet in refused
    assert isinstance(first.outcome, RefusedCall)

    (proof,) = await fetched(ctx, [token])
    assert proof["begun"]["recalled"]
    result = await verified(proof, tmp_path, network_file, rpc.url)
    assert (result.exit_code, result.output.count("yes")) == (0, 3), result.output
    lie = await verified(changed(proof, "begun.recalled.0.number", 1000), tmp_path, network_file, rpc.url)
    assert (lie.exit_code, "no check keeps" in lie.output) == (1, True), lie.output

    await is_forgotten_by(ctx.pool, token, 86_401)
    await check_with(ctx, token, "a day later")
    assert (await last_crowd(ctx, token))[0].wallet.wallet not in refused


async def test_a_main_wallet_that_could_not_sell_is_tried_first(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    token = built.tokens["blacklist_after_buy"]
    await at_a_new_block(ctx, rpc)
    await check_with(ctx, token, "main")
    rows = await ctx.pool.fetch(
        "SELECT number FROM facts.recalled_wallet WHERE token = $1", bytes.fromhex(token[2:])
    )
    assert {row["number"] for row in rows} == {-1}
    await check_with(ctx, token, "main again")
    assert isinstance((await last_crowd(ctx, token))[0].outcome, RefusedCall)


@pytest.mark.parametrize("key", ["plain", "usdg_pool", "max_transaction"])
async def test_what_every_wallet_meets_is_told_again(
    ctx: Context, rpc: SyncRpc, built: Built, key: str
) -> None:
    """Recalled wallets change no verdict of an honest token."""
    await at_a_new_block(ctx, rpc)
    verdicts = [(await check_with(ctx, built.tokens[key], f"{key} {n}")).verdict for n in range(3)]
    assert {(verdict.code, verdict.level) for verdict in verdicts} == {
        ("ok", "warn" if key == "max_transaction" else "ok")
    }
    # How many looked depends on how many are recalled.
    assert len({re.sub(r"\d+ of \d+ test wallets .*\)", "", verdict.text) for verdict in verdicts}) == 1


async def test_the_recalled_main_wallet_is_the_one_that_was_refused(
    ctx: Context, rpc: SyncRpc, built: Built
) -> None:
    """One address in two cannot sell: another one might."""
    case = next(case for case in drawn(9, 29, ("address, 1 in 2",)) if not case.takes_bps)
    token = await deploy_unknown(ctx, rpc, built, case)
    row, main = bytes.fromhex(token[2:]), None
    for number in range(20):
        await check_with(ctx, token, f"half {number}")
        kept = await ctx.pool.fetch(
            "SELECT seed FROM facts.recalled_wallet WHERE token = $1 AND number = -1", row
        )
        if kept:
            main = main_wallet(draw(kept[0]["seed"], ctx.heads.current(), ctx.policy)[0]).buyer
            break
    await ctx.pool.execute("DELETE FROM facts.recalled_wallet WHERE token = $1 AND number <> -1", row)
    await check_with(ctx, token, "half again")
    met = {trade.wallet.wallet: trade.outcome for trade in await last_crowd(ctx, token)}
    assert main is not None
    assert isinstance(met[main], RefusedCall)
