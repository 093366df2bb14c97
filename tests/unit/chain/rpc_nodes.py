"""A node of a few answers, over real HTTP."""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, cast

import aiohttp
import msgspec

from roundtrip.chain.rpc.client import Node, RpcCall, RpcError

DAY_S = 86_400


CALLS = [RpcCall("eth_chainId", []), RpcCall("eth_call", [{"to": "0x1"}]), RpcCall("eth_gasPrice", [])]


class Response:
    """One answer, in pieces."""

    def __init__(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.content = self
        self.closed = False
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._body), 1000):
            yield self._body[start : start + 1000]

    def close(self) -> None:
        self.closed = True

    async def __aenter__(self) -> "Response":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Session:
    """Answers every post with ``body``, or fails with ``fault``; keeps what was asked."""

    def __init__(self, body: Any, status: int = 200, fault: Exception | None = None, **headers: str) -> None:
        encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.response = Response(
            encoded, status, {name.replace("_", "-"): reply for name, reply in headers.items()}
        )
        self.fault = fault
        self.asked: list[Any] = []
        self.options: dict[str, Any] = {}

    def post(self, url: str, *, data: bytes, **options: Any) -> Response:
        self.asked.append(msgspec.json.decode(data))
        self.options = options
        if self.fault is not None:
            raise self.fault
        return self.response


def node(session: Session, **options: Any) -> Node:
    return Node("http://node.test", cast(aiohttp.ClientSession, session), **options)


def answer(number: object, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def shown(found: list[msgspec.Raw | RpcError]) -> list[object]:
    """Results decoded; an error as its code and message."""
    return [
        (one.code, one.message) if isinstance(one, RpcError) else msgspec.json.decode(one) for one in found
    ]


ALL = [answer(0, "a"), answer(1, "b"), answer(2, "c")]
