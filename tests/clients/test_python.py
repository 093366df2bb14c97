"""The Python client alone: retries, errors, the stream, webhooks."""

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import pytest

from roundtrip_client import (
    AsyncClient,
    Client,
    ConnectionFailed,
    Retries,
    ServiceError,
    UnreadableAnswer,
    WebhookRefused,
    calls,
    models,
    read_challenge,
    verify_webhook,
)
from roundtrip_client.calls import Call
from roundtrip_client.retries import read_retry_after
from support.python_clients import (
    CHECK,
    DOCUMENT,
    KEY,
    ClientStep,
    ScriptedClient,
    answer,
    events,
    example_of,
    lines,
    refusal,
    text_answer,
)
from support.webhook_vectors import CHALLENGE, NOW_S, SECRET, Vector, vectors

TOKEN = CHECK["address"]
PARAMS = models.KeyParams(address=TOKEN, signature="0x", agent=True)
CALLS: dict[str, Call[Any]] = {
    "check_token": calls.check("{address}", deep=True, amount="0.5", min_block=7),
    "check_tokens": calls.checks([TOKEN]),
    "check_proof": calls.proof("{address}"),
    "check_history": calls.history("{address}"),
    "token_holders": calls.holders("{address}"),
    "token_liquidity": calls.liquidity("{address}", min_block=7),
    "unlock_calendar": calls.unlocks(),
    "stream": calls.stream([TOKEN], ["verdict"], "1"),
    "simulate_transaction": calls.simulate(models.SimulateParams(from_=TOKEN, to=TOKEN), min_block=7),
    "prepare_buy": calls.prepare_buy(
        models.PrepareBuyParams(from_=TOKEN, token=TOKEN, amount="0.1"), min_block=7
    ),
    "prepare_sell": calls.prepare_sell(models.PrepareSellParams(from_=TOKEN, token=TOKEN), min_block=7),
    "key_nonce": calls.key_text(TOKEN),
    "make_key": calls.make_key(PARAMS),
    "list_keys": calls.keys(),
    "revoke_key": calls.revoke_key("{id}"),
    "credits": calls.credits(),
    "redeem_payment": calls.redeem_payment(models.PaymentParams(tx="0x")),
    "health": calls.health(),
}
"""Every operation of the document but its description for language models, with every parameter."""
OPERATIONS = {
    operation["operationId"]: (path, method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


@pytest.fixture(params=[False, True], ids=["blocking", "async"])
def scripted(request: pytest.FixtureRequest) -> Callable[..., ScriptedClient]:
    return lambda *steps, **more: ScriptedClient(request.param, list(steps), **more)


def test_every_operation_is_a_call() -> None:
    assert CALLS.keys() == OPERATIONS.keys() - {"tools"}
    methods = {
        name for name, value in vars(calls).items() if inspect.isfunction(value) and _builds_a_call(value)
    }
    for client in (Client, AsyncClient):
        assert methods <= {name for name in dir(client) if name[0] != "_"}


def _builds_a_call(function: Any) -> bool:
    return not function.__name__.startswith("_") and str(inspect.signature(function).return_annotation)[
        :100
    ].startswith("roundtrip_client.calls.Call[")


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_as_the_document_says(name: str) -> None:
    path, method, operation = OPERATIONS[name]
    call = CALLS[name]
    assert (call.path.replace("%7B", "{").replace("%7D", "}"), call.method.lower()) == (path, method)
    content, *_ = operation["responses"]["200"]["content"].values()
    assert content["schema"]["$ref"].split("/")[-1] == call.answer.__name__
    msgspec.convert(content["example"], call.answer)
    parameters = operation.get("parameters", ())
    for place, given in (("query", call.query), ("header", call.headers)):
        assert set(given) == {one["name"] for one in parameters if one["in"] == place}
    wanted = re.findall("schemas/([A-Za-z]+)'", str(operation.get("requestBody"))) or ["NoneType"]
    assert wanted == [type(call.body).__name__]


def test_an_answer_is_typed_and_the_request_has_key_and_parameters(
    scripted: Callable[..., ScriptedClient],
) -> None:
    client = scripted(answer(), answer(), answer(example_of("/v1/keys", "post")))
    check = client.method("check", TOKEN)
    assert (check.verdict.level, check.trade.round_trip_loss_bps) == ("ok", 60)
    client.send(calls.check("../keys", deep=True, amount="0.5", min_block=7))
    client.method("make_key", PARAMS)
    first, second, third = client.asked
    assert (str(first.url), first.headers["authorization"]) == (
        f"http://service/v1/check/{TOKEN}",
        f"Bearer {KEY}",
    )
    assert str(second.url) == "http://service/v1/check/..%2Fkeys?deep=1&amount=0.5"
    assert second.headers["x-min-block"] == "7"
    assert json.loads(third.content) == {"address": TOKEN, "signature": "0x", "label": "", "agent": True}


def test_values_and_fields_of_a_later_service_are_read(scripted: Callable[..., ScriptedClient]) -> None:
    later = {**CHECK, "flags": ["of_tomorrow"], "more": 1}
    assert scripted(answer(later)).method("check", TOKEN).flags == ["of_tomorrow"]


@pytest.mark.parametrize(
    ("steps", "slept"),
    [
        ([refusal(429, "rate_limited", retry_after="7")], [7.0]),
        ([refusal(503, "busy", retry_after="1"), refusal(503, "busy", retry_after="2")], [1.0, 2.0]),
        ([refusal(502, "upstream"), refusal(502, "upstream"), refusal(502, "upstream")], [0.5, 1.0, 2.0]),
        ([httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow")], [0.5, 1.0]),
        ([text_answer("<html>", 504)], [0.5]),
        ([lines("{", cut=True)], [0.5]),
    ],
    ids=["limit", "busy", "node", "network", "proxy", "cut"],
)
def test_what_passes_is_waited_for(
    scripted: Callable[..., ScriptedClient], steps: list[ClientStep | Exception], slept: list[float]
) -> None:
    client = scripted(*steps, answer())
    assert client.method("check", TOKEN).address == TOKEN
    assert client.slept == slept


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (refusal(400, "bad_address"), "bad_address"),
        (refusal(401, "bad_key"), "bad_key"),
        (refusal(500, "internal"), "internal"),
        (refusal(429, "daily_limit", retry_after="3600"), "daily_limit"),
        (text_answer("<html>", 404), "no_answer"),
        (text_answer("", 307, location="http://elsewhere/"), "no_answer"),
    ],
)
def test_what_does_not_pass_is_raised_at_once_with_the_requests_id(
    scripted: Callable[..., ScriptedClient], step: ClientStep, code: str
) -> None:
    client = scripted(step)
    with pytest.raises(ServiceError, match="request rrrrrrrr") as raised:
        client.method("check", TOKEN)
    assert (raised.value.code, raised.value.status, raised.value.request_id) == (code, step.status, "r" * 8)
    assert raised.value.retry_after_s == (3600 if code == "daily_limit" else None)
    assert (client.slept, len(client.asked)) == ([], 1)


def test_attempts_end(scripted: Callable[..., ScriptedClient]) -> None:
    client = scripted(*(refusal(503, "busy") for _ in range(2)), retries=Retries(attempts=2))
    with pytest.raises(ServiceError):
        client.method("check", TOKEN)
    client = scripted(*(httpx2.ConnectError("refused") for _ in range(4)))
    with pytest.raises(ConnectionFailed):
        client.method("check", TOKEN)
    assert client.slept == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "step", [httpx2.ReadTimeout("slow"), refusal(503, "busy", retry_after="1"), refusal(502, "upstream")]
)
def test_what_must_not_happen_twice_is_sent_again_only_if_it_did_not_happen(
    scripted: Callable[..., ScriptedClient], step: ClientStep | Exception
) -> None:
    made = example_of("/v1/keys", "post")
    client = scripted(
        httpx2.ConnectError("refused"), refusal(429, "rate_limited", retry_after="3"), answer(made)
    )
    assert client.method("make_key", PARAMS).key == made["key"]
    client = scripted(step)
    with pytest.raises((ServiceError, ConnectionFailed)):
        client.method("make_key", PARAMS)
    assert client.slept == []


@pytest.mark.parametrize("body", ["<html>", "{}", ""])
def test_an_answer_that_is_none_is_an_error(scripted: Callable[..., ScriptedClient], body: str) -> None:
    with pytest.raises(UnreadableAnswer, match=r"Check.*request rrrrrrrr"):
        scripted(text_answer(body)).method("check", TOKEN)


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("7", 7.0), ("Mon, 05 Jan 2026 12:00:11 GMT", 10.0), ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None), ("-1", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_retry_after_names_seconds_or_a_date(text: str | None, wait_s: float | None) -> None:
    assert read_retry_after(text, NOW_S) == wait_s


def test_lines_come_one_by_one_and_a_cut_is_an_error(scripted: Callable[..., ScriptedClient]) -> None:
    line = json.dumps(example_of("/v1/checks", "post"))
    found: list[models.CheckLine] = []
    client = scripted(refusal(503, "busy", retry_after="1"), lines(line[:50], line[50:] + "\n", line + "\n"))
    client.checks([TOKEN], found)
    assert [line.address for line in found] == [example_of("/v1/checks", "post")["address"]] * 2
    assert client.slept == [1.0]
    with pytest.raises(ConnectionFailed):
        scripted(lines(line + "\n", cut=True)).checks([TOKEN], found)
    assert len(found) == 3


def event(number: int, kind: str = "verdict") -> str:
    data = json.dumps({**example_of("/v1/stream"), "kind": kind, "text": str(number)})
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"


def test_a_stream_goes_on_after_its_last_event(scripted: Callable[..., ScriptedClient]) -> None:
    client = scripted(
        events("retry: 750\nid: 1\n\n", event(2)[:30], event(2)[30:], ": still there\nid: 3\n\n", cut=True),
        *(httpx2.ConnectError("refused") for _ in range(6)),
        refusal(429, "rate_limited", retry_after="9"),
        events(event(4, "gap") + event(5), "id: 6\nevent: verdict\ndata: {"),
        events(event(6)),
    )
    found, last_id = client.stream(4, tokens=[TOKEN], events=["verdict"])
    assert [(one.kind, one.text) for one in found] == [
        ("verdict", "2"), ("gap", "4"), ("verdict", "5"), ("verdict", "6"),
    ]  # fmt: skip
    assert [request.url.params.get("lastEventId") for request in client.asked] == [None, *["3"] * 8, "5"]
    assert client.asked[0].url.params["tokens"] == TOKEN
    assert client.slept == [0.75, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 9.0, 0.75]
    assert last_id == "6"


@pytest.mark.parametrize(("retry_ms", "pause_s"), [("0", 0.5), ("99999999999", 60.0), ("x", 1.0)])
def test_a_service_cannot_make_a_client_hurry_or_sleep_for_ever(
    scripted: Callable[..., ScriptedClient], retry_ms: str, pause_s: float
) -> None:
    client = scripted(events(f"retry: {retry_ms}\nid: 1\n\n"), events(event(2)))
    client.stream(1)
    assert client.slept == [pause_s]


MIB = "x" * 2**20


@pytest.mark.parametrize("status", [200, 503])
def test_a_body_is_read_to_a_limit(scripted: Callable[..., ScriptedClient], status: int) -> None:
    client = scripted(ClientStep(status, [MIB] * 17, {}))
    with pytest.raises(UnreadableAnswer, match="longer than 16,777,216 bytes"):
        client.send(CALLS["health"])
    assert not client.slept


def test_a_line_and_an_event_are_read_to_a_limit(scripted: Callable[..., ScriptedClient]) -> None:
    found: list[models.CheckLine] = []
    for parts in ([MIB, MIB], [MIB + "x\n"]):
        with pytest.raises(UnreadableAnswer, match="a line is longer"):
            scripted(lines(*parts)).checks([TOKEN], found)
    for parts in ([f"data: {MIB}", MIB], [f"data: {MIB}\n\n"], ["data: x\n" * 200_000]):
        with pytest.raises(UnreadableAnswer):
            scripted(events(*parts)).stream(1)
    assert not found


def test_a_stream_that_never_opened_fails_and_so_does_a_key_that_was_revoked(
    scripted: Callable[..., ScriptedClient],
) -> None:
    client = scripted(*(httpx2.ConnectError("refused") for _ in range(4)))
    with pytest.raises(ConnectionFailed):
        client.stream(1)
    client = scripted(events(event(1)), refusal(401, "bad_key"))
    with pytest.raises(ServiceError, match="bad_key"):
        client.stream(2, last_event_id="0")
    assert [request.url.params["lastEventId"] for request in client.asked] == ["0", "1"]


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector.name)
def test_a_webhook_is_verified(vector: Vector) -> None:
    if vector.is_ours:
        message = verify_webhook(SECRET, vector.headers, vector.body, NOW_S)
        assert (message.kind, message.rows[0].id, message.rows[0].text) == ("rule", 4711, "naïve ☃")
        assert read_challenge(vector.headers) == CHALLENGE
    else:
        with pytest.raises(WebhookRefused):
            verify_webhook(SECRET, vector.headers, vector.body, NOW_S)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_§", SECRET.removeprefix("whsec_")])
def test_a_secret_that_is_none_verifies_nothing(secret: str) -> None:
    with pytest.raises(ValueError, match=r"secret|base64|ASCII|padding"):
        verify_webhook(secret, vectors()[0].headers, vectors()[0].body, NOW_S)


def test_a_challenge_has_its_form() -> None:
    assert read_challenge({"webhook-challenge": "<script>"}) == read_challenge({}) == ""
