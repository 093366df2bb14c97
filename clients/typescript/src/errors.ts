/** Any failure of a call. The token of a failed call was not found good: never read it as ok. */
export class ClientError extends Error {
  override name = "ClientError";
}

/** An error answer. `retryAfterS` is null where the service names no time; tell `requestId` to its operator. */
export class ServiceError extends ClientError {
  override name = "ServiceError";

  constructor(
    readonly status: number,
    /** As the interface lists them, such as rate_limited; no_answer: something in front of the service answered. */
    readonly code: string,
    /** What is wrong, without the code. */
    readonly text: string,
    readonly retryAfterS: number | null,
    readonly requestId: string | null,
  ) {
    super(`${code}: ${text} (HTTP ${status}, request ${requestId ?? "without an id"})`);
  }
}

/** No whole answer came: the service was not reached, was too slow, or the connection was cut. */
export class ConnectionFailed extends ClientError {
  override name = "ConnectionFailed";
}

/** The answer is not JSON. */
export class UnreadableAnswer extends ClientError {
  override name = "UnreadableAnswer";

  constructor(readonly requestId: string | null) {
    super(`the answer is not JSON (request ${requestId ?? "without an id"})`);
  }
}

/** The message was not signed with this secret within the last five minutes. Answer 401 and drop it. */
export class WebhookRefused extends ClientError {
  override name = "WebhookRefused";
}
