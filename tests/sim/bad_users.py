"""Who uses the service meanwhile: a small steady crowd, and what each of them saw."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from eth_account import Account
from eth_account.messages import encode_defunct

from roundtrip.domain.base.errors import STATUS_BY_CODE
from sim.arena import WentWrong

PATIENCE_S = 45.0
OK, LOST = "ok", "lost"
BOARDS = ("moving_now", "graduating_soon", "signals", "winners")


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """One answer. ``code``: "ok", a code of the service's, or "lost": the connection ended without one.
    ``level``: of a check's verdict. ``age_s``: since that was made."""

    began_s: float
    took_s: float
    who: str
    code: str
    token: str = ""
    level: str = ""


@dataclass
class Crowd:
    """``tokens``: that are asked about, by their stories. ``levels``: what each is without a fault.
    ``is_live``: whether the board that is looked at is connected."""

    session: aiohttp.ClientSession
    base_url: str
    tokens: dict[str, str]
    levels: dict[str, str] = field(default_factory=dict)
    key: str = ""
    said: list[UserAnswer] = field(default_factory=list)
    events: int = 0
    is_live: bool = False
    is_over: bool = False

    # --- one request ----------------------------------------------------------------------------

    async def _asked(self, who: str, method: str, path: str, body: Any = None, key: bool = False) -> Any:
        began_s = time.monotonic()
        headers = {"x-api-key": self.key} if key else {}
        code: str = LOST
        answer: Any = None
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
            asking = self.session.request(method, self.base_url + path, json=body, headers=headers)
            async with asking as response:
                answer = await response.json()
                code = OK if response.status == 200 else self._code(response.status, answer)
        if code == OK and path == "/mcp":
            code, answer = _of_tool(answer)
        if code == OK and path == "/v1/health" and not answer["ok"]:
            code = "not well"
        is_check = path.startswith("/v1/check/")
        level = answer["verdict"]["level"] if code == OK and is_check else ""
        token = path.rpartition("/")[2] if is_check else ""
        took_s = time.monotonic() - began_s
        self.said.append(UserAnswer(began_s, took_s, who, code, token, level))
        return answer if code == OK else None

    def _code(self, status: int, answer: Any) -> str:
        code = answer["error"]["code"]
        if STATUS_BY_CODE.get(code) != status:
            raise WentWrong(f"status {status} with {answer}")
        return str(code)

    async def tool(self, who: str, name: str, /, key: bool = False, **arguments: Any) -> Any:
        """A tool's answer; None where there is none."""
        call = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        return await self._asked(who, "POST", "/mcp", body, key)

    async def check(self, token: str, key: bool = False) -> str:
        """The verdict's level; "" where there is none."""
        found = await self._asked("keyed check" if key else "check", "GET", f"/v1/check/{token}", key=key)
        return "" if found is None else str(found["verdict"]["level"])

    async def health(self) -> bool:
        """Whether it says that it is well."""
        return await self._asked("health", "GET", "/v1/health") is not None

    async def sign_up(self) -> str:
        """A key for a new wallet; its address."""
        wallet = Account.create()
        text = await self._asked("key", "POST", "/v1/keys/nonce", {"address": wallet.address})
        signed = wallet.sign_message(encode_defunct(text=text["message"]))
        given = {"address": wallet.address, "signature": "0x" + bytes(signed.signature).hex()}
        self.key = (await self._asked("key", "POST", "/v1/keys", given))["key"]
        return str(wallet.address)

    # --- all of them ----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """All of them at it, each one thing after another."""
        everybody = [
            *(asyncio.create_task(self._checks(token)) for token in self.tokens.values()),
            *(asyncio.create_task(self._boards(board)) for board in BOARDS),
            *(asyncio.create_task(each) for each in (self._keyed(), self._trades(), self._well())),
            looks := asyncio.create_task(self._looks()),
        ]
        try:
            yield
        finally:
            self.is_over = True
            looks.cancel()
            await asyncio.wait(everybody)
            for one in everybody:
                if not one.cancelled():
                    one.result()

    async def _checks(self, token: str) -> None:
        while not self.is_over:
            await self.check(token)
            await asyncio.sleep(0.4)

    async def _boards(self, board: str) -> None:
        while not self.is_over:
            await self.tool("board", board)
            await asyncio.sleep(1.0)

    async def _keyed(self) -> None:
        tokens = list(self.tokens.values())
        while not self.is_over:
            for token in tokens:
                await self.check(token, key=True)
                await self.tool("account", "my_mite", key=True)
                await asyncio.sleep(0.4)

    async def _trades(self) -> None:
        token = next(iter(self.tokens.values()))
        while not self.is_over:
            await self.tool("practice", "practice_buy", key=True, token=token, eth="0.001")
            await asyncio.sleep(2.0)

    async def _well(self) -> None:
        while not self.is_over:
            await self.health()
            await asyncio.sleep(0.5)

    async def _looks(self) -> None:
        """As a browser does: connects again when it was cut off."""
        while not self.is_over:
            began_s = time.monotonic()
            endless = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=40)
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                url = f"{self.base_url}/boards/moving_now/live"
                async with self.session.get(url, timeout=endless) as response:
                    self.is_live = response.status == 200
                    async for line in response.content:
                        self.events += line.startswith(b"event:")
            self.is_live = False
            self.said.append(UserAnswer(began_s, time.monotonic() - began_s, "live board", "reconnected"))
            await asyncio.sleep(0.5)

    # --- what they saw --------------------------------------------------------------------------

    def since(self, began_s: float) -> list[UserAnswer]:
        """What was asked since then."""
        return [one for one in self.said if one.began_s >= began_s]

    def is_well_since(self, began_s: float) -> bool:
        """Whether the newest answer to each of them was asked since then, and is one."""
        newest = {(one.who, one.token): one for one in self.said if one.who in WHO}
        fine = all(one.code == OK and one.began_s >= began_s for one in newest.values())
        right = all(one.level == self.levels[one.token] for one in newest.values() if one.token)
        return fine and right and self.is_live and {one.who for one in newest.values()} == WHO


WHO = {"check", "keyed check", "account", "practice", "board", "health"}


def _of_tool(answer: Any) -> tuple[str, Any]:
    result = answer["result"]
    if result.get("isError"):
        return str(result["content"][0]["text"].split(":")[0]), None
    return OK, result["structuredContent"]


def summed(said: Iterable[UserAnswer]) -> str:
    """What was seen, in a line."""
    by_who: dict[str, Counter[str]] = {}
    for one in said:
        seen = one.level if one.level == "unknown" else one.code
        by_who.setdefault(one.who, Counter())[seen] += 1
    return "; ".join(
        f"{who} " + ", ".join(f"{times} {code}" for code, times in counts.most_common())
        for who, counts in sorted(by_who.items())
    )
