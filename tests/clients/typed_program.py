"""A user's program: what each method of the Python client gives, as mypy and pyright see it. A wrong use that
they would accept is an error here, as its ignore comment is then unused."""

from collections.abc import Mapping
from typing import Literal, assert_type

from roundtrip_client import AsyncClient, Client, models, read_challenge, verify_webhook

Level = Literal["ok", "warn", "danger", "unknown"]


def blocking(client: Client, token: str, buy: models.PrepareBuyParams, key: models.KeyParams) -> None:
    check = client.check(token, amount="0.5", deep=True)
    assert_type(check, models.Check)
    assert_type([flag.upper() for flag in check.flags], list[str])
    assert_type(check.verdict.text, str)
    if check.trade:
        assert_type(check.trade.round_trip_loss_bps, int | None)
    for line in client.checks([token]):
        assert_type(line, models.CheckLine)
    trade = client.prepare_buy(buy, min_block=1)
    assert_type(trade, models.PreparedTrade)
    assert_type([step.gas for step in trade.steps], list[int])
    assert_type(client.make_key(key), models.KeyMade)
    assert_type(client.holders(token), models.Holders)
    for event in client.stream(events=["verdict"]):
        if event.verdict:
            assert_type(event.verdict.level, Level)
    client.check(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.check(token, amout="1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.prepare_buy(token)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    print(check.loss)  # type: ignore[attr-defined]  # pyright: ignore


async def awaited(client: AsyncClient, token: str) -> None:
    assert_type(await client.check(token), models.Check)
    async for line in client.checks([token]):
        assert_type(line, models.CheckLine)
    async for event in client.stream(tokens=[token]):
        assert_type(event.token, str | None)
    print(client.check(token).verdict)  # type: ignore[attr-defined]  # pyright: ignore


def received(headers: Mapping[str, str], body: bytes) -> str:
    message = verify_webhook("whsec_", headers, body)
    assert_type([row.who for row in message.rows], list[str | None])
    return read_challenge(headers)
