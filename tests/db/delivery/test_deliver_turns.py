"""Deliveries in turn: targets that are slow, that nobody proved, and warnings. Over a real database, to
servers that answer as a test says."""

import asyncio
import re
import secrets
from dataclasses import replace
from typing import Any

from roundtrip.channels.post import PostReply
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.watch.channels import HOST_ROWS, TURN_ROWS
from roundtrip.jobs.engine.worker import Turns, Worker
from roundtrip.jobs.kinds.deliver import MAX_A_RUN
from roundtrip.jobs.registry import KINDS
from roundtrip.services.runtime.context import Context
from roundtrip.store.delivery import channels
from roundtrip.store.delivery.channels import NewChannel
from support.channels import NO_ANSWER, OK, WAIT_S, ChannelStreet
from support.paying import answer_of


async def crowd(street: ChannelStreet, owners: int, each: int, **of: Any) -> None:
    """Accounts with hanging channels, and a message for each of them."""
    for n in range(owners):
        account = await street.account()
        for m in range(each):
            host = f"hangs{n}-{m}.example"
            street.servers.hangs.add(host)
            await street.webhook(account, host, **of)
        await street.alert(account, "for a tarpit")


def worker_of(street: ChannelStreet) -> Worker[Context]:
    return Worker(street.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)


def sent_to(street: ChannelStreet, host: str) -> list[str]:
    return [row["text"] for one in street.servers.sent if one.to.host == host for row in one.said["rows"]]


async def end(street: ChannelStreet, begun: list[asyncio.Task[None]]) -> None:
    street.servers.go.set()
    await asyncio.gather(*begun)


# --- slow targets ----------------------------------------------------------------------------------


async def test_targets_known_as_slow_hold_places_of_their_own(street: ChannelStreet) -> None:
    await crowd(street, 40, 3, proven=True, took_ms=9_500)
    worker = worker_of(street)
    async with asyncio.timeout(WAIT_S):
        begun = await worker.take()
        assert len(begun) == 16
        honest = await street.account()
        channel_id = await street.webhook(honest, "honest.example", proven=True)
        await street.alert(honest, "in time")
        (quick,) = await worker.take()
        await quick
        assert await street.states(channel_id) == ["delivered"]
        await end(street, begun)


async def test_a_run_that_takes_long_gives_its_place_to_others(street: ChannelStreet) -> None:
    """Targets that nobody knows as slow take all places once."""
    await crowd(street, 80, 2, proven=True)
    worker = worker_of(street)
    async with asyncio.timeout(WAIT_S):
        begun = await worker.take()
        assert len(begun) == 64
        honest = await street.account()
        channel_id = await street.webhook(honest, "honest.example", proven=True)
        await street.alert(honest, "in time")
        while await street.states(channel_id) != ["delivered"]:
            begun += await worker.take()
            await asyncio.sleep(0.02)
        # One message of each account at most went before it.
        assert len(begun) <= 81
        await end(street, begun)


async def test_one_account_has_few_places_at_once_however_many_channels_it_has(street: ChannelStreet) -> None:
    await crowd(street, 1, 5, proven=True)
    async with asyncio.timeout(WAIT_S):
        begun = await worker_of(street).take()
        assert len(begun) == 1
        # Of all workers.
        assert await worker_of(street).take() == []
        await end(street, begun)


async def test_how_long_answers_take_is_learned(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account, proven=True)
    took: list[int] = []
    for took_ms in (80, 9_500, *[50] * 8):
        street.servers.otherwise = replace(OK, took_ms=took_ms)
        await street.alert(account, "one")
        await street.run()
        took.append((await street.channel(channel_id)).answers_ms)
    assert took[:3] == [80, 9_500, 7_137]
    assert took[-2] > 1_000 >= took[-1]
    street.servers.otherwise = NO_ANSWER
    await street.alert(account, "one")
    await street.run()
    assert (await street.channel(channel_id)).answers_ms == 10_000


# --- what goes first -------------------------------------------------------------------------------


