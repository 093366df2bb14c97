import { type ClientError, ServiceError } from "./errors.js";

/** When a call is tried again. */
export interface Retries {
  /** How often a call is sent at most; Infinity: without end. Left out: 4. */
  attempts?: number;
  /** A call that would have to wait longer fails at once, and its error says how long. Left out: 65. */
  longestWaitS?: number;
}

const PASSING = new Set([429, 502, 503, 504]);
const FIRST_WAIT_S = 0.5;
const LONGEST_BACKOFF_S = 30;

/** The attempts of one call. `random`: numbers from 0 to 1, so that clients do not return together. */
export class Attempts {
  #failed = 0;

  constructor(
    private readonly retries: Required<Retries>,
    private readonly repeatable: boolean,
    private readonly random: () => number,
  ) {}

  /**
   * Seconds until the next attempt. Throws the error where there is none. A call that is not repeatable is sent
   * again only where it certainly did nothing: it was refused (429).
   */
  waitS(error: ClientError): number {
    this.#failed += 1;
    const answer = error instanceof ServiceError ? error : null;
    const isPassing = answer === null || PASSING.has(answer.status);
    if (!isPassing || (answer?.status !== 429 && !this.repeatable)) throw error;
    if (this.#failed >= this.retries.attempts) throw error;
    const waitS = answer?.retryAfterS ?? null;
    if (waitS === null) {
      const longestS = Math.min(FIRST_WAIT_S * 2 ** (this.#failed - 1), LONGEST_BACKOFF_S);
      return longestS * (0.5 + this.random() / 2);
    }
    if (waitS > this.retries.longestWaitS) throw error;
    return waitS;
  }
}

/** Seconds to wait by a Retry-After header, which names seconds or a date; null where it is missing or wrong. */
export function readRetryAfter(text: string | null, nowMs: number): number | null {
  if (text === null) return null;
  if (/^[0-9]+$/.test(text)) return Number(text);
  const dateMs = /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? null : Math.max((dateMs - nowMs) / 1000, 0);
}
