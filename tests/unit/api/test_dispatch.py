"""What becomes of a request, with operations made up for the purpose; and bodies at the HTTP door."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from roundtrip.api.admission.call_counter import CallCounter
from roundtrip.api.admission.gate import Gate
from roundtrip.api.admission.minute_limits import MinuteLimits
from roundtrip.api.dispatch import NODE_RETRY_S, Dispatch, DoorReply
from roundtrip.api.http.app import MAX_BODY_BYTES, OperationEndpoint
from roundtrip.api.operations.operation import AnyOperation, HandlerCall, Operation
from roundtrip.api.request.callers import CallerRequest, Callers
from roundtrip.api.request.failure_log import MAX_A_SECOND
from roundtrip.api.sharing.places import MAX_LINE, FlightCaller, RunPlaces
from roundtrip.api.sharing.single_flight import SharedAnswers, TookTooLong
from roundtrip.domain.accounts.account import Allowances, CallAllowance
from roundtrip.domain.accounts.keys import format_key
from roundtrip.domain.base.errors import (
    STATUS_BY_CODE,
    CallerFault,
    LimitReached,
    NodeFault,
    RoundtripError,
    ServiceFull,
)
from roundtrip.domain.base.metrics import Measures
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import WalletParams
from support.clocks import Clock
from support.counting import Counts, Wall, account, hashed, key_of
from unit.chain.samples import interpreters_recursion_limit

SECRET = "postgresql:///roundtrip?user=hidden"
CALLER = CallerRequest("address:203.0.113.7")
ALLOWANCES = Allowances(CallAllowance(3), CallAllowance(5, 100), CallAllowance(7, 200))
CONTEXT = cast(Context, SimpleNamespace(measures=Measures(), chain_id=4663))


class DispatchParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Made up."""

    address: str
    times: int = 1
    manner: str = ""


class Doubled(msgspec.Struct, frozen=True):
    """Made up."""

    text: str
    number: int


Handler = Callable[[HandlerCall[Any]], Awaitable[UseCaseAnswer[Any]]]


