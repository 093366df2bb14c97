import { WebhookRefused } from "./errors.js";
import type { components } from "./schema.js";

const TOLERANCE_S = 300;

/** One message; each row is one alert. A row may come twice: keep its `id` and `verb` for a week. */
export interface WebhookMessage {
  /** The account that it is for. */
  mite: string;
  /** That of all rows. */
  kind: components["schemas"]["AlertRow"]["kind"];
  rows: components["schemas"]["AlertRow"][];
  /** When this attempt was sent, in seconds since 1970. */
  ts: number;
}

/** Headers as fetch or Node has them. */
export type HeaderValues = Headers | Record<string, string | string[] | undefined>;

/**
 * The message, where the service signed exactly these bytes within five minutes of `nowS` (left out: now). `body`:
 * raw, before any parsing. Throws WebhookRefused; TypeError for a secret that is none.
 */
export async function verifyWebhook(
  secret: string,
  headers: HeaderValues,
  body: string | Uint8Array,
  nowS: number = Date.now() / 1000,
): Promise<WebhookMessage> {
  const secretBytes = /^whsec_.+/.test(secret) ? readBase64(secret.slice(6)) : null;
  if (secretBytes === null) throw new TypeError("a secret is whsec_ and base64");
  const sentS = readHeader(headers, "webhook-timestamp");
  if (!/^[0-9]{1,12}$/.test(sentS) || Math.abs(nowS - Number(sentS)) > TOLERANCE_S) {
    throw new WebhookRefused("webhook-timestamp is missing, or more than five minutes off");
  }
  const key = await crypto.subtle.importKey("raw", secretBytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const encoder = new TextEncoder();
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  const start = encoder.encode(`${readHeader(headers, "webhook-id")}.${sentS}.`);
  const signed = new Uint8Array(start.length + bytes.length);
  signed.set(start);
  signed.set(bytes, start.length);
  for (const text of readHeader(headers, "webhook-signature").split(" ")) {
    const signature = text.startsWith("v1,") ? readBase64(text.slice(3)) : null;
    // WebCrypto compares in constant time.
    if (signature !== null && (await crypto.subtle.verify("HMAC", key, signature, signed))) {
      return JSON.parse(new TextDecoder().decode(bytes)) as WebhookMessage;
    }
  }
  throw new WebhookRefused("webhook-signature does not match");
}

/** The body to answer with 200, which proves that you want the messages; empty where none is asked. */
export function readChallenge(headers: HeaderValues): string {
  const challenge = readHeader(headers, "webhook-challenge");
  return /^[0-9a-f]{32}$/.test(challenge) ? challenge : "";
}

function readHeader(headers: HeaderValues, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? "";
}

function readBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return null;
  }
}