async def test_warnings_do_not_wait_for_places_of_others(street: ChannelStreet) -> None:
    await crowd(street, 80, 2, proven=True)
    kind = KINDS["deliver"]
    assert kind.turns is not None
    # However long this machine takes, no place is given back.
    kept = Turns(tuple(replace(lane, hold_s=None) for lane in kind.turns.lanes), kind.turns.sort)
    worker = Worker(street.ctx, {"deliver": replace(kind, turns=kept)}, lambda: 0.5)
    async with asyncio.timeout(WAIT_S):
        begun = await worker.take()
        for n, text in enumerate(("bag_guard", "service", "rule")):
            account = await street.account()
            await street.webhook(account, f"honest{n}.example", proven=True)
            await street.alert(account, text, kind=text)
        first = await worker.take()
        await asyncio.gather(*first)
        assert [sent_to(street, f"honest{n}.example") for n in range(3)] == [["bag_guard"], ["service"], []]
        await end(street, begun)


async def test_a_warning_goes_before_what_does_not_fit_into_one_run(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account, proven=True)
    for n in range(MAX_A_RUN + 5):
        await street.alert(account, str(n))
    await street.alert(account, "your bag", kind="bag_guard")
    while await street.run():
        pass
    assert sent_to(street, "a.example") == ["your bag", *(str(n) for n in range(MAX_A_RUN + 5))]


async def test_a_warning_goes_first_to_a_slow_target_and_in_order_to_another(street: ChannelStreet) -> None:
    account = await street.account()
    await street.webhook(account, "quick.example", proven=True)
    await street.webhook(account, "slow.example", proven=True, took_ms=5_000)
    await street.alert(account, "one")
    await street.alert(account, "your bag", kind="bag_guard")
    while await street.run():
        pass
    assert sent_to(street, "quick.example") == ["one", "your bag"]
    assert sent_to(street, "slow.example") == ["your bag", "one"]


# --- targets that are not proven -------------------------------------------------------------------


async def minute(street: ChannelStreet) -> None:
    """All that can be sent without time going on."""
    while await street.run():
        pass


async def test_a_host_takes_sixty_rows_a_minute_of_those_that_did_not_prove_it_and_nothing_is_lost(
    street: ChannelStreet,
) -> None:
    accounts = [await street.account() for _ in range(2)]
    ids = [await street.webhook(account) for account in accounts]
    for account in accounts:
        for n in range(70):
            await street.alert(account, str(n))
    came = []
    for _ in range(3):
        before = len(street.servers.sent)
        await minute(street)
        came.append(len(street.servers.sent) - before)
        due = {await street.due_in_s(one) for one in ids}
        assert due <= {None, 60}
        street.at_s += 60
    assert came == [HOST_ROWS, HOST_ROWS, 20]
    for channel_id, account in zip(ids, accounts, strict=True):
        assert await street.states(channel_id) == ["delivered"] * 70
        found = await street.channel(channel_id)
        assert (found.state, found.failures) == ("live", 0)
        kept = await street.pool.fetchval(
            "SELECT count(*) FROM accounts.alert WHERE account_id = $1", account.id
        )
        assert kept == 70
    # Each account has its share of the first minute.
    owners = [one.said["mite"] for one in street.servers.sent[:HOST_ROWS]]
    assert sorted(owners.count(account.designation) for account in accounts) == [TURN_ROWS, 2 * TURN_ROWS]


