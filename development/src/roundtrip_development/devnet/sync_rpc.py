"""A small blocking JSON-RPC client, to set the local chain up and to trade from its wallets."""

import http.client
import json
from typing import Any, Self
from urllib.parse import urlsplit


class RpcFailure(Exception):
    """The node answered with an error."""


class SyncRpc:
    """One keep-alive connection to one node."""

    def __init__(self, url: str, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        self.url = url
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, *params: object) -> Any:
        """The result of one call. Raises RpcFailure: the node returned an error; OSError: it is
        unreachable."""
        return self.batch([(method, params)])[0]

    def batch(self, calls: list[tuple[str, tuple[object, ...]]]) -> list[Any]:
        """The results of several calls in one request, in order. Raises as ``call`` does."""
        body = json.dumps(
            [{"jsonrpc": "2.0", "id": n, "method": m, "params": p} for n, (m, p) in enumerate(calls)]
        )
        try:
            self._connection.request("POST", "/", body, {"content-type": "application/json"})
            answers = json.loads(self._connection.getresponse().read())
        except http.client.HTTPException as error:
            self._connection.close()
            raise OSError(str(error)) from error
        except OSError:
            self._connection.close()
            raise
        for answer in answers:
            if "error" in answer:
                raise RpcFailure(f"{calls[answer['id']][0]}: {answer['error'].get('message')}")
        return [answer["result"] for answer in sorted(answers, key=lambda a: int(a["id"]))]
