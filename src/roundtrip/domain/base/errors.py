"""The tree of errors. The class says who is at fault; the code is one of ``STATUS_BY_CODE``."""

from types import MappingProxyType

STATUS_BY_CODE = MappingProxyType(
    {
        "bad_address": 400,
        "bad_input": 400,
        "bad_json": 400,
        "bad_key": 401,
        "bad_signature": 401,
        "key_needed": 401,
        "not_found": 404,
        "not_open": 404,
        "not_a_token": 404,
        "no_route": 404,
        "method_not_allowed": 405,
        "too_many_keys": 409,
        "already_used": 409,
        "would_fail": 422,
        "too_small": 422,
        "nothing_to_sell": 422,
        "no_such_tx": 422,
        "tx_failed": 422,
        "no_payment": 422,
        "rate_limited": 429,
        "daily_limit": 429,
        "internal": 500,
        "upstream": 502,
        "holders_failed": 502,
        "busy": 503,
        "budget_spent": 503,
        "holders_busy": 503,
        "holders_budget": 503,
        "holders_no_archive": 503,
    }
)
"""Every error code that this service returns, and its HTTP status."""


class CannotRun(Exception):
    """Ends a command with one line, its text, for the person who runs it."""


class IllegalMove(Exception):
    """The event is not possible in this state; nothing was changed."""


class RoundtripError(Exception):
    """An error answer: a code of ``STATUS_BY_CODE`` and a sentence for the caller. ``retry_after_s``: seconds
    until a retry may help; None: no time is given. ``counts``: whether the call counts against its caller's
    limits."""

    def __init__(self, code: str, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.status = STATUS_BY_CODE[code]
        self.counts = self.status < 500


class CallerFault(RoundtripError):
    """The request is wrong; the same request fails again."""


class ParamFault(CallerFault):
    """A parameter is unknown, missing or wrong. Quotes in the message hold examples or the caller's own
    words, not strangers' text."""


class LimitReached(RoundtripError):
    """The caller sent too many requests. ``retry_after_s``: when to retry; ``limit``: how many are allowed in
    the limit's span of time."""

    def __init__(self, code: str, message: str, retry_after_s: int, limit: int) -> None:
        super().__init__(code, message, retry_after_s)
        self.limit = limit


TOOK_TOO_LONG = "it took too long"
"""The reason of a NodeFault where the node did not answer in time."""


NO_ANSWER = "The chain did not answer"
"""The beginning of a NodeFault's message where a retry may help."""


class NodeFault(RoundtripError):
    """The chain's node gave no usable answer. ``why``: a clause such as "the node sent no block 5".
    ``remedy``: what helps, a clause such as "use another node"; empty: a retry may help."""

    def __init__(self, why: str, remedy: str = "") -> None:
        self.why, self.remedy = why, remedy
        super().__init__("upstream", _describe_fault(why, remedy))


def _describe_fault(why: str, remedy: str) -> str:
    if remedy:
        return f"{why[:1].upper()}{why[1:]}: {remedy}."
    if why == TOOK_TOO_LONG:
        return f"{NO_ANSWER} in time."
    # The message of another fault is a sentence already.
    return why if why.endswith(".") else f"{NO_ANSWER}: {why}."


class ServiceFull(RoundtripError):
    """This service is at a limit of its own; a later retry helps. ``counts``: the caller's own requests are
    the reason, so the call counts."""

    def __init__(
        self, code: str, message: str, retry_after_s: int | None = None, counts: bool = False
    ) -> None:
        super().__init__(code, message, retry_after_s)
        self.counts |= counts


class ReadFailed(RoundtripError):
    """The node answers, but did not return all of the history that a holder read needs; a retry may help."""

    def __init__(self, fault: NodeFault, retry_after_s: int | None = None) -> None:
        message = f"Reading who holds the token stopped before the end. {fault.message}"
        super().__init__("holders_failed", message, retry_after_s)