async def test_one_message_of_fifty_rows_and_no_other_fits_beside_a_second(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    for _ in range(2):
        await street.alert(account, *(str(n) for n in range(50)))
    await minute(street)
    assert await street.states(channel_id) == ["delivered", "waiting"]
    street.at_s += 60
    await minute(street)
    assert await street.states(channel_id) == ["delivered", "delivered"]


async def test_who_has_proved_it_is_held_to_no_minute_and_not_held_up_by_others_at_its_host(
    street: ChannelStreet,
) -> None:
    other, account = await street.account(), await street.account()
    held, free = await street.webhook(other), await street.webhook(account, proven=True)
    for one in (other, account):
        for n in range(90):
            await street.alert(one, str(n))
    await minute(street)
    assert (await street.states(held)).count("delivered") == HOST_ROWS
    assert await street.states(free) == ["delivered"] * 90


async def test_a_minute_that_a_clock_ahead_began_holds_nobody(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.at_s += 3_600
    async with street.pool.acquire() as connection:
        fit, _ = await channels.reserve_rows(connection, "a.example", [50, 10], street.now())
    assert fit == 1
    street.at_s -= 3_600
    await street.alert(account, *(str(n) for n in range(50)))
    assert await street.run() == 1
    assert await street.states(channel_id) == ["delivered"]


async def test_a_message_whose_challenge_is_echoed_proves_the_channel(street: ChannelStreet) -> None:
    street.draw = lambda: secrets.token_bytes(32)
    account = await street.account()
    channel_id = await street.webhook(account)
    said_back = PostReply(200, None, None, 3, b"webhook-challenge: " + b"0" * 32)
    street.servers.replies["a.example"] = [said_back]
    await street.alert(account, "one")
    await street.run()
    assert (await street.channel(channel_id)).proven_at is None
    street.servers.echoes.add("a.example")
    await street.alert(account, "two")
    await street.run()
    assert (await street.channel(channel_id)).proven_at == street.now()
    await street.alert(account, "three")
    await street.run()
    challenges = [one.headers.get("webhook-challenge") for one in street.servers.sent]
    assert all(re.fullmatch("[0-9a-f]{32}", challenge or "") for challenge in challenges[:2])
    assert challenges[0] != challenges[1]
    assert challenges[2] is None


async def test_one_echo_of_several_messages_is_enough(street: ChannelStreet) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.echoes.add("a.example")
    street.servers.replies["a.example"] = [OK]
    await street.alert(account, "one")
    await street.alert(account, "two")
    assert await street.run() == 1
    assert len(street.servers.sent) == 2
    assert (await street.channel(channel_id)).proven_at == street.now()


async def set_to(street: ChannelStreet, account: Account, host: str) -> dict[str, Any]:
    return await answer_of(street.ctx, "set_webhook", account, url=f"https://{host}/alerts")


async def test_a_receiver_that_only_answers_2xx_is_set_and_is_sent_what_happens(
    street: ChannelStreet,
) -> None:
    """As the interface has it: the challenge is no condition."""
    account = await street.account()
    answer = await set_to(street, account, "plain.example")
    assert answer["channel"]["proven"] is False
    assert "did not echo the challenge" in answer["text"]
    await street.alert(account, "one")
    await street.run()
    assert sent_to(street, "plain.example")[-1] == "one"


async def test_who_echoes_the_challenge_of_the_test_is_proven_and_stays_so(street: ChannelStreet) -> None:
    account = await street.account()
    street.servers.echoes.add("good.example")
    answer = await set_to(street, account, "good.example")
    assert answer["channel"]["proven"] is True
    assert "challenge" not in answer["text"]
    street.servers.echoes.clear()
    assert (await set_to(street, account, "good.example"))["channel"]["proven"] is True


async def test_the_test_tells_how_long_answers_take(street: ChannelStreet) -> None:
    account = await street.account()
    street.servers.otherwise = replace(OK, took_ms=9_500)
    answer = await set_to(street, account, "slow.example")
    assert (await street.channel(answer["channel"]["id"])).answers_ms == 9_500


async def test_chats_need_not_prove_anything(street: ChannelStreet) -> None:
    account = await street.account()
    url = "https://discord.com/api/webhooks/1234567890/AbC-secret_token"
    assert (await answer_of(street.ctx, "set_webhook", account, url=url))["channel"]["proven"] is True
    assert "webhook-challenge" not in street.servers.sent[0].headers
    async with street.pool.acquire() as connection:
        chat = await channels.add(
            connection, account.id, NewChannel("telegram", b"77", "Ann", None), street.now()
        )
    found = await street.channel(chat)
    assert (found.host, found.proven_at) == ("telegram:77", street.now())
