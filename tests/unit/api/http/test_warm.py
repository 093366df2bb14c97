"""Answers that are shared already: they go out as on the way through the routes, without that way."""

import asyncio
from dataclasses import dataclass, field
from gzip import decompress
from typing import Any, ClassVar, cast

import msgspec
import pytest

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import Dispatch, DoorReply
from roundtrip.api.http.app import create_app
from roundtrip.api.request.callers import Callers
from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.runtime.context import Context
from support.counting import Counts, Wall, account, hashed, key_of

TOKEN = "0x" + "1a" * 20
BODY = msgspec.json.encode({"address": TOKEN, "long": "x" * 2_000})
PER_MINUTE = 4
KEY = (b"x-api-key", key_of("k").encode())


class CountedDispatch(Dispatch):
    """``ran``: requests that went through the routes."""

    ran: ClassVar[list[str]] = []

    async def run(self, operation: Any, *args: Any, **named: Any) -> DoorReply:
        self.ran.append(operation.name)
        return await super().run(operation, *args, **named)


@dataclass
class Nothing:
    """A context of no service."""

    public_url: str = "http://127.0.0.1"
    measures: Measures = field(default_factory=Measures)

    def now_s(self) -> float:
        return 0.0


@dataclass
class WarmResponse:
    """What one request got."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def shown(self) -> dict[str, str]:
        """The headers but the request's own id."""
        return {name.decode(): value.decode() for name, value in self.headers if name != b"x-request-id"}


class Warmed:
    """The service, with one shared answer; ``now_s`` is its clock."""

    def __init__(self, body: bytes, is_absence: bool = False) -> None:
        self.ctx, self.body, self.now_s, self.is_absence = Nothing(), body, 0.0, is_absence
        self.ledger = Counts(live={hashed("k"): account(1)})
        wall, allowance = Wall(), CallAllowance(PER_MINUTE, 1_000)
        gate = Gate(
            MinuteLimits(wall), Allowances(allowance, allowance, allowance), CallCounter(self.ledger, wall)
        )
        self.shared = SharedAnswers(lambda: self.now_s)
        self.dispatch = CountedDispatch(cast(Context, self.ctx), gate, self.shared)
        self.dispatch.ran.clear()
        self.app = create_app(self.dispatch, Callers())

    async def begin(self) -> "Warmed":
        async def made() -> SharedAnswer:
            return SharedAnswer(self.body, 60_000, counted=True, is_absence=self.is_absence)

        await self.shared.get(f"check_token:{TOKEN}", made)
        return self

    async def get(
        self, *headers: tuple[bytes, bytes], method: str = "GET", query: bytes = b""
    ) -> WarmResponse:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        path = f"/v1/check/{TOKEN}"
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query, "headers": list(headers), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        await self.app(scope, receive, send)
        return WarmResponse(sent[0]["status"], sent[0]["headers"], sent[1]["body"])

    def counts(self) -> dict[tuple[str, ...], int]:
        return {(metric, *labels): count for metric, labels, count in self.ctx.measures.counts()}


@pytest.fixture
async def small() -> Warmed:
    return await Warmed(msgspec.json.encode({"address": TOKEN})).begin()


@pytest.fixture
async def large() -> Warmed:
    return await Warmed(BODY).begin()


