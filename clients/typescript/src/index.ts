export {
  type Check,
  type CheckHistory,
  type CheckLine,
  Client,
  type ClientOptions,
  type CreditsStatus,
  EventStream,
  type Health,
  type Holders,
  type KeyMade,
  type Liquidity,
  type ListedKeys,
  type PreparedTrade,
  type Proof,
  type Redeemed,
  type RevokedKey,
  type Simulation,
  type StreamEvent,
  type StreamOptions,
  type TextToSign,
  type UnlockCalendar,
} from "./client.js";
export { ClientError, ConnectionFailed, ServiceError, UnreadableAnswer, WebhookRefused } from "./errors.js";
export type { Retries } from "./retries.js";
export type { components, paths } from "./schema.js";
export { type HeaderValues, readChallenge, verifyWebhook, type WebhookMessage } from "./webhooks.js";
