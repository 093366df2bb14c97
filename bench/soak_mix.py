"""The requests of a day in the shares of ``SHARES``, and the answers that they may get.

Tokens are drawn so that a few are asked for again and again, and one in three as evenly as can be: of what is
shared for fifteen seconds that leaves both sorts of checks, cached and cold.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from roundtrip.domain.base.errors import STATUS_BY_CODE

SHARES = {
    "check": 38, "check, deep": 4, "check by a tool": 12, "board": 9, "holders": 5, "wallet": 5, "look up": 5,
    "explain": 2, "simulate": 4, "prepare": 3, "page": 9, "document": 2, "health": 2,
}  # fmt: skip
"""Of a hundred requests."""
KEYED = 0.25
"""The share of those that come with a key, where one is read."""
_BOARDS = (
    "moving_now", "winners", "signals", "graduating_soon", "chain_vitals", "league", "wallet_names",
    "proven_calls",
)  # fmt: skip
_OF_TOKEN = ("token_holders", "smart_money", "launch_bundle")
_OF_WALLET = ("wallet_history", "linked_wallets")
_PAGES = ("/", "/boards", "/boards/winners", "/boards/moving_now/rows", "/status", "/scorecard", "/league")
_DOCUMENTS = ("/v1/tools.json", "/v1/openapi.json", "/llms.txt")
_EVENLY = 1 / 3
_STEEP = 0.9
"""Of the Pareto distribution by which the others are drawn."""


class Plan(msgspec.Struct, frozen=True):
    """What there is to ask for. ``levels``: what a check of a token may say, for those with a known truth:
    ``danger`` or ``ok``. ``simulated``: bodies of POST /v1/simulate. ``stream``: the path of a live board."""

    port: int
    tokens: list[str]
    levels: dict[str, str]
    wallets: list[str]
    symbols: list[str]
    transactions: list[str]
    simulated: list[dict[str, Any]]
    buyers: list[str]
    keys: list[str]
    stream: str = "/boards/moving_now/live"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as it goes out. ``form``: what comes back, ``json``, ``tool`` or ``page``. ``level``: what a
    check of it has to say, where that is known."""

    kind: str
    request: bytes
    form: str = "json"
    level: str = ""

    def caller(self) -> str:
        """Which sort of caller sends it: ``a page``, ``with a key`` or ``without a key``."""
        if self.form == "page":
            return "a page"
        return "with a key" if b"\r\nx-api-key: " in self.request else "without a key"


class _Verdict(msgspec.Struct):
    level: str


class _Fault(msgspec.Struct):
    code: str


class _Plain(msgspec.Struct):
    verdict: _Verdict | None = None
    error: _Fault | None = None


class _Text(msgspec.Struct):
    text: str


class _Result(msgspec.Struct):
    content: list[_Text] = []
    isError: bool = False  # noqa: N815
    structuredContent: _Plain | None = None  # noqa: N815


class _Rpc(msgspec.Struct):
    result: _Result | None = None
    error: _Fault | None = None


class _RpcFault(msgspec.Struct):
    error: dict[str, Any] | None = None


_plain = msgspec.json.Decoder(_Plain)
_rpc = msgspec.json.Decoder(_Rpc)


def outcome(ask: Ask, status: int, body: bytes) -> tuple[str, str]:
    """The outcome in a word (``ok``, the code of an error, ``page 503``, ``strange ...`` for what nothing
    says may come), and what is wrong with it, "" mostly."""
    try:
        if ask.form == "page":
            said = "ok" if status == 200 else f"page {status}"
            return said, "an undocumented page" if status in (500, 504) else ""
        if ask.form == "tool":
            return _of_tool(ask, status, body)
        told = _plain.decode(body) if status != 200 or ask.level else _Plain()
    except msgspec.DecodeError as error:
        return f"strange {status}", f"{ask.kind}: {status}, {error}: {body[:200]!r}"
    if told.error is not None:
        return _faulty(ask, told.error.code, status)
    return "ok", _misled(ask, told)


def _of_tool(ask: Ask, status: int, body: bytes) -> tuple[str, str]:
    told = _rpc.decode(body) if status == 200 else None
    if told is None or told.result is None:
        # Before a call is a call, errors are as HTTP has them.
        code = msgspec.json.decode(body, type=_Plain).error
        return _faulty(ask, code.code if code else f"strange {status}", status)
    if told.result.isError:
        return _faulty(ask, told.result.content[0].text.partition(":")[0], None)
    return "ok", _misled(ask, told.result.structuredContent or _Plain())


def _faulty(ask: Ask, code: str, status: int | None) -> tuple[str, str]:
    if code == "internal":
        return code, f"{ask.kind}: internal"
    if (status is not None and STATUS_BY_CODE.get(code) != status) or code not in STATUS_BY_CODE:
        return f"strange {code}", f"{ask.kind}: {code} with the status {status}"
    return code, ""


