"""Every operation of the service, as a value: what to send, and how to read the answer. No I/O."""

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import httpx2
import msgspec

from . import models
from .errors import ServiceError, UnreadableAnswer
from .retries import read_retry_after

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. ``answer``: the type of the answer, or of one line or event of it. ``repeatable``: sending
    it twice does what sending it once does."""

    answer: type[T]
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: msgspec.Struct | None = None
    repeatable: bool = True


def read_answer(answer: type[T], text: str | bytes, request_id: str | None) -> T:
    """JSON as the answer's type. Raises UnreadableAnswer."""
    try:
        return msgspec.json.decode(text, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableAnswer(f"the answer is no {answer.__name__}: {error}", request_id) from error


def request_id_of(response: httpx2.Response) -> str | None:
    """The id under which the service logged the request."""
    return response.headers.get("x-request-id")


def read_error(response: httpx2.Response, body: bytes, now_s: float) -> ServiceError:
    """An error answer; one of a proxy in front of the service has the code ``no_answer``. ``now_s``: seconds
    since 1970."""
    retry_after_s = read_retry_after(response.headers.get("retry-after"), now_s)
    try:
        error = msgspec.json.decode(body, type=models.Error).error
        code, message = str(error.code), error.message
    except (msgspec.DecodeError, UnicodeDecodeError):
        code, message = "no_answer", "something in front of the service answered"
    return ServiceError(response.status_code, code, message, retry_after_s, request_id_of(response))


def check(
    address: str, *, deep: bool = False, amount: str | None = None, min_block: int | None = None
) -> Call[models.Check]:
    """Checks a token. ``amount``: eth as a decimal number, such as "0.5"; left out, 0.1."""
    query = {"deep": "1"} if deep else {}
    if amount is not None:
        query["amount"] = amount
    return Call(models.Check, "GET", f"/v1/check/{_quote(address)}", query, _from_block(min_block))


def checks(addresses: Sequence[str]) -> Call[models.CheckLine]:
    """Checks up to 50 tokens; each line is one of them, in the order in which they are ready."""
    body = models.ManyChecksParams(addresses=list(addresses))
    return Call(models.CheckLine, "POST", "/v1/checks", body=body)


def proof(address: str) -> Call[models.Proof]:
    """The newest check of a token, with everything needed to repeat it."""
    return Call(models.Proof, "GET", f"/v1/check/{_quote(address)}/proof")


def history(address: str) -> Call[models.CheckHistory]:
    """How the verdict of a token changed."""
    return Call(models.CheckHistory, "GET", f"/v1/check/{_quote(address)}/history")


def holders(address: str) -> Call[models.Holders]:
    """Who holds a token."""
    return Call(models.Holders, "GET", f"/v1/holders/{_quote(address)}")


def liquidity(address: str, *, min_block: int | None = None) -> Call[models.Liquidity]:
    """Who can withdraw the liquidity of a token."""
    return Call(models.Liquidity, "GET", f"/v1/liquidity/{_quote(address)}", headers=_from_block(min_block))


def unlocks() -> Call[models.UnlockCalendar]:
    """When liquidity of tokens that you watch can be withdrawn."""
    return Call(models.UnlockCalendar, "GET", "/v1/unlocks")


def stream(tokens: Sequence[str], events: Sequence[str], last_event_id: str) -> Call[models.StreamEvent]:
    """Events as they happen, after the last one that you have. Nothing named: all."""
    query = {"tokens": ",".join(tokens), "events": ",".join(events), "lastEventId": last_event_id}
    shown = {name: value for name, value in query.items() if value}
    return Call(models.StreamEvent, "GET", "/v1/stream", shown)


def simulate(params: models.SimulateParams, *, min_block: int | None = None) -> Call[models.Simulation]:
    """Runs calls of a wallet in a simulation."""
    return Call(models.Simulation, "POST", "/v1/simulate", headers=_from_block(min_block), body=params)


def prepare_buy(
    params: models.PrepareBuyParams, *, min_block: int | None = None
) -> Call[models.PreparedTrade]:
    """Prepares a buy, to sign and send yourself."""
    return Call(models.PreparedTrade, "POST", "/v1/prepare/buy", headers=_from_block(min_block), body=params)


def prepare_sell(
    params: models.PrepareSellParams, *, min_block: int | None = None
) -> Call[models.PreparedTrade]:
    """Prepares a sale, to sign and send yourself."""
    return Call(models.PreparedTrade, "POST", "/v1/prepare/sell", headers=_from_block(min_block), body=params)


def key_text(wallet: str) -> Call[models.TextToSign]:
    """The text that a wallet signs for a key."""
    return Call(models.TextToSign, "POST", "/v1/keys/nonce", body=models.WalletParams(address=wallet))


def make_key(params: models.KeyParams) -> Call[models.KeyMade]:
    """Makes a key from a signed text. Only this answer has it."""
    return Call(models.KeyMade, "POST", "/v1/keys", body=params, repeatable=False)


def keys() -> Call[models.ListedKeys]:
    """The live keys of your account."""
    return Call(models.ListedKeys, "GET", "/v1/keys")


def revoke_key(key_id: str) -> Call[models.RevokedKey]:
    """Ends one of your keys, named by its first eight characters."""
    return Call(models.RevokedKey, "DELETE", f"/v1/keys/{_quote(key_id)}", repeatable=False)


def credits() -> Call[models.CreditsStatus]:
    """Your paid calls, and how to pay for more."""
    return Call(models.CreditsStatus, "GET", "/v1/credits")


def redeem_payment(params: models.PaymentParams) -> Call[models.Redeemed]:
    """Counts a payment in."""
    return Call(models.Redeemed, "POST", "/v1/credits", body=params, repeatable=False)


def health() -> Call[models.Health]:
    """Whether the service keeps up with the chain."""
    return Call(models.Health, "GET", "/v1/health")


def _quote(text: str) -> str:
    """As one step of a path: whatever is passed as an address leads to no other operation."""
    return urllib.parse.quote(text, safe="")


def _from_block(min_block: int | None) -> dict[str, str]:
    return {} if min_block is None else {"x-min-block": str(min_block)}
