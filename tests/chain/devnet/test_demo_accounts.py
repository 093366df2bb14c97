"""The demo's cast over the built chain: what it does it does once, and it is in nobody's way."""

import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from roundtrip.services.runtime.context import Context
from roundtrip.store.server import connections
from roundtrip.store.server.rows import as_bytes
from roundtrip_development.commands import demo_accounts
from roundtrip_development.commands.demo_accounts import ACTS, AGE_S, CAST, DemoStage
from roundtrip_development.devnet.demo.crowd import GIVERS, WINNERS, DemoCrowd, visitor
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built
from support.fixtures import context_for
from support.flagged import emptied_accounts
from support.holding_asked import copied
from support.keys import NOW_S
from support.wallet import calldata

BY_ITSELF = ("caught up", "join", "watch", "flag", "practise", "crowd", "deployer leaves", "mark")
"""Acts that need nobody who counts winners."""


@pytest.fixture
async def alone(rpc: SyncRpc, built: Built, database_url: str, indexed_url: str) -> AsyncIterator[Context]:
    """A context over the local chain and a database that nobody else has."""
    async with (
        copied(database_url, indexed_url) as url,
        connections.create_pool(url, min_size=1, max_size=4) as pool,
        context_for(rpc.url, built, pool) as found,
    ):
        await found.heads.refresh()
        async with pool.acquire() as connection:
            # The database that it copies may have accounts of tests that ran before.
            await emptied_accounts(connection)
        yield replace(found, now_s=lambda: NOW_S)


async def rows(ctx: Context) -> dict[str, list[Any]]:
    asked = {
        "mites": "SELECT designation, wallet, made_at, keys_made FROM accounts.account ORDER BY id",
        "follows": "SELECT * FROM accounts.follow ORDER BY account_id, wallet",
        "rules": "SELECT * FROM accounts.rule ORDER BY id",
        "flags": "SELECT * FROM accounts.flag ORDER BY id",
        "marks": "SELECT * FROM accounts.mark ORDER BY account_id, wallet",
        "trades": "SELECT * FROM accounts.practice_trade ORDER BY id",
    }
    return {name: [tuple(row) for row in await ctx.pool.fetch(sql)] for name, sql in asked.items()}


def held_by(rpc: SyncRpc, token: str, account: str) -> int:
    call = {"to": token, "data": calldata("balanceOf(address)", account)}
    return int(rpc.call("eth_call", call, "latest"), 16)


async def test_a_second_time_adds_nothing(
    alone: Context, rpc: SyncRpc, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_accounts, "ACTS", tuple(act for act in ACTS if act[0] in BY_ITSELF))
    await demo_accounts.run(alone, built, rpc.url)
    first, block = await rows(alone), rpc.call("eth_blockNumber")
    assert {name: len(found) for name, found in first.items()} == {
        "mites": 4, "follows": 8, "rules": 4, "flags": 1, "marks": 8, "trades": 4
    }  # fmt: skip
    assert {bytes(row[1]) for row in first["mites"]} == {as_bytes(actor_address(name)) for name in CAST}
    assert {row[2].timestamp() for row in first["mites"]} == {NOW_S - AGE_S}
    await demo_accounts.run(alone, built, rpc.url)
    assert await rows(alone) == first
    assert rpc.call("eth_blockNumber") == block


async def test_the_crowd_comes_out_of_many_purses_and_some_win(
    alone: Context, rpc: SyncRpc, built: Built
) -> None:
    crowd = DemoCrowd(rpc, built, threading.Event())
    assert not crowd.has_run()
    crowd.run_crowd()
    assert crowd.has_run()
    token = crowd.tokens.crowded.token
    held = [
        int(
            rpc.call("eth_call", {"to": token, "data": calldata("balanceOf(address)", visitor(n))}, "latest"),
            16,
        )
        for n in range(len(GIVERS))
    ]
    assert all(held)
    assert max(held[:WINNERS]) < min(held[WINNERS:])
    left, leaver = crowd.tokens.dumped.token, actor_address(crowd.tokens.dumper)
    assert held_by(rpc, left, leaver) > 0
    crowd.sell_deployers_tokens()
    assert held_by(rpc, left, leaver) == 0
    block = rpc.call("eth_blockNumber")
    crowd.sell_deployers_tokens()
    assert rpc.call("eth_blockNumber") == block


async def test_who_practises_has_a_purse_of_his_own_that_is_not_the_deployers(
    alone: Context, rpc: SyncRpc, built: Built
) -> None:
    crowded = DemoCrowd(rpc, built, threading.Event()).tokens.crowded.token
    of = (
        "SELECT address.address AS wallet, origin.funder_id, origin.funded_s FROM facts.origin AS origin"
        " JOIN facts.address AS address ON address.id = origin.wallet_id WHERE address.address = ANY($1)"
    )
    found = await alone.pool.fetch(of, [as_bytes(actor_address(name)) for name in CAST])
    purses = {row["funder_id"] for row in found}
    assert len(purses) == len(CAST)
    [deployer] = await alone.pool.fetch(
        "SELECT launch.deployer_id, origin.funder_id FROM facts.launch AS launch"
        " JOIN facts.address AS token ON token.id = launch.token_id"
        " JOIN facts.origin AS origin ON origin.wallet_id = launch.deployer_id WHERE token.address = $1",
        as_bytes(crowded),
    )
    assert purses.isdisjoint({deployer["funder_id"], deployer["deployer_id"]})


async def test_what_fails_is_logged_and_ends_it(
    alone: Context,
    rpc: SyncRpc,
    built: Built,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fails(stage: DemoStage) -> None:
        raise OSError("the node is gone")

    done: list[str] = []

    async def does(stage: DemoStage) -> None:
        done.append("after")

    monkeypatch.setattr(demo_accounts, "ACTS", (("breaks", fails), ("after", does)))
    await demo_accounts.run(alone, built, rpc.url)
    assert done == []
    assert "breaks" in capsys.readouterr().out


async def test_a_crowd_that_is_over_sends_nothing(rpc: SyncRpc, built: Built) -> None:
    over = threading.Event()
    over.set()
    block = rpc.call("eth_blockNumber")
    with pytest.raises(OSError, match="ends"):
        DemoCrowd(rpc, built, over).run_crowd()
    assert rpc.call("eth_blockNumber") == block
