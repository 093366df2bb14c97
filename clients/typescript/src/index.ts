export {
  type Check,
  type CheckLine,
  Client,
  type ClientOptions,
  EventStream,
  type StreamEvent,
  type StreamOptions,
} from "./client.js";
export { ClientError, ConnectionFailed, ServiceError, UnreadableAnswer, WebhookRefused } from "./errors.js";
export type { Retries } from "./retries.js";
export type { components, paths } from "./schema.js";
export { type HeaderValues, readChallenge, verifyWebhook, type WebhookMessage } from "./webhooks.js";
