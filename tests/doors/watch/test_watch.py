"""Follows and rules through both doors that tools have, by accounts with a real key."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from roundtrip.domain.accounts import keys
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.watch import happenings, watches
from roundtrip.store.watch.happenings import ReplayResult
from roundtrip_development.devnet.actors import SNIPERS
from roundtrip_development.devnet.trading import actor_address
from support.clocks import Clock
from support.doors import over_mcp_client
from support.keys import NOW_S, random_context
from support.serving import service
from support.watching import SETTINGS, STRANGER, Caller, a_launch, caller, draft, operation, put, sent_by

SNIPER = actor_address(SNIPERS[0])
MADE = "2025-10-09T08:53:20Z"
TOOLS = ("follow_wallet", "unfollow_wallet", "list_rules", "create_rule", "test_rule", "delete_rule", "inbox")


@pytest.fixture
async def me(indexed: Context) -> AsyncIterator[Caller]:
    ctx = random_context(indexed, Clock())
    async with service(ctx, SETTINGS) as url:
        yield await caller(ctx, url)


# --- doors -----------------------------------------------------------------------------------------


def test_which_need_a_key_write_and_count() -> None:
    rows = {name: operation(name) for name in TOOLS}
    assert all(row.key and row.on_mcp and row.path is None for row in rows.values())
    writes = {name for name, row in rows.items() if row.writes}
    assert writes == {"follow_wallet", "unfollow_wallet", "create_rule", "delete_rule"}
    assert {name for name, row in rows.items() if row.destroys} == {"unfollow_wallet", "delete_rule"}
    assert {name for name, row in rows.items() if row.counts == "minute"} == {"delete_rule", "inbox"}
    assert {name for name, row in rows.items() if row.counts == "day"} == set(TOOLS) - {
        "delete_rule",
        "inbox",
    }


async def test_every_tool_answers_the_same_at_both_doors(me: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*given: object) -> ReplayResult:
        return ReplayResult(0, False, [])

    monkeypatch.setattr(happenings, "replay_rule", nothing)
    await me.ask("follow_wallet", address=SNIPER)
    made = (await me.ask("create_rule", rule="any selling"))["id"]
    asked: dict[str, dict[str, Any]] = {
        "follow_wallet": {"address": SNIPER, "name": "Whale1"},
        "list_rules": {},
        "create_rule": {"rule": "any buying over 1 eth"},
        "test_rule": {"rule": "any buying over 1 eth"},
        "inbox": {},
    }
    for name, arguments in asked.items():
        # The official client checks the answer against the schema that was listed.
        by_client = await over_mcp_client(me.url, operation(name), arguments, me.key)
        assert by_client.answer == await me.ask(name, **arguments), name
        assert by_client.answer is not None
    for name, arguments in (("delete_rule", {"id": made}), ("unfollow_wallet", {"address": SNIPER})):
        came = await over_mcp_client(me.url, operation(name), arguments, me.key)
        assert came.answer is not None, came.code


@pytest.mark.parametrize("name", TOOLS)
async def test_a_dead_key_is_one(me: Caller, name: str) -> None:
    dead = replace(me, key=keys.format_key(bytes(32)))
    assert (await dead.came(name)).code == "bad_key"


# --- follows ---------------------------------------------------------------------------------------


async def test_a_wallet_is_followed_renamed_and_let_go(me: Caller) -> None:
    head = await me.ctx.pool.fetchval("SELECT number FROM facts.cursor")
    answer = await me.ask("follow_wallet", address=SNIPER.upper().replace("0X", "0x"))
    assert answer == {
        "text": f"You follow {SNIPER}. Its buys, sells, launches and large removals after block {head:,} "
        "go to your inbox and your channels. You follow 1 wallet now; 200 are possible.",
        "address": SNIPER,
        "name": None,
        "follows": 1,
        "fromBlock": head,
    }
    named = await me.ask("follow_wallet", address=SNIPER, name="Whale1")
    assert (named["name"], named["follows"]) == ("Whale1", 1)
    assert f'You follow {SNIPER}, called "Whale1".' in named["text"]
    # Not given again, the name stays.
    assert (await me.ask("follow_wallet", address=SNIPER))["name"] == "Whale1"
    assert (await me.ask("follow_wallet", address=SNIPER, name="W2"))["name"] == "W2"
    await me.ask("follow_wallet", address=STRANGER)
    assert (await me.ask("list_rules"))["follows"] == [
        {"address": SNIPER, "name": "W2", "since": MADE},
        {"address": STRANGER, "name": None, "since": MADE},
    ]
    assert await me.ask("unfollow_wallet", address=SNIPER) == {
        "text": f"You no longer follow {SNIPER}. You follow 1 wallet now; 200 are possible.",
        "address": SNIPER,
        "wasFollowed": True,
        "follows": 1,
    }
    again = await me.ask("unfollow_wallet", address=SNIPER)
    assert (again["wasFollowed"], again["follows"]) == (False, 1)
    assert again["text"].startswith(f"You did not follow {SNIPER}.")
    assert [one["address"] for one in (await me.ask("list_rules"))["follows"]] == [STRANGER]


async def test_the_head_counts_where_the_index_is_behind(me: Caller) -> None:
    head = me.ctx.heads.last_number()
    await me.ctx.pool.execute("UPDATE facts.cursor SET number = number - 1")
    try:
        assert (await me.ask("follow_wallet", address=SNIPER))["fromBlock"] == head
        assert (await me.ask("create_rule", rule="any buying"))["fromBlock"] == head
    finally:
        await me.ctx.pool.execute("UPDATE facts.cursor SET number = number + 1")


@pytest.mark.parametrize("address", ["0x12", "0x" + "g" * 40, "0X" + "1" * 40, "0x" + "1" * 40 + "\n", ""])
async def test_what_is_no_address(me: Caller, address: str) -> None:
    for name in ("follow_wallet", "unfollow_wallet"):
        assert (await me.came(name, address=address)).code == "bad_address"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"address": None},
        {"address": 5},
        {"address": [SNIPER]},
        {"address": SNIPER, "x": 1},
        *(
            {"address": SNIPER, "name": name}
            for name in ("a b", "x" * 25, "ünï", "a\n", "\u0661", "a\u200bb", "<b>", 5, ["a"])
        ),
    ],
)
async def test_what_is_no_follow(me: Caller, arguments: dict[str, Any]) -> None:
    assert (await me.came("follow_wallet", **arguments)).code == "bad_input"
    assert (await me.ask("list_rules"))["follows"] == []


async def test_the_name_may_be_as_long_as_the_table_says(me: Caller) -> None:
    assert (await me.ask("follow_wallet", address=SNIPER, name="x" * 24))["name"] == "x" * 24


async def test_follows_end_at_their_limit_and_renaming_still_works(me: Caller) -> None:
    wallets = [f"0x{number:040x}" for number in range(1, 201)]
    now = datetime.fromtimestamp(NOW_S, UTC)
    async with me.ctx.pool.acquire() as connection, connection.transaction():
        for wallet in wallets[:199]:
            await watches.add_follow(connection, me.account_id, Address(wallet), "", 1, now)
    came = await asyncio.gather(*(me.came("follow_wallet", address=f"0x{n:040x}") for n in range(300, 304)))
    assert sorted(str(one.code) for one in came) == ["None", "bad_input", "bad_input", "bad_input"]
    error = await me.error("follow_wallet", address=SNIPER)
    assert error == "bad_input: You follow 200 wallets, the maximum: unfollow_wallet one of them first."
    renamed = await me.ask("follow_wallet", address=wallets[0], name="First")
    assert (renamed["name"], renamed["follows"]) == ("First", 200)
    await me.ask("unfollow_wallet", address=wallets[0])
    assert (await me.ask("follow_wallet", address=SNIPER))["follows"] == 200


# --- rules -----------------------------------------------------------------------------------------


async def test_a_rule_stands_is_given_again_and_is_dropped(me: Caller) -> None:
    head = await me.ctx.pool.fetchval("SELECT number FROM facts.cursor")
    made = await me.ask("create_rule", rule="  ANY   buying over 1.50 ETH ")
    assert made == {
        "text": f"Rule {made['id']} is set. After block {head:,} you get an alert when any wallet "
        "buys a token for more than 1.5 eth.",
        "id": made["id"],
        "rule": "any buying over 1.5 eth",
        "wallet": None,
        "hits": 0,
        "fromBlock": head,
        "madeAt": MADE,
    }
    assert await me.ask("create_rule", rule=made["rule"]) == made
    await me.ctx.pool.execute("UPDATE accounts.rule SET hits = 7 WHERE id = $1", made["id"])
    listed = await me.ask("list_rules")
    assert listed == {
        "text": "You have 1 rule with 7 hits so far and follow 0 wallets. 50 rules and 200 follows are "
        "possible.",
        "rules": [{**{name: value for name, value in made.items() if name != "text"}, "hits": 7}],
        "follows": [],
    }
    dropped = await me.ask("delete_rule", id=made["id"])
    assert dropped == {"text": f"Rule {made['id']} is deleted: it raises no more alerts.", "id": made["id"]}
    assert (await me.ask("list_rules"))["rules"] == []
    assert (await me.came("delete_rule", id=made["id"])).code == "bad_input"
    assert (await me.ask("create_rule", rule=made["rule"]))["id"] > made["id"]


async def test_who_deployed_and_who_created_is_looked_up(me: Caller) -> None:
    token, deployer, sender = await a_launch(me)
    answer = await me.ask("create_rule", rule=f"deployer:{token.upper().replace('0X', '0x')} selling")
    assert (answer["wallet"], answer["rule"]) == (deployer, f"deployer:{token} selling")
    assert f"when {deployer}, the deployer of {token}, sells a token." in answer["text"]
    answer = await me.ask("create_rule", rule=f"creator:{token} buying over 5% on {token}")
    assert (answer["wallet"], answer["rule"]) == (sender, f"creator:{token} buying over 5 % on {token}")
    assert (await me.ask("create_rule", rule=f"{SNIPER} launching"))["wallet"] == SNIPER
    assert [one["wallet"] for one in (await me.ask("list_rules"))["rules"]] == [deployer, sender, SNIPER]


async def test_who_deployed_need_not_be_who_created(me: Caller) -> None:
    token, deployer, _ = await a_launch(me)
    assert deployer != SNIPER
    async with sent_by(me, token, SNIPER):
        for who, wallet in (("deployer", deployer), ("creator", SNIPER)):
            made = await me.ask("create_rule", rule=f"{who}:{token} selling")
            assert made["wallet"] == wallet
            assert made["wallet"] == (await me.ask("test_rule", rule=f"{who}:{token} selling"))["wallet"]


async def test_a_token_that_no_launchpad_launched(me: Caller) -> None:
    for rule in (f"deployer:{STRANGER} selling", f"creator:{STRANGER} selling", f"any moving on {STRANGER}"):
        for name in ("create_rule", "test_rule"):
            error = await me.error(name, rule=rule)
            assert error.startswith(f"bad_input: No launchpad launched {STRANGER}. "), error
    answer = await me.ask("create_rule", rule=f"any buying on {STRANGER}")
    assert f"We have no record of {STRANGER} yet: check that the address is right." in answer["text"]
    token, *_ = await a_launch(me)
    for rule in ("any moving", f"any moving over 1 % on {token}", f"any buying on {token}"):
        assert "We have no record" not in (await me.ask("create_rule", rule=rule))["text"]


async def test_while_older_launches_are_read_nobody_is_told_that_there_is_none(me: Caller) -> None:
    await me.ctx.pool.execute("UPDATE facts.cursor SET start_number = 5, older_number = 4")
    try:
        error = await me.error("create_rule", rule=f"deployer:{STRANGER} selling")
    finally:
        await me.ctx.pool.execute("UPDATE facts.cursor SET start_number = 0, older_number = 0")
    assert error.startswith(f"busy: No launch of {STRANGER} is known yet: ")
    assert (await me.ask("list_rules"))["rules"] == []


async def test_who_sent_a_launch_before_the_index_is_not_known(me: Caller) -> None:
    token, deployer, _ = await a_launch(me)
    async with sent_by(me, token, "0x" + "0" * 40):
        error = await me.error("create_rule", rule=f"creator:{token} selling")
        assert (await me.ask("create_rule", rule=f"deployer:{token} selling"))["wallet"] == deployer
    assert error == (
        f"bad_input: The creator of {token} is unknown: its launch is older than the index. "
        f"Its deployer is known: use deployer:{token} selling"
    )


async def test_a_token_that_is_there_cannot_be_launched_again(me: Caller) -> None:
    token, deployer, _ = await a_launch(me)
    for who in ("any", deployer, f"deployer:{token}", "follow"):
        error = await me.error("create_rule", rule=f"{who} launching over 1 eth on {token}")
        assert error == (
            f"bad_input: The token {token} exists, so nobody can launch it. For new tokens leave out the "
            f"token: {who} launching over 1 eth. For this one use another verb: any selling on {token}"
        )
    assert (await me.ask("list_rules"))["rules"] == []
    # A replay looks back, and an address may be known before its launch.
    assert (await me.ask("test_rule", rule=f"any launching on {token}"))[
        "rule"
    ] == f"any launching on {token}"
    made = await me.ask("create_rule", rule=f"any launching on {STRANGER}")
    assert made["rule"] == f"any launching on {STRANGER}"
    assert [one["id"] for one in (await me.ask("list_rules"))["rules"]] == [made["id"]]


async def test_a_rule_about_the_followed_says_when_there_are_none(me: Caller) -> None:
    answer = await me.ask("create_rule", rule="follow buying over 100 usd")
    assert "when a wallet that you follow buys a token for more than 100 usd. You follow no" in answer["text"]
    await me.ask("follow_wallet", address=SNIPER)
    again = await me.ask("create_rule", rule="follow buying over 100 usd")
    assert (again["id"], "You follow no" in again["text"]) == (answer["id"], False)


NO_RULES: list[object] = [
    "", " ", "any", "any buying over", "any buying over NaN eth", "any buying over Infinity eth",
    "any buying over 1e3 eth", "any buying over -1 eth", "any buying over 1 btc", "x" * 201,
    "any buying over " + "9" * 150 + " eth", "any buying over \u0661 eth", "\u0430ny buying",
    "any buy\u200bing", "any\x00 buying", "any buying'; DROP TABLE accounts.rule; --",
    "any launching over 5 %", "any buying over 5 % on 0x12", "\U0001f680", "any buying any selling",
    "0x" + "1" * 41 + " buying", None, 5, ["any buying"], {"rule": "any buying"},
]  # fmt: skip


@pytest.mark.parametrize("name", ["create_rule", "test_rule"])
async def test_what_is_no_rule(me: Caller, name: str) -> None:
    for rule in NO_RULES:
        assert (await me.error(name, rule=rule)).startswith("bad_input: "), rule
    assert (await me.ask("list_rules"))["rules"] == []


async def test_numbers_that_are_none(me: Caller) -> None:
    for id_ in (0, -1, 10**18, 2**63 - 1, 2**63, 10**30, 1.5, "1", None, True, [1], 1e300):
        assert (await me.error("delete_rule", id=id_)).startswith("bad_input: "), id_
    for number in (b"NaN", b"Infinity", b"1e999", b"-0.5", b"9" * 5000):
        body = (
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"delete_rule",'
            b'"arguments":{"id":' + number + b"}}}"
        )
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{me.url}/mcp", data=body, headers={"x-api-key": me.key}) as response,
        ):
            answer = await response.json()
        assert "error" in answer or answer["result"]["isError"], number
        assert response.status < 500


async def test_a_whole_number_may_have_a_point(me: Caller) -> None:
    made = (await me.ask("create_rule", rule="any buying"))["id"]
    assert (await me.ask("delete_rule", id=float(made)))["id"] == made


async def test_nobody_reaches_the_rules_follows_and_alerts_of_another(me: Caller) -> None:
    other = await caller(me.ctx, me.url)
    made = (await me.ask("create_rule", rule="any buying"))["id"]
    await me.ask("follow_wallet", address=SNIPER, name="Mine")
    await put(me, draft(me))
    assert (await other.came("delete_rule", id=made)).code == "bad_input"
    assert (await other.ask("unfollow_wallet", address=SNIPER))["wasFollowed"] is False
    listed = await other.ask("list_rules")
    assert (listed["rules"], listed["follows"], (await other.ask("inbox"))["total"]) == ([], [], 0)
    assert (await other.ask("create_rule", rule="any buying"))["id"] != made
    mine = await me.ask("list_rules")
    assert ([one["id"] for one in mine["rules"]], len(mine["follows"])) == ([made], 1)


async def test_of_many_rules_at_once_no_more_stand_than_may(me: Caller) -> None:
    for number in range(1, 48):
        await me.ask("create_rule", rule=f"any buying over {number} eth")
    asked = [f"any selling over {number} eth" for number in range(1, 9)]
    came = await asyncio.gather(*(me.came("create_rule", rule=rule) for rule in asked))
    assert sorted(str(one.code) for one in came) == ["None"] * 3 + ["bad_input"] * 5
    assert len((await me.ask("list_rules"))["rules"]) == 50
    error = await me.error("create_rule", rule="any launching")
    assert error == "bad_input: You have 50 rules, the maximum: delete_rule one of them first."
    # One that stands is none more.
    again = await me.ask("create_rule", rule="any buying over 1 eth")
    await me.ask("delete_rule", id=again["id"])
    assert (await me.ask("create_rule", rule="any launching"))["hits"] == 0


async def test_the_same_rule_at_once_stands_once(me: Caller) -> None:
    answers = await asyncio.gather(*(me.ask("create_rule", rule="any draining over 50 %") for _ in range(6)))
    assert len({one["id"] for one in answers}) == 1
    assert len((await me.ask("list_rules"))["rules"]) == 1