async def double(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
    assert call.ctx is CONTEXT
    params = call.params
    return UseCaseAnswer(Doubled(params.address * 2 + params.manner, params.times), ttl_ms=1_000)


def failing(error: BaseException) -> Handler:
    async def handler(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
        raise error

    return handler


def answering(answered: UseCaseAnswer[Any]) -> Handler:
    async def handler(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Any]:
        return answered

    return handler


PLAIN = Operation(double, DispatchParams, Doubled, "double", "Double", "Doubles.")
SHARED = replace(PLAIN, shared_by=lambda params: params.address)
POSTED = replace(PLAIN, method="POST", path="/v1/double/{address}")


@dataclass
class DispatchHouse:
    """A dispatch over nothing."""

    clock: Clock = field(default_factory=lambda: Clock(1_000.0))
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        wall = Wall()
        gate = Gate(MinuteLimits(wall), ALLOWANCES, CallCounter(self.counts, wall))
        self.dispatch = Dispatch(CONTEXT, gate, SharedAnswers(self.clock))

    async def ask(self, operation: AnyOperation = PLAIN, **raw: object) -> DoorReply:
        return await self.dispatch.run(operation, raw or {"address": "x"}, CALLER)

    async def fails(self, error: BaseException, operation: AnyOperation = PLAIN) -> DoorReply:
        return await self.ask(replace(operation, handler=failing(error)))

    async def left(self) -> int:
        """What one more call would leave."""
        return int((await self.ask()).headers["x-ratelimit-remaining"])


@pytest.fixture
def house() -> DispatchHouse:
    return DispatchHouse()


def error_in(body: bytes) -> tuple[str, str]:
    decoded = msgspec.json.decode(body)
    assert decoded.keys() == {"error"}
    assert decoded["error"].keys() == {"code", "message"}
    return decoded["error"]["code"], decoded["error"]["message"]


async def test_who_is_in_his_own_way_is_told_busy_and_counted(house: DispatchHouse) -> None:
    reply = await house.fails(ServiceFull("busy", "Wait.", 1, counts=True))
    assert (reply.status, error_in(reply.body)[0]) == (503, "busy")
    assert reply.headers["x-ratelimit-remaining"] == "2"


async def test_what_runs_strangers_code_has_a_node_of_the_callers_own(house: DispatchHouse) -> None:
    """Whose places at the node it takes is the caller's, not everybody's."""
    given: list[tuple[str | None, ...]] = []

    class Waking:
        async def wake(self) -> None:
            given.append(("woken",))

    @dataclass
    class Named:
        measures: Measures = field(default_factory=Measures)
        heads: Waking = field(default_factory=Waking)
        chain_id: int = 4663

        def for_caller(self, caller: str, lane: str, token: str | None, address: str | None) -> "Named":
            given.append((caller, lane, token, address))
            return self

    async def handler(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
        return UseCaseAnswer(Doubled("", 0))

    house.dispatch = replace(house.dispatch, ctx=cast(Context, Named()))
    assert (await house.ask(replace(PLAIN, handler=handler, lane="calls"))).status == 200
    assert (await house.ask(replace(PLAIN, handler=handler))).status == 200
    assert given == [(CALLER.name, "calls", "x", CALLER.name), ("woken",)]


# --- answers ---------------------------------------------------------------------------------------


async def test_an_answer_is_written_as_json_with_what_is_left(house: DispatchHouse) -> None:
    reply = await house.ask(address="ab", times=7)
    assert msgspec.json.decode(reply.body) == {"text": "abab", "number": 7}
    assert (reply.status, reply.error) == (200, None)
    assert reply.headers == {"x-ratelimit-limit": "3", "x-ratelimit-remaining": "2"}


async def test_a_shared_answer_says_whether_it_was_there(house: DispatchHouse) -> None:
    asked = [await house.ask(SHARED, address=a, times=t) for a, t in (("a", 1), ("a", 2), ("b", 3))]
    assert [reply.headers["x-cache"] for reply in asked] == ["miss", "hit", "miss"]
    assert asked[0].body == asked[1].body
    assert [reply.headers["x-ratelimit-remaining"] for reply in asked] == ["2", "1", "0"]


async def test_a_shared_answer_grows_old(house: DispatchHouse) -> None:
    await house.ask(SHARED)
    house.clock.now_s += 1.0
    assert (await house.ask(SHARED)).headers["x-cache"] == "miss"


async def test_two_operations_share_nothing_with_each_other(house: DispatchHouse) -> None:
    await house.ask(SHARED)
    other = replace(SHARED, name="other", handler=answering(UseCaseAnswer(Doubled("other", 0))))
    reply = await house.ask(other)
    assert reply.headers["x-cache"] == "miss"
    assert msgspec.json.decode(reply.body)["text"] == "other"


async def test_an_answer_that_is_not_shared_says_nothing_of_it(house: DispatchHouse) -> None:
    assert "x-cache" not in (await house.ask()).headers


async def test_callers_in_this_process_get_the_answer_itself_unless_it_is_stored(
    house: DispatchHouse,
) -> None:
    assert (await house.ask(PLAIN)).answer == Doubled("xx", 1)
    assert [(await house.ask(SHARED)).answer for _ in range(2)] == [None, None]


async def test_an_operation_that_is_not_counted_neither_counts_nor_says_so(house: DispatchHouse) -> None:
    free = replace(PLAIN, counts="never")
    for _ in range(10):
        assert (await house.ask(free)).headers == {}
    assert await house.left() == 2


async def test_an_answer_that_does_not_count_hands_the_call_back(house: DispatchHouse) -> None:
    spoiled = replace(SHARED, handler=answering(UseCaseAnswer(Doubled("x", 1), ttl_ms=1_000, counted=False)))
    replies = [await house.ask(spoiled) for _ in range(5)]
    assert [reply.headers["x-cache"] for reply in replies] == ["miss", "hit", "hit", "hit", "hit"]
    assert [reply.headers["x-ratelimit-remaining"] for reply in replies] == ["3"] * 5
    assert await house.left() == 2


# --- failures --------------------------------------------------------------------------------------

EXPECTED: list[RoundtripError] = [
    CallerFault("bad_input", "No."),
    CallerFault("not_found", "Not here."),
    NodeFault("it took too long"),
    ServiceFull("busy", "Later.", 1),
    ServiceFull("budget_spent", "Tomorrow.", 40_000),
]


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: error.code)
@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_an_error_of_ours_keeps_its_code_and_its_words(
    house: DispatchHouse, operation: AnyOperation, error: RoundtripError
) -> None:
    with capture_logs() as logged:
        reply = await house.fails(error, operation)
    assert reply.status == STATUS_BY_CODE[error.code]
    text = error.message
    if error.status < 500:
        assert reply.error is error
        assert logged == []
    else:
        (event,) = logged
        text += f" Request {event['request']}."
        assert (event["event"], event["log_level"]) == ("a request failed", "warning")
        assert (event["code"], event["said"]) == (error.code, error.message)
        assert (event["operation"], event["door"]) == ("double", "http")
    assert error_in(reply.body) == (error.code, text)
    wait_s = error.retry_after_s or (NODE_RETRY_S if error.code == "upstream" else None)
    assert reply.headers.get("retry-after") == (None if wait_s is None else str(wait_s))
    assert "x-cache" not in reply.headers


@pytest.mark.parametrize("error", EXPECTED, ids=lambda error: error.code)
async def test_failures_of_the_caller_count_and_ours_do_not(
    house: DispatchHouse, error: RoundtripError
) -> None:
    counts = error.status < 500
    reply = await house.fails(error)
    assert reply.headers["x-ratelimit-limit"] == "3"
    assert reply.headers["x-ratelimit-remaining"] == ("2" if counts else "3")
    assert await house.left() == (1 if counts else 2)


@pytest.mark.parametrize(
    "error", [ValueError(SECRET), KeyError(SECRET), RecursionError(SECRET), AssertionError(SECRET)]
)
@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_an_unknown_failure_tells_nothing_but_a_request_id(
    house: DispatchHouse, operation: AnyOperation, error: Exception
) -> None:
    with capture_logs() as logged:
        reply = await house.fails(error, operation)
    code, message = error_in(reply.body)
    assert (reply.status, code) == (500, "internal")
    assert SECRET not in reply.body.decode() + str(reply.headers)
    (event,) = logged
    assert message == f"An error occurred in this service. Request {event['request']}."
    assert (event["operation"], event["log_level"]) == ("double", "error")
    assert len(event["request"]) == 12
    assert await house.left() == 2


async def test_every_unknown_failure_has_its_own_request_id(house: DispatchHouse) -> None:
    with capture_logs():
        bodies = {(await house.fails(ValueError())).body for _ in range(3)}
    assert len(bodies) == 3


async def test_failures_by_the_thousand_do_not_fill_the_log(house: DispatchHouse) -> None:
    house.dispatch = replace(house.dispatch, clock=house.clock)
    busy = ServiceFull("busy", "Later.", 1)
    with capture_logs() as logged:
        answer = {(await house.fails(busy)).body for _ in range(MAX_A_SECOND + 5)}
        house.clock.now_s += 1
        await house.fails(busy)
        await house.fails(busy)
    assert len(answer) == MAX_A_SECOND + 5
    assert [event.get("left_out") for event in logged] == [*([None] * MAX_A_SECOND), 5, None]


async def test_requests_and_their_errors_are_counted_by_closed_sets(house: DispatchHouse) -> None:
    measures = Measures()
    house.dispatch = replace(
        house.dispatch, ctx=cast(Context, SimpleNamespace(measures=measures, chain_id=4663))
    )
    unlike = replace(PLAIN, handler=answering(UseCaseAnswer(Doubled("", 0))))
    with capture_logs():
        await house.fails(NodeFault("it took too long"))
        await house.ask(unlike, nothing="that fits")
        await house.dispatch.run(unlike, {"address": "x"}, CALLER, door="mcp")
    assert set(measures.counts()) == {
        ("requests", ("http", "failed"), 1),
        ("requests", ("http", "refused"), 1),
        ("requests", ("mcp", "made"), 1),
        ("errors", ("double", "upstream"), 1),
        ("errors", ("double", "bad_input"), 1),
    }


WRONG_ANSWERS: list[Any] = [
    DispatchParams("x"),
    None,
    {"text": "x"},
    {"text": 5, "number": 1},
    Doubled("x", "1"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("answer", WRONG_ANSWERS, ids=str)
@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_an_answer_of_another_shape_does_not_go_out(
    house: DispatchHouse, operation: AnyOperation, answer: Any
) -> None:
    broken = replace(operation, handler=answering(UseCaseAnswer(answer, ttl_ms=1_000)))
    with capture_logs():
        replies = [await house.ask(broken) for _ in range(2)]
    assert [error_in(reply.body)[0] for reply in replies] == ["internal", "internal"]
    assert await house.left() == 2


async def test_past_the_limit_nothing_runs(house: DispatchHouse) -> None:
    ran = []

    async def noting(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
        ran.append(call.params)
        return UseCaseAnswer(Doubled("", 0))

    counting = replace(PLAIN, handler=noting)
    for _ in range(3):
        await house.ask(counting)
    reply = await house.ask(counting)
    assert len(ran) == 3
    assert (reply.status, error_in(reply.body)[0]) == (429, "rate_limited")
    assert isinstance(reply.error, LimitReached)
    assert reply.headers == {"x-ratelimit-limit": "3", "x-ratelimit-remaining": "0", "retry-after": "60"}


@pytest.mark.parametrize("counts", ["day", "never"])
@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_what_takes_too_long_is_told_busy_and_costs_nothing(
    house: DispatchHouse, operation: AnyOperation, counts: Any
) -> None:
    """Its place is free again, too."""
    ended = []

    async def forever(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            ended.append(call.params)

    house.dispatch = replace(house.dispatch, deadline_s=0.0, shared=SharedAnswers(house.clock, RunPlaces(1)))
    slow = replace(operation, handler=forever, counts=counts)
    for _ in range(5):
        reply = await house.ask(slow)
        assert (reply.status, error_in(reply.body)[0]) == (503, "busy")
        assert error_in(reply.body)[1].startswith(TookTooLong().message)
        assert reply.headers["retry-after"] == "1"
        assert reply.headers.get("x-ratelimit-remaining") == (None if counts == "never" else "3")
    assert len(ended) == 5


async def test_a_timeout_of_a_use_cases_own_is_a_fault_of_ours(house: DispatchHouse) -> None:
    with capture_logs():
        assert error_in((await house.fails(TimeoutError())).body)[0] == "internal"


async def test_a_handler_that_needs_a_key_is_given_its_account(house: DispatchHouse) -> None:
    async def whose(call: HandlerCall[DispatchParams]) -> UseCaseAnswer[Doubled]:
        owner = call.owner()
        return UseCaseAnswer(Doubled(owner.designation, owner.id))

    operation = replace(PLAIN, handler=whose, key=True)
    house.counts.live[hashed("k")] = account(7)
    keyed = await house.dispatch.run(operation, {"address": "x"}, CallerRequest(CALLER.name, key_of("k")))
    assert msgspec.json.decode(keyed.body) == {"text": "mite-0007", "number": 7}
    assert keyed.headers == {"x-ratelimit-limit": "5", "x-ratelimit-remaining": "4"}
    for key, code, left in ((None, "key_needed", "2"), ("dead", "bad_key", "1")):
        reply = await house.dispatch.run(
            operation, {"address": "x"}, CallerRequest(CALLER.name, None if key is None else key_of(key))
        )
        assert (reply.status, error_in(reply.body)[0]) == (401, code)
        assert reply.headers == {"x-ratelimit-limit": "3", "x-ratelimit-remaining": left}


@pytest.mark.parametrize(
    "shown",
    [
        CallerRequest(CALLER.name, key_of("dead")),
        CallerRequest(CALLER.name, "rt_x"),
        CallerRequest(CALLER.name, two_keys=True),
    ],
    ids=["dead", "mistyped", "two"],
)
async def test_who_asks_for_a_key_may_still_carry_a_dead_one(
    house: DispatchHouse, shown: CallerRequest
) -> None:
    operation = replace(PLAIN, ignores_key=True)
    reply = await house.dispatch.run(operation, {"address": "x"}, shown)
    assert (reply.status, reply.headers["x-ratelimit-limit"]) == (200, "3")
    # Counted like a caller without a key, once.
    assert reply.headers["x-ratelimit-remaining"] == "2"
    assert "bad_key" not in operation.codes()
    assert "bad_key" in PLAIN.codes()


async def test_past_the_day_the_headers_speak_of_the_minute(house: DispatchHouse) -> None:
    house.counts.live[hashed("k")] = account(7)
    house.dispatch.gate.allowances = replace(ALLOWANCES, key=CallAllowance(5, 1))
    asking = CallerRequest(CALLER.name, key_of("k"))
    await house.dispatch.run(PLAIN, {"address": "x"}, asking)
    reply = await house.dispatch.run(PLAIN, {"address": "x"}, asking)
    assert (reply.status, error_in(reply.body)[0]) == (429, "daily_limit")
    assert (reply.headers["x-ratelimit-limit"], reply.headers["x-ratelimit-remaining"]) == ("5", "4")
    assert 0 < int(reply.headers["retry-after"]) <= 86_400


@pytest.mark.parametrize("door", ["http", "mcp", "pages"])
@pytest.mark.parametrize("operation", [PLAIN, SHARED], ids=["own", "shared"])
async def test_a_refusal_counts_where_the_callers_own_runs_are_the_reason(
    house: DispatchHouse, operation: AnyOperation, door: Any
) -> None:
    places = RunPlaces(2)
    house.dispatch = replace(house.dispatch, shared=SharedAnswers(house.clock, places))
    taken = [places.take_now(FlightCaller(name)) for name in ("a", CALLER.name)]
    assert None not in taken
    line = [asyncio.create_task(places.wait(FlightCaller(CALLER.name, wait_s=60.0))) for _ in range(MAX_LINE)]
    await asyncio.sleep(0)
    reply = await house.dispatch.run(operation, {"address": "x"}, CALLER, door=door)
    assert (reply.status, error_in(reply.body)[0]) == (503, "busy")
    assert (reply.headers["retry-after"], reply.headers["x-ratelimit-remaining"]) == ("1", "2")
    for place in taken:
        assert place is not None
        place.end()
    for waiting in line:
        waiting.cancel()
    await asyncio.gather(*line, return_exceptions=True)


@pytest.mark.parametrize(
    "raw", [{"times": 1}, {"address": 5}, {"address": None}, {"address": "x", "times": "1"}]
)
@pytest.mark.parametrize("code", ["bad_input", "bad_address"])
async def test_parameters_that_do_not_fit_have_the_operations_code(
    house: DispatchHouse, raw: dict[str, object], code: str
) -> None:
    reply = await house.ask(replace(SHARED, bad_params=code), **raw)
    assert (reply.status, error_in(reply.body)[0]) == (400, code)
    assert reply.headers["x-ratelimit-remaining"] == "2"


async def test_an_unknown_parameter_is_bad_input_everywhere(house: DispatchHouse) -> None:
    reply = await house.ask(replace(SHARED, bad_params="bad_address"), address="x", more=1)
    code, message = error_in(reply.body)
    assert (reply.status, code) == (400, "bad_input")
    assert message.startswith('"more" is not an argument')


async def test_the_message_names_the_field_that_does_not_fit(house: DispatchHouse) -> None:
    reply = await house.ask(address="x", times="many")
    assert "times" in error_in(reply.body)[1]


async def test_a_key_in_the_wrong_place_is_not_repeated(house: DispatchHouse) -> None:
    key = format_key(bytes(32))
    for wrong in ({key: 1}, {"address": "x", key: key}, {"address": "x", "times": key}):
        assert key[:9] not in error_in((await house.ask(**wrong)).body)[1]


async def test_a_good_address_is_not_blamed_for_another_field(house: DispatchHouse) -> None:
    reply = await house.ask(replace(PLAIN, bad_params="bad_address"), address="x", more=1)
    assert "more" in error_in(reply.body)[1]


@pytest.mark.parametrize("params", [WalletParams, CheckParams])
async def test_a_bad_address_is_named_with_an_example(house: DispatchHouse, params: type[Any]) -> None:
    reply = await house.ask(replace(PLAIN, params=params, bad_params="bad_address"), address="0x12")
    code, message = error_in(reply.body)
    assert code == "bad_address"
    assert message.startswith('address must be 0x and 40 hex digits, such as "0x')


# --- bodies at the HTTP door -----------------------------------------------------------------------


@dataclass
class Door:
    """One endpoint, driven as a server would."""

    operation: AnyOperation = POSTED
    house: DispatchHouse = field(default_factory=DispatchHouse)

    async def ask(
        self,
        *parts: bytes,
        address: str = "ab",
        headers: list[tuple[bytes, bytes]] | None = None,
        cut: bool = False,
        query: bytes | None = None,
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        """Sends ``parts`` as the body; ``cut``: the client goes away after them."""
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": part, "more_body": cut or n < len(parts)}
            for n, part in enumerate(parts, 1)
        ]
        messages.append({"type": "http.disconnect"})
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "headers": headers or [],
            "client": ("203.0.113.7", 1),
            "path_params": {"address": address},
        }
        if query is not None:
            scope["query_string"] = query
        await OperationEndpoint(self.operation, self.house.dispatch, Callers())(scope, receive, send)
        start, body = sent
        assert (start["type"], body["type"]) == ("http.response.start", "http.response.body")
        assert dict(start["headers"])[b"content-length"] == b"%d" % len(body["body"])
        return start["status"], dict(start["headers"]), body["body"]


@pytest.fixture
def door() -> Door:
    return Door()


async def test_a_body_is_put_together_from_its_pieces(door: Door) -> None:
    status, headers, body = await door.ask(b'{"ti', b"", b'mes": 7}')
    assert (status, msgspec.json.decode(body)) == (200, {"text": "abab", "number": 7})
    assert headers[b"content-type"] == b"application/json"
    assert headers[b"x-ratelimit-remaining"] == b"2"


async def test_the_path_comes_before_the_body(door: Door) -> None:
    _, _, body = await door.ask(b'{"address": "other"}', address="cd")
    assert msgspec.json.decode(body)["text"] == "cdcd"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad_json"),
        (b"{", "bad_json"),
        (b"{'times': 1}", "bad_json"),
        (b"\xff\xfe", "bad_json"),
        (b'{"times": "\xff"}', "bad_json"),
        (b"times=1", "bad_json"),
        (b'{"times": 1} {"times": 1}', "bad_json"),
        (b'{"times": NaN}', "bad_json"),
        (b'{"times": ' + b"9" * 5_000 + b"}", "bad_json"),
        (b"[" * 60_000, "bad_json"),
        (b"[" * 30_000 + b"]" * 30_000, "bad_json"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "bad_json"),
        (b"[]", "bad_input"),
        (b"null", "bad_input"),
        (b"7", "bad_input"),
        (b'"times"', "bad_input"),
        (b'{"times": "1"}', "bad_input"),
        (b'{"more": 1}', "bad_input"),
    ],
    ids=lambda value: value[:16].decode("latin-1") + f" {len(value)}" if isinstance(value, bytes) else value,
)
async def test_a_body_that_cannot_be_read_has_its_code(door: Door, body: bytes, code: str) -> None:
    with interpreters_recursion_limit():
        status, headers, answer = await door.ask(body)
    assert (status, error_in(answer)[0]) == (400, code)
    assert headers[b"content-type"] == b"application/json"


def test_the_services_process_keeps_the_interpreters_recursion_limit() -> None:
    """Far above it, JSON nested 60 000 deep ends the process instead of raising RecursionError."""
    asked = (
        "import sys; before = sys.getrecursionlimit(); from roundtrip.cli import commands, main; "
        "print([n for n in commands.COMMANDS if main.command(n) and sys.getrecursionlimit() > before])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_body_is_read_up_to_its_limit_and_no_further() -> None:
    small = b'{"times": 7}'
    fits = small.ljust(MAX_BODY_BYTES)
    assert (await Door().ask(fits))[0] == 200
    assert (await Door().ask(fits[:100], fits[100:]))[0] == 200
    for parts in ([fits + b" "], [fits, b" "], [b" " * 1_000] * 66):
        status, _, answer = await Door().ask(*parts)
        assert (status, error_in(answer)) == (
            400,
            ("bad_input", "The body is too large: the limit is 64 KiB."),
        )


@pytest.mark.parametrize("parts", [[], [b""], [b'{"times": 7}']])
async def test_a_client_that_goes_away_within_the_body_has_asked_once(door: Door, parts: list[bytes]) -> None:
    status, _, answer = await door.ask(*parts, cut=True)
    assert (status, error_in(answer)[0]) == (400, "bad_input")
    assert await door.house.left() == 1


async def test_a_dead_key_is_refused_before_the_body_is_read(door: Door) -> None:
    status, _, answer = await door.ask(b"{", headers=[(b"x-api-key", b"rt_x")])
    assert (status, error_in(answer)[0]) == (401, "bad_key")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [({"method": "GET"}, True), ({"method": "POST"}, False), ({"method": "GET", "key": True}, False)],
)
@pytest.mark.parametrize("key", [[], [(b"x-api-key", b"rt_x")]], ids=["answer", "error"])
async def test_only_reading_without_a_key_is_open_to_every_page(
    changes: dict[str, Any], shown: bool, key: list[tuple[bytes, bytes]]
) -> None:
    _, headers, _ = await Door(replace(POSTED, **changes)).ask(b"{}", headers=key)
    assert (headers.get(b"access-control-allow-origin") == b"*") is shown


async def test_a_get_takes_only_its_path(door: Door) -> None:
    door.operation = replace(POSTED, method="GET")
    status, _, body = await door.ask(b'{"times": 7}')
    assert (status, msgspec.json.decode(body)["number"]) == (200, 1)


ASKED = replace(POSTED, method="GET", query=("manner",))


@pytest.mark.parametrize(
    ("query", "text"),
    [(b"manner=slow", "ababslow"), (b"manner=%ff%00", "abab\ufffd\0"), (b"", "abab"), (None, "abab")],
)
async def test_of_a_query_only_what_the_operation_takes_by_it_counts(
    door: Door, query: bytes | None, text: str
) -> None:
    door.operation = ASKED
    status, _, body = await door.ask(query=query)
    assert (status, msgspec.json.decode(body)) == (200, {"text": text, "number": 1})


@pytest.mark.parametrize(
    ("query", "name"),
    [
        (b"times=9", "times"), (b"manner=slow&address=zz", "address"), (b"other=1", "other"),
        (b"Manner=slow", "Manner"), (b"=1", ""), (b"\xff\xfe", ""),
    ],
)  # fmt: skip
async def test_another_parameter_of_the_query_is_refused_by_name(door: Door, query: bytes, name: str) -> None:
    door.operation = ASKED
    status, _, body = await door.ask(query=query)
    code, message = error_in(body)
    assert (status, code) == (400, "bad_input")
    assert message.startswith(f'"{name}')


async def test_an_operation_without_a_query_takes_none(door: Door) -> None:
    door.operation = replace(ASKED, query=())
    status, _, body = await door.ask(query=b"manner=slow")
    assert (status, error_in(body)[0]) == (400, "bad_input")
    assert "It takes none." in error_in(body)[1]


async def test_what_comes_by_the_query_comes_by_nothing_else(house: DispatchHouse, door: Door) -> None:
    reply = await house.ask(ASKED, address="x", manner="slow")
    assert (reply.status, error_in(reply.body)[0]) == (400, "bad_input")
    assert "manner" in error_in(reply.body)[1]
    door.operation = replace(ASKED, method="POST")
    status, _, _ = await door.ask(b'{"manner": "slow"}', query=b"manner=fast")
    assert status == 400
