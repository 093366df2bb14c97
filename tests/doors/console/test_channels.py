"""The room of channels: what was sent, sending it again, a test that switches a channel on."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from roundtrip.channels.secrets import Seal
from roundtrip.domain.watch.alerts import Draft
from roundtrip.jobs.engine.worker import Worker
from roundtrip.jobs.registry import KINDS
from roundtrip.services.delivery.channels import ATTEMPTS_OF_ACCOUNT
from roundtrip.services.delivery.delivery_log import MAX_SHOWN, RESENDS
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.notifiers import Bot, Notifiers
from roundtrip.store.delivery import deliveries
from roundtrip.store.watch import alerts
from support.channels import OK, Chats, Servers, answered
from support.clocks import Clock
from support.console_account import Account, signed_in
from support.keys import NOW_S, random_context
from support.serving import service
from support.watching import SETTINGS

URL = "https://a.example/alerts"
DISCORD = "https://discord.com/api/webhooks/1234/sEcReT-token"


@dataclass
class ChannelShop:
    """A service whose messages go to servers that a test has."""

    ctx: Context
    clock: Clock
    url: str
    me: Account
    servers: Servers
    chats: Chats

    async def set(self, url: str = URL, who: Account | None = None) -> str:
        """Sets a webhook; its number."""
        status, page = await self.put(url, who)
        assert status == 200
        return str(re.findall('name="id" value="([0-9]+)"', page)[-1])

    async def put(self, url: str, who: Account | None = None) -> tuple[int, str]:
        """As the form on the page sends it."""
        page = await (who or self.me).get("/account/channels")
        seen = re.findall('name="seen" value="([^"]*)"', page)[0]
        return await (who or self.me).do("set_webhook", url=url, seen=seen)

    async def write_alerts(self, count: int = 1, who: Account | None = None) -> None:
        """Messages, which are wished for and not sent yet."""
        now = datetime.fromtimestamp(self.clock(), UTC)
        account_id = (who or self.me).account_id
        async with self.ctx.pool.acquire() as connection, connection.transaction():
            for one in range(count):
                drafts = [Draft(account_id, "rule", 1, int(self.clock()), f"Said {one}.")]
                await deliveries.enqueue(connection, await alerts.put(connection, drafts, now), now)

    async def work(self) -> None:
        """Sends what is due."""
        for _ in range(20):
            worker = Worker(self.ctx, {"deliver": KINDS["deliver"]}, lambda: 0.5)
            begun = await worker.take()
            if not begun:
                return
            for one in begun:
                await one

    async def log(self, who: Account | None = None) -> list[str]:
        """The rows of what was sent, as their text."""
        page = await (who or self.me).get("/account/channels")
        log = page.partition("The last messages to your channels")[2]
        rows = re.findall("<tr><td>(.*?)</tr>", log, re.DOTALL)
        return [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in rows]

    async def forms(self) -> list[tuple[str, str]]:
        """Those that send again: number and end, as they carry it."""
        page = await self.me.get("/account/channels")
        return re.findall(
            'name="id" value="([0-9]+)"><input type="hidden" name="ended" value="([^"]+)"', page
        )

    async def state(self, channel_id: str, state: str | None = None) -> str:
        """Of a channel, set where one is given."""
        if state is not None:
            await self.ctx.pool.execute(
                "UPDATE accounts.channel SET state = $2 WHERE id = $1", int(channel_id), state
            )
        return str(
            await self.ctx.pool.fetchval("SELECT state FROM accounts.channel WHERE id = $1", int(channel_id))
        )


@pytest.fixture
async def shop(ctx: Context) -> AsyncIterator[ChannelShop]:
    clock, servers, chats = Clock(), Servers(), Chats()
    outward = Notifiers(servers.post, lambda: Seal(b"k" * 32), Bot(chats))
    made = replace(random_context(ctx, clock), outward=outward)
    await made.pool.execute("DELETE FROM accounts.channel_attempt")
    await made.pool.execute("DELETE FROM jobs.job WHERE kind = 'deliver'")
    await made.pool.execute(
        "UPDATE accounts.channel SET state = 'removed' WHERE state <> 'removed';"
        "DELETE FROM accounts.secret WHERE name = 'seal'"
    )
    async with service(made, SETTINGS) as url:
        yield ChannelShop(made, clock, url, await signed_in(made, url), servers, chats)


# --- what was sent ---------------------------------------------------------------------------------


async def test_the_log_tells_what_became_of_each_message(shop: ChannelShop) -> None:
    assert await shop.log() == []
    assert "No message has been sent yet." in await shop.me.get("/account/channels")
    await shop.set()
    await shop.write_alerts()
    (row,) = await shop.log()
    assert "waiting for its turn" in row
    assert "not tried yet" in row
    shop.servers.otherwise = answered(500)
    await shop.work()
    (row,) = await shop.log()
    assert "answered 500 1 try" in row
    assert "waiting next try" in row
    beside = await shop.me.get("/account/channels")
    assert re.search("Last try <time.*: answered 500. Next try <time", beside)
    assert await shop.forms() == []
    shop.servers.otherwise = OK
    shop.clock.now_s += 3600
    await shop.work()
    (row,) = await shop.log()
    assert "answered 200 2 tries" in row
    assert "arrived" in row
    assert "✓ Last message arrived" in await shop.me.get("/account/channels")
    assert len(await shop.forms()) == 1


async def test_the_log_has_the_newest_of_all_channels(shop: ChannelShop) -> None:
    first = await shop.set()
    await shop.set("https://b.example/alerts")
    await shop.write_alerts(MAX_SHOWN - 10)
    assert len(await shop.log()) == MAX_SHOWN
    await shop.me.do("remove_channel", id=first)
    rows = await shop.log()
    assert sum("a.example" in row and "removed" in row and "not sent" in row for row in rows) == MAX_SHOWN / 2


async def test_nobody_sees_or_sends_anothers(shop: ChannelShop) -> None:
    other = await signed_in(shop.ctx, shop.url)
    channel = await shop.set()
    await shop.write_alerts()
    await shop.work()
    ((number, ended),) = await shop.forms()
    assert await shop.log(other) == []
    sent = len(shop.servers.sent)
    for tool, form in (("resend", {"id": number, "ended": ended}), ("try_channel", {"id": channel})):
        status, page = await other.do(tool, **form)
        assert status == 400
        assert "You have no" in page
    await shop.work()
    assert len(shop.servers.sent) == sent


# --- again -----------------------------------------------------------------------------------------


async def test_a_message_is_sent_again_under_its_id_and_once_a_form(shop: ChannelShop) -> None:
    await shop.set()
    await shop.write_alerts()
    await shop.work()
    ((number, ended),) = await shop.forms()
    status, page = await shop.me.do("resend", id=number, ended=ended)
    assert status == 200
    assert "is sent again" in page
    status, page = await shop.me.do("resend", id=number, ended=ended)
    assert (status, "already waiting to be sent" in page) == (400, True)
    shop.clock.now_s += 1
    await shop.work()
    # A reload of the form, after it arrived again.
    status, page = await shop.me.do("resend", id=number, ended=ended)
    assert (status, "already sent again" in page) == (400, True)
    await shop.work()
    _, result, again = shop.servers.sent
    assert result.id == again.id
    assert result.said["rows"] == again.said["rows"]


async def test_what_was_given_up_is_sent_again(shop: ChannelShop) -> None:
    await shop.set()
    await shop.write_alerts()
    await shop.ctx.pool.execute(
        "UPDATE accounts.delivery SET state = 'failed', ended_at = $2 WHERE channel_id IN"
        " (SELECT id FROM accounts.channel WHERE account_id = $1)",
        shop.me.account_id, datetime.fromtimestamp(NOW_S, UTC),
    )  # fmt: skip
    assert "given up" in (await shop.log())[0]
    ((number, ended),) = await shop.forms()
    assert (await shop.me.do("resend", id=number, ended=ended))[0] == 200
    await shop.work()
    assert "arrived" in (await shop.log())[0]


async def test_twenty_an_hour_are_sent_again(shop: ChannelShop) -> None:
    await shop.set()
    await shop.write_alerts(RESENDS + 1)
    for _ in range(3):
        await shop.work()
    forms = await shop.forms()
    assert len(forms) == RESENDS + 1
    for number, ended in forms[:-1]:
        assert (await shop.me.do("resend", id=number, ended=ended))[0] == 200
    (number, ended), other = forms[-1], await signed_in(shop.ctx, shop.url)
    status, page = await shop.me.do("resend", id=number, ended=ended)
    assert status == 429
    assert "again in 3600 s" in page
    # What was refused counts nothing, and nobody else.
    assert (
        await shop.ctx.pool.fetchval(
            "SELECT count(*) FROM accounts.resend WHERE account_id = $1", shop.me.account_id
        )
        == RESENDS
    )
    assert (await other.do("resend", id=number, ended=ended))[0] == 400
    shop.clock.now_s += 3600
    assert (await shop.me.do("resend", id=number, ended=ended))[0] == 200


@pytest.mark.parametrize(
    ("state", "said"), [("off", "channel is off. Test the channel"), ("removed", "channel was removed.")]
)
async def test_nothing_goes_to_a_channel_that_is_not_told(shop: ChannelShop, state: str, said: str) -> None:
    channel = await shop.set()
    await shop.write_alerts()
    await shop.work()
    ((number, ended),) = await shop.forms()
    await shop.state(channel, state)
    assert await shop.forms() == []
    status, page = await shop.me.do("resend", id=number, ended=ended)
    assert (status, said in page) == (400, True)


@pytest.mark.parametrize(
    "form",
    [{}, {"id": "1"}, {"id": "0", "ended": "2025-01-01T00:00:00Z"}, {"id": "x", "ended": "y"},
     {"id": "9" * 19, "ended": "2025-01-01T00:00:00Z"}, {"id": "1", "ended": "2025-01-01T00:00:00"}],
)  # fmt: skip
async def test_what_names_no_message_is_refused(shop: ChannelShop, form: dict[str, str]) -> None:
    status, page = await shop.me.do("resend", **form)
    assert status == 400
    assert "bad_input" in page


# --- a test ----------------------------------------------------------------------------------------


async def test_a_test_that_arrives_switches_a_channel_on(shop: ChannelShop) -> None:
    channel = await shop.set()
    await shop.write_alerts()
    await shop.state(channel, "off")
    page = await shop.me.get("/account/channels")
    assert "It failed for three days, so we switched it off" in page
    assert "Test and switch on" in page
    secret = shop.servers.sent[0].headers.keys()
    status, page = await shop.me.do("try_channel", id=channel)
    assert status == 200
    assert "on again" in page
    assert await shop.state(channel) == "live"
    assert shop.servers.sent[-1].said["kind"] == "test"
    assert shop.servers.sent[-1].headers.keys() == secret
    # What waited while it was off is old; what comes now is told.
    await shop.write_alerts()
    await shop.work()
    kinds = [one.said["kind"] for one in shop.servers.sent]
    assert kinds == ["test", "test", "rule"]


async def test_a_test_keeps_the_secret(shop: ChannelShop) -> None:
    channel = await shop.set()
    before = await shop.ctx.pool.fetchrow(
        "SELECT target, secret FROM accounts.channel WHERE id = $1", int(channel)
    )
    await shop.me.do("try_channel", id=channel)
    after = await shop.ctx.pool.fetchrow(
        "SELECT target, secret FROM accounts.channel WHERE id = $1", int(channel)
    )
    assert before == after
    assert before is not None
    assert before["secret"] is not None


async def test_a_test_that_does_not_arrive_changes_nothing(shop: ChannelShop) -> None:
    channel = await shop.set()
    await shop.state(channel, "off")
    shop.servers.otherwise = answered(410)
    status, page = await shop.me.do("try_channel", id=channel)
    assert status == 400
    assert "answered 410" in page
    assert await shop.state(channel) == "off"


async def test_tests_are_bounded_with_the_targets_that_are_tried(shop: ChannelShop) -> None:
    channel = await shop.set()
    came = [(await shop.me.do("try_channel", id=channel))[0] for _ in range(ATTEMPTS_OF_ACCOUNT)]
    assert came == [200] * (ATTEMPTS_OF_ACCOUNT - 1) + [429]
    assert len(shop.servers.sent) == ATTEMPTS_OF_ACCOUNT


async def test_no_test_goes_to_a_channel_that_was_removed(shop: ChannelShop) -> None:
    channel = await shop.set()
    await shop.me.do("remove_channel", id=channel)
    status, page = await shop.me.do("try_channel", id=channel)
    assert (status, "You have no channel" in page) == (400, True)
    assert len(shop.servers.sent) == 1


async def test_one_that_is_removed_while_a_test_is_under_way_stays_removed(shop: ChannelShop) -> None:
    channel = await shop.set()
    shop.servers.hangs.add("a.example")
    shop.servers.came.clear()
    trying = asyncio.create_task(shop.me.do("try_channel", id=channel))
    async with asyncio.timeout(10):
        await shop.servers.came.wait()
        await shop.me.do("remove_channel", id=channel)
        shop.servers.go.set()
        status, _ = await trying
    assert status == 400
    assert await shop.state(channel) == "removed"


# --- linking ---------------------------------------------------------------------------------------


async def test_linking_is_told_and_secrets_are_not(shop: ChannelShop) -> None:
    page = await shop.me.get("/account/channels")
    assert "Not linked." in page
    code = re.search(r'href="https://t.me/some_bot\?start=([0-9a-f-]+)"', page)
    assert code is not None
    assert f"/start {code.group(1)}" in page
    assert "Copy webhook URL" in page
    _, page = await shop.put(DISCORD)
    assert "sEcReT" not in page
    assert "discord.com/api/webhooks/1234" in page
    _, page = await shop.put(URL)
    secret = re.search('whsec_[^<"]+', page)
    assert secret is not None
    assert secret.group() not in await shop.me.get("/account/channels")


async def test_a_reload_changes_no_secret(shop: ChannelShop) -> None:
    """The secret that was copied off the page stays good."""
    await shop.set()
    seen = re.findall('name="seen" value="([^"]*)"', await shop.me.get("/account/channels"))[0]
    shop.clock.now_s += 60
    status, page = await shop.me.do("set_webhook", url=URL, seen=seen)
    assert (status, "whsec_" in page) == (200, True)
    for stale in (seen, "", "1@"):
        status, page = await shop.me.do("set_webhook", url=URL, seen=stale)
        assert (status, "whsec_" in page) == (400, False)
        assert "you sent this form before" in page
    assert len(shop.servers.sent) == 2


async def test_a_target_that_does_not_fit_is_told_beside_the_field(shop: ChannelShop) -> None:
    status, page = await shop.put("https://10.0.0.1/x")
    assert status == 400
    assert 'aria-describedby="url-fault"' in page
    assert 'value="https://10.0.0.1/x"' in page
    assert page.count('role="alert"') == 1
