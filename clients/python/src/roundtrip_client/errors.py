"""What the client raises."""


class ClientError(Exception):
    """Any failure of a call. The token of a failed call was not found good: never read it as ok."""


class ServiceError(ClientError):
    """An error answer. ``code``: as the interface lists them, such as ``rate_limited``; ``retry_after_s``:
    None where the service names no time; ``request_id``: tell it to the service's operator."""

    def __init__(
        self, status: int, code: str, message: str, retry_after_s: float | None, request_id: str | None
    ) -> None:
        super().__init__(f"{code}: {message} (HTTP {status}, request {request_id or 'without an id'})")
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.request_id = request_id


class ConnectionFailed(ClientError):
    """No whole answer came: the service was not reached, was too slow, or the connection was cut."""


class UnreadableAnswer(ClientError):
    """The answer is not what the interface says. ``request_id`` as in ServiceError."""

    def __init__(self, why: str, request_id: str | None) -> None:
        super().__init__(f"{why} (request {request_id or 'without an id'})")
        self.request_id = request_id


class WebhookRefused(ClientError):
    """The message was not signed with this secret within the last five minutes. Answer 401 and drop it."""
