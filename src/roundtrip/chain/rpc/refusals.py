"""Says in one sentence how a node refused a request, and what helps."""

from dataclasses import dataclass

from roundtrip.domain.base.errors import NodeFault

from .errors import concern
from .node_words import quote, quote_error
from .rpc_error import RpcError

_OK, _UNAUTHORIZED, _FORBIDDEN, _PROXY_LOGIN = 200, 401, 403, 407
_TOO_LARGE, _TOO_MANY_REQUESTS, _UNAVAILABLE = 413, 429, 503
_NO_SUCH_PLACE = frozenset({301, 302, 303, 307, 308, 404, 405, 410})
_KEY_PHRASES = ("unauthorized", "authenticat", "api key", "apikey", "api-key", "invalid key", "access token")

_ANOTHER = "use another node"
_CHECK_KEY = f"check the key in its URL, or {_ANOTHER}"
_CHECK_URL = "check the URL"
_LARGER = "use a node that takes larger requests"
_LATER = f"retry in a minute, or {_ANOTHER}"
_KNOWN_NODES = "use a node of geth, Nitro or anvil"


@dataclass(frozen=True, slots=True)
class Refusal:
    """``why``: a clause that begins with what refused. ``remedy``: what to do about it, a clause, too."""

    why: str
    remedy: str

    def fault(self) -> NodeFault:
        """The refusal as an exception."""
        return NodeFault(self.why, self.remedy)


def explain_refusal(body: str, status: int, error: RpcError | None, retry_after_s: int | None) -> Refusal:
    """How the node refused a whole request. ``error``: in the body; None: there is none."""
    seen = _describe_answer(body, status, error)
    subject = None if error is None else concern(error)
    is_limited = subject == "limited" or (status == _UNAVAILABLE and retry_after_s is not None)
    if status == _TOO_MANY_REQUESTS or is_limited:
        return Refusal(f"the node limits our calls ({seen})", _wait(retry_after_s))
    message = "" if error is None else error.message.lower()
    if status in (_UNAUTHORIZED, _PROXY_LOGIN) or any(phrase in message for phrase in _KEY_PHRASES):
        return Refusal(f"the node asks for a valid key ({seen})", _CHECK_KEY)
    if status == _FORBIDDEN:
        return Refusal(f"the node refuses access ({seen})", _CHECK_KEY)
    if status == _TOO_LARGE or subject == "batch":
        return Refusal(f"the node refuses a request of this size ({seen})", _LARGER)
    if status in _NO_SUCH_PLACE:
        return Refusal(f"there is no node at the URL ({seen})", _CHECK_URL)
    if status >= 500:
        return Refusal(f"the node's server fails ({seen})", _LATER)
    if error is not None:
        return Refusal(f"the node refuses the request ({seen})", _ANOTHER)
    return _explain_body(body, seen)


def _explain_body(body: str, seen: str) -> Refusal:
    """An answer without an error, under a status that says little."""
    if not body.strip():
        return Refusal(f"the node sent an empty answer ({seen})", f"{_CHECK_URL}, or {_ANOTHER}")
    if body.lstrip().startswith(("{", "[")):
        return Refusal(f"the node's answer is not a batch ({seen})", "use a node that answers batches")
    return Refusal(f"the URL answers, but not as a node ({seen})", _CHECK_URL)


def _describe_answer(body: str, status: int, error: RpcError | None) -> str:
    """The status, the code and the node's words."""
    if error is None:
        return f"HTTP status {status} {quote(body)}".rstrip()
    return quote_error(error) if status == _OK else f"HTTP status {status}, {quote_error(error)}"


def _wait(retry_after_s: int | None) -> str:
    wait = "wait a minute" if retry_after_s is None else f"wait {retry_after_s} s"
    return f"{wait}, or use another node or a key of your own"


def explain_no_simulation(error: RpcError) -> Refusal:
    """Why the node ran no simulation at all."""
    subject, seen = concern(error), quote_error(error)
    if subject == "method":
        return Refusal(f"the node does not serve eth_simulateV1 ({seen})", "use a node that serves it")
    if subject == "limited":
        return Refusal(f"the node limits our calls ({seen})", _wait(None))
    if subject == "batch":
        return Refusal(f"the node refuses a request of this size ({seen})", _LARGER)
    if subject == "behind":
        return Refusal(f"the node does not know its own newest block ({seen})", _LATER)
    if error.code == 0:
        return Refusal("the node did not answer eth_simulateV1", _LATER)
    if subject == "node":
        return Refusal(f"the node failed to simulate ({seen})", _LATER)
    return Refusal(f"the node refused to simulate ({seen})", _ANOTHER)


def explain_no_call(error: RpcError) -> Refusal:
    """Why the node ran no eth_call with code of ours."""
    if concern(error) in ("method", "limited", "node"):
        return Refusal(f"the node did not run eth_call ({quote_error(error)})", _LATER)
    return Refusal(f"the node refused eth_call with state overrides ({quote_error(error)})", _ANOTHER)


def explain_other_chain(node_chain_id: int, chain_id: int) -> Refusal:
    """The node is of another chain."""
    return Refusal(f"the node is on chain {node_chain_id}, not {chain_id}", f"use a node of chain {chain_id}")


def explain_unknown_form(revert: str, out_of_gas: str) -> Refusal:
    """The node's simulated calls fail as those of no known node. ``revert``, ``out_of_gas``: how a call that
    reverts, and one that runs out of gas, came back."""
    seen = f"a revert came back with {revert}, out of gas with {out_of_gas}"
    return Refusal(f"the node's simulation errors have an unknown form ({seen})", _KNOWN_NODES)


def explain_odd_simulation(seen: str) -> Refusal:
    """A simulation that no known node would return."""
    return Refusal(seen, _KNOWN_NODES)
