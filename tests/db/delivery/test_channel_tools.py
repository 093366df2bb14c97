"""Setting, listing and removing channels over a real database, and chats that start the Telegram bot."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.channels.post import PostReply
from roundtrip.channels.secrets import Seal, Unsealable
from roundtrip.channels.targets import Target
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.watch.alerts import MAX_CHANNELS
from roundtrip.services.delivery.channels import ATTEMPTS_OF_ACCOUNT, ATTEMPTS_OF_HOST
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import CLOSED
from roundtrip.store.delivery import channels
from roundtrip.store.delivery.channels import NewChannel
from roundtrip.store.server import connections
from support.channels import NO_ANSWER, NOW_S, OK, WAIT_S, ChannelStreet, answered
from support.paying import answer_of

TOOLS = {one.name: one for one in OPERATIONS}
DISCORD = "https://discord.com/api/webhooks/1234567890/AbC-secret_token"
WINDOW = 600.0


@pytest.fixture
async def street(url: str) -> AsyncIterator[ChannelStreet]:
    async with connections.create_pool(url, min_size=1, max_size=8, command_timeout=5) as pool:
        await pool.execute("TRUNCATE jobs.job; TRUNCATE accounts.channel_attempt")
        yield ChannelStreet(pool)


async def set_to(street: ChannelStreet, account: Account, url: str) -> dict[str, Any]:
    return await answer_of(street.ctx, "set_webhook", account, url=url)


async def refused(street: ChannelStreet, name: str, account: Account, /, **given: Any) -> RoundtripError:
    with pytest.raises(RoundtripError) as caught:
        await answer_of(street.ctx, name, account, **given)
    return caught.value


async def listed(street: ChannelStreet, account: Account) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await answer_of(street.ctx, "list_channels", account))["channels"]
    return found


async def attempts(street: ChannelStreet) -> int:
    count: int = await street.pool.fetchval("SELECT count(*) FROM accounts.channel_attempt")
    return count


def test_the_rows_of_the_table() -> None:
    rows = [TOOLS[name] for name in ("list_channels", "set_webhook", "remove_channel")]
    assert [(row.key, row.writes, row.counts, row.path) for row in rows] == [
        (True, False, "day", None),
        (True, True, "day", None),
        (True, True, "minute", None),
    ]
    assert [(row.destroys, row.repeatable) for row in rows[1:]] == [(False, False), (True, True)]


# --- setting ---------------------------------------------------------------------------------------


async def test_a_webhook_is_tested_and_then_kept(street: ChannelStreet) -> None:
    account = await street.account()
    answer = await set_to(street, account, "https://A.example/alerts?x=1")
    (test,) = street.servers.sent
    assert test.to.url == "https://a.example/alerts?x=1"
    assert (test.said["kind"], test.said["mite"]) == ("test", account.designation)
    assert [(one["kind"], one["id"]) for one in test.said["rows"]] == [("test", 0)]
    channel = answer["channel"]
    assert (channel["kind"], channel["target"], channel["state"]) == (
        "webhook",
        "https://a.example/alerts…",
        "live",
    )
    assert answer["shownOnce"] is True
    assert answer["replaced"] is False
    assert answer["secret"].startswith("whsec_")
    assert await listed(street, account) == [channel]
    # The secret is what deliveries are signed with, and nothing of it is in the database.
    row = await street.pool.fetchrow("SELECT * FROM accounts.channel WHERE id = $1", channel["id"])
    assert row is not None
    assert Seal(street.key).unseal(row["secret"]) == answer["secret"]
    assert answer["secret"][6:] not in repr(dict(row))
    # Nor of the url more than its owner is shown: it may be a secret, too.
    assert "x=1" not in repr(dict(row))
    assert Seal(street.key).unseal(row["target"]) == "https://a.example/alerts?x=1"
    again = await set_to(street, account, "https://a.example/alerts?x=1")
    assert (again["replaced"], again["channel"]["id"]) == (True, channel["id"])
    other = await set_to(street, account, "https://a.example/alerts?x=2")
    assert (other["replaced"], other["channel"]["target"]) == (False, channel["target"])
    assert answer["secret"] not in msgspec.json.encode(await listed(street, account)).decode()


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://a.example", "https://a.example/"),
        ("https://a.example:8443/0123456789a", "https://a.example:8443/0123456789a"),
        ("https://a.example/0123456789ab", "https://a.example/0123456789a…"),
        ("https://a.example/?token=x", "https://a.example/…"),
    ],
)
async def test_of_a_url_its_beginning_is_shown(street: ChannelStreet, given: str, shown: str) -> None:
    assert (await set_to(street, await street.account(), given))["channel"]["target"] == shown


@pytest.mark.parametrize(
    ("reply", "said"),
    [(answered(500), "answered 500"), (answered(301), "answered 301"), (NO_ANSWER, "no answer within 10 s")],
)
async def test_where_the_test_does_not_arrive_nothing_is_kept(
    street: ChannelStreet, reply: Any, said: str
) -> None:
    account = await street.account()
    street.servers.otherwise = reply
    error = await refused(street, "set_webhook", account, url="https://a.example/x")
    assert (error.code, said in error.message) == ("bad_input", True)
    assert await listed(street, account) == []
    assert len(street.servers.sent) == 1


@pytest.mark.parametrize(
    "wrong",
    ["http://a.example/", "https://127.0.0.1/", "https://u:p@a.example/", "ftp://a.example/", "x", ""],
)
async def test_what_may_not_be_sent_to_is_refused_before_anything_is_sent(
    street: ChannelStreet, wrong: str
) -> None:
    account = await street.account()
    assert (await refused(street, "set_webhook", account, url=wrong)).code == "bad_input"
    assert street.servers.sent == []
    assert await attempts(street) == 0


async def test_a_url_has_three_hundred_characters_at_most(street: ChannelStreet) -> None:
    account = await street.account()
    base = "https://a.example/"
    await set_to(street, account, base + "x" * (300 - len(base)))
    assert (
        await refused(street, "set_webhook", account, url=base + "x" * (301 - len(base)))
    ).code == "bad_input"


async def test_a_webhook_of_discord_is_a_channel_of_its_own_kind(street: ChannelStreet) -> None:
    account = await street.account()
    answer = await set_to(street, account, DISCORD)
    assert (answer["secret"], answer["shownOnce"]) == (None, False)
    assert (answer["channel"]["kind"], answer["channel"]["target"]) == (
        "discord",
        "discord.com/api/webhooks/1234567890",
    )
    assert "webhook-id" not in street.servers.sent[0].headers
    row = await street.pool.fetchrow("SELECT * FROM accounts.channel WHERE id = $1", answer["channel"]["id"])
    assert row is not None
    assert "secret_token" not in repr(dict(row)) + repr(await listed(street, account))
    await street.alert(account, "it buys")
    await street.run()
    assert street.servers.sent[1].to.url == DISCORD
    assert "it buys" in street.servers.sent[1].said["content"]


async def test_a_webhook_that_discord_no_longer_knows_is_removed(street: ChannelStreet) -> None:
    account = await street.account()
    answer = await set_to(street, account, DISCORD)
    street.servers.otherwise = PostReply(404, None, None, 3, b'{"code": 10015}')
    await street.alert(account, "it buys")
    await street.run()
    assert (await street.channel(answer["channel"]["id"])).state == "removed"


async def test_the_same_url_again_replaces_the_secret(street: ChannelStreet) -> None:
    account = await street.account()
    first = await set_to(street, account, "https://a.example/x")
    again = await set_to(street, account, "https://a.example/x")
    assert again["channel"]["id"] == first["channel"]["id"]
    assert again["replaced"] is True
    assert again["secret"] != first["secret"]
    assert len(await listed(street, account)) == 1
    sealed = await street.pool.fetchval(
        "SELECT secret FROM accounts.channel WHERE id = $1", first["channel"]["id"]
    )
    assert Seal(street.key).unseal(sealed) == again["secret"]


async def test_set_again_a_channel_that_fails_is_live_and_what_waited_goes_at_once(
    street: ChannelStreet,
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.otherwise = answered(500)
    await street.alert(account, "one")
    await street.run()
    street.servers.otherwise = OK
    await set_to(street, account, "https://a.example/alerts")
    found = await street.channel(channel_id)
    assert (found.state, found.failures, found.rests_until, found.last_error) == ("live", 0, None, None)
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]


async def test_set_again_a_channel_that_is_off_is_live(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    await street.pool.execute("UPDATE accounts.channel SET state = 'off' WHERE id = $1", channel_id)
    answer = await set_to(street, account, "https://a.example/alerts")
    assert (answer["channel"]["id"], answer["channel"]["state"]) == (channel_id, "live")
    await street.alert(account, "one")
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]


async def test_an_account_has_five_channels_whoever_comes_at_once(street: ChannelStreet) -> None:
    account = await street.account()
    for n in range(MAX_CHANNELS - 1):
        await street.webhook(account, f"n{n}.example")
    came = await asyncio.gather(
        *(set_to(street, account, f"https://new{n}.example/") for n in range(3)), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in came) == ["CallerFault", "CallerFault", "dict"]
    assert len(await listed(street, account)) == MAX_CHANNELS
    sent = len(street.servers.sent)
    error = await refused(street, "set_webhook", account, url="https://one-more.example/")
    assert error.code == "bad_input"
    assert len(street.servers.sent) == sent
    # One that is there may be set again.
    assert (await set_to(street, account, "https://n0.example/alerts"))["replaced"] is True


async def test_a_channel_that_another_is_just_making_is_counted(street: ChannelStreet) -> None:
    account = await street.account()
    for n in range(MAX_CHANNELS - 1):
        await street.webhook(account, f"n{n}.example")
    street.servers.hangs.add("late.example")
    late = asyncio.create_task(set_to(street, account, "https://late.example/"))
    async with asyncio.timeout(WAIT_S), street.pool.acquire() as other:
        await street.servers.came.wait()
        async with other.transaction():
            await channels.lock_account(other, account.id)
            await channels.add(other, account.id, NewChannel("telegram", b"77", "Ann", None), street.now())
            street.servers.go.set()
            while not late.done() and not await other.fetchval(  # noqa: ASYNC110
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
            ):
                await asyncio.sleep(0)
        with pytest.raises(RoundtripError, match="already have 5 channels"):
            await late
    assert len(await listed(street, account)) == MAX_CHANNELS


async def test_an_account_may_try_so_many_targets_in_ten_minutes(street: ChannelStreet) -> None:
    account, other = await street.account(), await street.account()
    street.servers.otherwise = answered(500)
    for n in range(ATTEMPTS_OF_ACCOUNT):
        street.at_s = NOW_S + n
        await refused(street, "set_webhook", account, url=f"https://n{n}.example/")
    error = await refused(street, "set_webhook", account, url="https://another.example/")
    # From when the first of them is ten minutes old.
    assert (error.code, error.retry_after_s) == ("rate_limited", WINDOW - (ATTEMPTS_OF_ACCOUNT - 1))
    assert len(street.servers.sent) == ATTEMPTS_OF_ACCOUNT
    assert (await refused(street, "set_webhook", other, url="https://another.example/")).code == "bad_input"
    street.at_s = NOW_S + WINDOW - 1
    assert (await refused(street, "set_webhook", account, url="https://a.example/")).code == "rate_limited"
    street.at_s = NOW_S + WINDOW
    assert (await refused(street, "set_webhook", account, url="https://a.example/")).code == "bad_input"


async def test_at_a_host_so_many_tries_may_fail_in_ten_minutes(street: ChannelStreet) -> None:
    owner, *accounts = [await street.account() for _ in range(ATTEMPTS_OF_HOST + 3)]
    await set_to(street, owner, "https://a.example/0")
    street.servers.otherwise = answered(500)
    came = await asyncio.gather(
        *(set_to(street, one, f"https://a.example/{n}") for n, one in enumerate(accounts)),
        return_exceptions=True,
    )
    refusals = [one for one in came if isinstance(one, RoundtripError) and one.code == "rate_limited"]
    assert [one.retry_after_s for one in refusals] == [WINDOW] * 2
    assert len(street.servers.sent) == ATTEMPTS_OF_HOST + 1
    street.servers.otherwise = OK
    await set_to(street, accounts[-1], "https://b.example/")
    # Whose channel there is well is not kept out by them.
    assert (await set_to(street, owner, "https://a.example/0"))["replaced"] is True
    await set_to(street, owner, "https://a.example/1")


async def test_tries_that_arrive_count_against_no_host(street: ChannelStreet) -> None:
    for n in range(ATTEMPTS_OF_HOST + 1):
        await set_to(street, await street.account(), f"https://a.example/{n}")
    assert len(street.servers.sent) == ATTEMPTS_OF_HOST + 1


async def test_everybodys_webhooks_of_discord_have_limits_of_their_own(street: ChannelStreet) -> None:
    for n in range(ATTEMPTS_OF_HOST + 1):
        await set_to(street, await street.account(), DISCORD.replace("1234567890", f"1{n:09}"))
    assert len(street.servers.sent) == ATTEMPTS_OF_HOST + 1


async def test_a_context_that_was_given_nothing_sends_nothing(street: ChannelStreet) -> None:
    assert Context.__dataclass_fields__["outward"].default is CLOSED
    assert not (await CLOSED.post(Target("https://a.example/", "a.example", 443), b"", {})).ok
    with pytest.raises(Unsealable):
        CLOSED.seal()


# --- removing --------------------------------------------------------------------------------------


async def test_a_channel_is_removed_and_removed_again(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.otherwise = answered(500)
    await street.alert(account, "one")
    await street.run()
    assert (await answer_of(street.ctx, "remove_channel", account, id=channel_id))["removed"] is True
    assert await street.states(channel_id) == ["dropped"]
    assert await listed(street, account) == []
    assert (await answer_of(street.ctx, "remove_channel", account, id=channel_id))["removed"] is False
    # The same url is a new channel.
    street.servers.otherwise = OK
    answer = await set_to(street, account, "https://a.example/alerts")
    assert (answer["replaced"], answer["channel"]["id"] > channel_id) == (False, True)


@pytest.mark.parametrize("wrong", [10**15, 2**63 - 1, 2**63, 0, -1, "1"])
async def test_there_has_to_be_such_a_channel(street: ChannelStreet, wrong: Any) -> None:
    account = await street.account()
    assert (await refused(street, "remove_channel", account, id=wrong)).code == "bad_input"


async def test_another_accounts_channel_cannot_be_told_from_none(street: ChannelStreet) -> None:
    account, other = await street.account(), await street.account()
    theirs = await street.webhook(other)
    error = await refused(street, "remove_channel", account, id=theirs)
    assert error.message == f"You have no channel {theirs}. list_channels lists your channels."
    assert (await street.channel(theirs)).state == "live"
    assert await listed(street, account) == []


async def test_what_is_told_of_a_channel_that_fails(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account)
    street.servers.otherwise = answered(503)
    street.at_s += 7
    await street.alert(account, "one")
    await street.run()
    answer = await answer_of(street.ctx, "list_channels", account)
    (row,) = answer["channels"]
    assert (row["state"], row["lastError"]) == ("failing", "answered 503")
    assert row["madeAt"] == row["lastDeliveredAt"] == "2025-10-09T12:00:00Z"
    assert row["failingSince"] == "2025-10-09T12:00:07Z"
    assert "Deliveries to 1 of them fail" in answer["text"]
    await street.pool.execute("UPDATE accounts.channel SET state = 'off' WHERE account_id = $1", account.id)
    answer = await answer_of(street.ctx, "list_channels", account)
    assert "1 of them is off after three days" in answer["text"]
