"""roundtrip deliveries list and resend, against a real database."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from typer.testing import CliRunner, Result

from roundtrip.cli.main import app
from roundtrip.store.server import connections
from support.channels import OK, ChannelStreet, answered
from support.tables import own_database


@pytest.fixture
async def url(database_url: str) -> AsyncIterator[str]:
    """Every test has one to itself: what is listed is all there is."""
    async with own_database(database_url, "delivery_commands") as found:
        yield found


@pytest.fixture
async def street(url: str) -> AsyncIterator[ChannelStreet]:
    async with connections.create_pool(url, min_size=1, max_size=4, command_timeout=5) as pool:
        yield ChannelStreet(pool)


async def run_command(monkeypatch: pytest.MonkeyPatch, url: str, *arguments: object) -> Result:
    monkeypatch.setenv("ROUNDTRIP_DATABASE_URL", url)
    monkeypatch.setenv("COLUMNS", "250")
    given = ["deliveries", *map(str, arguments)]
    return await asyncio.to_thread(CliRunner().invoke, app, given)


async def test_a_message_is_found_and_sent_once_more(
    street: ChannelStreet, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = await street.account()
    channel_id = await street.webhook(account)
    street.servers.otherwise = OK
    await street.alert(account, "one")
    await street.run()
    delivery_id = await street.pool.fetchval("SELECT id FROM accounts.delivery")
    done = await run_command(monkeypatch, url, "resend", delivery_id)
    assert (done.exit_code, done.output) == (0, f"Message {delivery_id} was delivered and is sent again.\n")
    street.at_s += 10**9
    street.servers.otherwise = answered(503)
    await street.run()
    first, again = street.servers.ids()
    assert first == again
    waiting = await run_command(monkeypatch, url, "resend", delivery_id)
    assert (waiting.exit_code, waiting.output) == (
        1,
        f"roundtrip: message {delivery_id} is already waiting\n",
    )
    nobody = await run_command(monkeypatch, url, "resend", delivery_id + 1)
    assert nobody.exit_code == 1
    assert "there is no message" in nobody.output
    await street.pool.execute("UPDATE accounts.channel SET state = 'off' WHERE id = $1", channel_id)
    assert (await run_command(monkeypatch, url, "resend", delivery_id)).exit_code == 1