@pytest.mark.parametrize("headers", [(), (KEY,), ((b"accept-encoding", b"gzip"),)], ids=len)
@pytest.mark.parametrize("body", [msgspec.json.encode({"a": 1}), BODY], ids=["small", "large"])
async def test_it_is_told_and_counted_as_on_the_way_through_the_routes(
    body: bytes, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    warmed = await Warmed(body).begin()
    first = await warmed.get(*headers)
    before = warmed.counts()
    second = await warmed.get(*headers)
    assert (len(warmed.dispatch.ran), second.status, second.body) == (1, 200, first.body)
    text = first.shown() | {"x-ratelimit-remaining": str(PER_MINUTE - 2)}
    assert second.shown() == text
    assert [name for name, _ in second.headers] == [name for name, _ in first.headers]
    assert (decompress(second.body) if "content-encoding" in text else second.body) == body
    rise = {key: count - before.get(key, 0) for key, count in warmed.counts().items()}
    assert {key: by for key, by in rise.items() if by} == {
        ("answers", "2xx"): 1, ("requests", "http", "shared"): 1,
    }  # fmt: skip
    assert warmed.ctx.measures.of("operation", "check_token", "shared").count() == 2


@pytest.mark.parametrize(
    ("query", "often"),
    [(b"amount=1&amount=2", "twice"), (b"deep=1&amount=1&am%6funt=1", "twice"), (b"amount=&amount=", "twice"),
     (b"amount=1&amount=1&amount=1", "3 times")],
)  # fmt: skip
async def test_a_parameter_of_the_query_is_given_once(query: bytes, often: str) -> None:
    warmed = await Warmed(BODY).begin()
    for asked in (1, 2):
        refused = await warmed.get(query=query)
        assert (refused.status, msgspec.json.decode(refused.body)) == (400, {"error": {
            "code": "bad_input", "message": f'The query parameter "amount" is given {often}. Give it once.',
        }})  # fmt: skip
        assert refused.shown()["x-ratelimit-remaining"] == str(PER_MINUTE - asked)


async def test_limits_hold(small: Warmed) -> None:
    for _ in range(PER_MINUTE):
        assert (await small.get()).status == 200
    refused = await small.get()
    assert (refused.status, len(small.dispatch.ran)) == (429, 1)
    assert refused.shown()["x-ratelimit-remaining"] == "0"
    assert refused.shown()["retry-after"] == "60"
    assert b"x-request-id" in dict(refused.headers)
    counts = small.counts()
    assert counts["errors", "check_token", "rate_limited"] == 1
    assert (counts["requests", "http", "refused"], counts["answers", "4xx"]) == (1, 1)
    assert (await small.get(KEY)).status == 200


async def test_a_dead_key_is_refused(small: Warmed) -> None:
    await small.get()
    refused = await small.get((b"authorization", b"Bearer " + key_of("dead").encode()))
    assert (refused.status, len(small.dispatch.ran)) == (401, 1)


async def test_a_fault_of_ours_is_500_and_is_logged(
    small: Warmed, capsys: pytest.CaptureFixture[str]
) -> None:
    await small.get()
    small.dispatch.gate.is_holder = cast(Any, None)
    await small.get(KEY)
    failed = await small.get(KEY)
    assert failed.status == 500
    assert msgspec.json.decode(failed.body)["error"]["code"] == "internal"
    assert small.counts()["errors", "check_token", "internal"] == 2
    request = dict(failed.headers)[b"x-request-id"].decode()
    assert request in capsys.readouterr().out


@pytest.mark.parametrize(
    ("headers", "method", "query"),
    [
        (((b"x-min-block", b"0"),), "GET", b""),
        ((), "HEAD", b""),
        ((), "GET", b"size=1"),
        ((), "OPTIONS", b""),
    ],
)
async def test_what_may_ask_for_something_else_goes_through_the_routes(
    small: Warmed, headers: tuple[tuple[bytes, bytes], ...], method: str, query: bytes
) -> None:
    await small.get()
    before = len(small.dispatch.ran)
    warm = small.app.warm
    scope = {"type": "http", "method": method, "path": f"/v1/check/{TOKEN}", "query_string": query}

    async def send(message: Any) -> None:
        raise AssertionError("nothing is sent")

    assert not await warm.answer({**scope, "headers": list(headers), "client": None}, send, send, ())
    assert before == 1


async def test_what_is_no_longer_fresh_is_made_again(small: Warmed) -> None:
    await small.get()
    await small.get()
    assert len(small.dispatch.ran) == 1
    small.now_s = 61.0
    await small.get()
    assert len(small.dispatch.ran) == 2


async def test_an_absence_is_looked_at_again(large: Warmed) -> None:
    """It holds for the newest block only."""
    await large.get()
    entry = next(iter(large.shared._answers.values()))
    large.shared._answers[f"check_token:{TOKEN}"] = (entry[0], SharedAnswer(BODY, 1, True, is_absence=True))
    await asyncio.wait_for(large.get(), 10)
    assert len(large.dispatch.ran) == 2