def _misled(ask: Ask, told: _Plain) -> str:
    """``unknown`` says that it could not be found out, which is no wrong answer."""
    if not ask.level or told.verdict is None or told.verdict.level in (ask.level, "unknown"):
        return ""
    return f"{ask.kind}: {told.verdict.level} for a token that is {ask.level}"


class Mix:
    """Draws one request after another."""

    def __init__(self, plan: Plan, rng: Random) -> None:
        self._plan, self._rng = plan, rng
        self._host = f"host: 127.0.0.1:{plan.port}\r\n"
        made: dict[str, Callable[[], Ask]] = {
            "check": self._check, "check, deep": self._deep, "check by a tool": self._check_tool,
            "board": self._board, "holders": self._holders, "wallet": self._wallet, "look up": self._look_up,
            "explain": self._explain, "simulate": self._simulate, "prepare": self._prepare,
            "page": self._page, "document": self._document, "health": self._health,
        }  # fmt: skip
        self._makes = [made[kind] for kind in SHARES]
        self._weights = list(SHARES.values())

    def draw(self) -> Ask:
        """The next request."""
        return self._rng.choices(self._makes, self._weights)[0]()

    def _token(self) -> str:
        tokens = self._plan.tokens
        if self._rng.random() < _EVENLY:
            return self._rng.choice(tokens)
        return tokens[int(self._rng.paretovariate(_STEEP) - 1) % len(tokens)]

    def _get(self, kind: str, path: str, form: str = "json", level: str = "") -> Ask:
        more = "accept: text/html\r\n" if form == "page" else self._key()
        request = f"GET {path} HTTP/1.1\r\n{self._host}{more}\r\n"
        return Ask(kind, request.encode(), form, level)

    def _post(self, kind: str, path: str, given: dict[str, Any], form: str = "json", level: str = "") -> Ask:
        body = json.dumps(given)
        head = f"POST {path} HTTP/1.1\r\n{self._host}{self._key()}content-type: application/json\r\n"
        return Ask(kind, f"{head}content-length: {len(body)}\r\n\r\n{body}".encode(), form, level)

    def _tool(self, kind: str, name: str, level: str = "", **arguments: str) -> Ask:
        call = {"name": name, "arguments": arguments}
        given = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return self._post(kind, "/mcp", given, "tool", level)

    def _key(self) -> str:
        if self._rng.random() >= KEYED:
            return ""
        return f"x-api-key: {self._rng.choice(self._plan.keys)}\r\n"

    def _check(self) -> Ask:
        token = self._token()
        return self._get("check", f"/v1/check/{token}", level=self._plan.levels.get(token, ""))

    def _deep(self) -> Ask:
        token = self._token()
        return self._get("check, deep", f"/v1/check/{token}?deep=1", level=self._plan.levels.get(token, ""))

    def _check_tool(self) -> Ask:
        token = self._token()
        known = self._plan.levels.get(token, "")
        return self._tool("check by a tool", "check_token", known, address=token)

    def _board(self) -> Ask:
        return self._tool("board", self._rng.choice(_BOARDS))

    def _holders(self) -> Ask:
        if self._rng.random() < 0.5:
            return self._get("holders", f"/v1/holders/{self._token()}")
        return self._tool("holders", self._rng.choice(_OF_TOKEN), address=self._token())

    def _wallet(self) -> Ask:
        wallet = self._rng.choice(self._plan.wallets)
        return self._tool("wallet", self._rng.choice(_OF_WALLET), address=wallet)

    def _look_up(self) -> Ask:
        known: Sequence[str] = self._rng.choice((self._plan.symbols, self._plan.tokens, self._plan.wallets))
        return self._tool("look up", "look_up", query=self._rng.choice(known))

    def _explain(self) -> Ask:
        return self._tool("explain", "explain_transaction", hash=self._rng.choice(self._plan.transactions))

    def _simulate(self) -> Ask:
        return self._post("simulate", "/v1/simulate", self._rng.choice(self._plan.simulated))

    def _prepare(self) -> Ask:
        asked = {"token": self._token(), "from": self._rng.choice(self._plan.buyers), "amount": "0.05"}
        return self._post("prepare", "/v1/prepare/buy", asked)

    def _page(self) -> Ask:
        drawn = self._rng.random()
        if drawn < 0.3:
            return self._get("page", f"/token/{self._token()}", "page")
        if drawn < 0.5:
            return self._get("page", f"/wallet/{self._rng.choice(self._plan.wallets)}", "page")
        return self._get("page", self._rng.choice(_PAGES), "page")

    def _document(self) -> Ask:
        return self._get("document", self._rng.choice(_DOCUMENTS), "page")

    def _health(self) -> Ask:
        return self._get("health", "/v1/health")
