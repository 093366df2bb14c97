import createFetchClient from "openapi-fetch";

import { readEvents, readLines, readText } from "./bodies.js";
import { type ClientError, ConnectionFailed, ServiceError, UnreadableAnswer } from "./errors.js";
import { Attempts, type Retries, readRetryAfter } from "./retries.js";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];
export type Check = Schemas["Check"];
export type CheckHistory = Schemas["CheckHistory"];
export type CheckLine = Schemas["CheckLine"];
export type CreditsStatus = Schemas["CreditsStatus"];
export type Health = Schemas["Health"];
export type Holders = Schemas["Holders"];
export type KeyMade = Schemas["KeyMade"];
export type Liquidity = Schemas["Liquidity"];
export type ListedKeys = Schemas["ListedKeys"];
export type PreparedTrade = Schemas["PreparedTrade"];
export type Proof = Schemas["Proof"];
export type Redeemed = Schemas["Redeemed"];
export type RevokedKey = Schemas["RevokedKey"];
export type Simulation = Schemas["Simulation"];
export type StreamEvent = Schemas["StreamEvent"];
export type TextToSign = Schemas["TextToSign"];
export type UnlockCalendar = Schemas["UnlockCalendar"];

export interface ClientOptions {
  /** Such as https://service.example */
  baseUrl: string;
  /** From makeKey. */
  key?: string;
  retries?: Retries;
  /** For one attempt, and for a silence between lines. Left out: 60,000. */
  timeoutMs?: number;
  /** The rest is for tests. */
  fetch?: (request: Request) => Promise<Response>;
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
  random?: () => number;
}

export interface StreamOptions {
  /** Addresses of up to 50 tokens; none: all tokens. */
  tokens?: readonly string[];
  /** Kinds of events; none: all kinds. */
  events?: readonly Exclude<StreamEvent["kind"], "cut" | "gap" | "reorg">[];
  /** The stream goes on after this event. */
  lastEventId?: string;
  signal?: AbortSignal;
}

/** Three heartbeats of the service: a stream without any is dead. */
const SILENT_MS = 45_000;
/** Between two connections: what the service asks for, within these bounds. */
const PAUSE_MS = 1000;
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 60_000;
/** What is not sent again where it may have been done. */
const ONCE = new Set(["POST /v1/keys", "DELETE /v1/keys/{id}", "POST /v1/credits"]);

/** Calls the service. Every method throws ServiceError, ConnectionFailed or UnreadableAnswer. */
export class Client {
  /** Every operation of the interface, with the same retries and errors. */
  readonly api;
  readonly #settings: Required<ClientOptions> & { retries: Required<Retries> };

  constructor(options: ClientOptions) {
    this.#settings = {
      key: "",
      timeoutMs: 60_000,
      fetch: (request) => fetch(request),
      sleep,
      random: Math.random,
      ...options,
      baseUrl: options.baseUrl.replace(/\/+$/, ""),
      retries: { attempts: 4, longestWaitS: 65, ...options.retries },
    };
    this.api = createFetchClient<paths>({ ...this.#init(), baseUrl: this.#settings.baseUrl });
    this.api.use({
      onRequest: ({ request, schemaPath, options: { parseAs } }) => {
        const repeatable = !ONCE.has(`${request.method} ${schemaPath}`);
        return this.#send(request, repeatable, parseAs === "stream", this.#settings.retries);
      },
    });
  }

  /** Checks a token. `amount`: eth as a decimal number, such as "0.5"; left out, 0.1. */
  check(address: string, more: { deep?: boolean; amount?: string; minBlock?: number } = {}): Promise<Check> {
    const query = { ...(more.deep && { deep: "1" as const }), ...(more.amount && { amount: more.amount }) };
    const params = { path: { address }, query, header: fromBlock(more.minBlock) };
    return answer(this.api.GET("/v1/check/{address}", { params }));
  }

  /** Checks up to 50 tokens and gives each line once it is there. A line has a check or an error. */
  async *checks(addresses: readonly string[]): AsyncGenerator<CheckLine> {
    const asked = this.api.POST("/v1/checks", { body: { addresses: [...addresses] }, parseAs: "stream" });
    const { data, response } = await asked;
    if (!data) return;
    for await (const line of readLines(data, this.#settings.timeoutMs)) {
      yield parseJson(line, response) as CheckLine;
    }
  }

  /** The newest check of a token, with everything needed to repeat it. */
  proof(address: string): Promise<Proof> {
    return answer(this.api.GET("/v1/check/{address}/proof", { params: { path: { address } } }));
  }

  /** How the verdict of a token changed. */
  history(address: string): Promise<CheckHistory> {
    return answer(this.api.GET("/v1/check/{address}/history", { params: { path: { address } } }));
  }

  /** Who holds a token. */
  holders(address: string): Promise<Holders> {
    return answer(this.api.GET("/v1/holders/{address}", { params: { path: { address } } }));
  }

  /** Who can withdraw the liquidity of a token. */
  liquidity(address: string, minBlock?: number): Promise<Liquidity> {
    return answer(
      this.api.GET("/v1/liquidity/{address}", { params: { path: { address }, header: fromBlock(minBlock) } }),
    );
  }

  /** When liquidity of tokens that you watch can be withdrawn. */
  unlocks(): Promise<UnlockCalendar> {
    return answer(this.api.GET("/v1/unlocks"));
  }

  /** Runs calls of a wallet in a simulation. */
  simulate(
    body: paths["/v1/simulate"]["post"]["requestBody"]["content"]["application/json"],
    minBlock?: number,
  ): Promise<Simulation> {
    return answer(this.api.POST("/v1/simulate", { body, params: { header: fromBlock(minBlock) } }));
  }

  /** Prepares a buy, to sign and send yourself. */
  prepareBuy(body: Schemas["PrepareBuyParams"], minBlock?: number): Promise<PreparedTrade> {
    return answer(this.api.POST("/v1/prepare/buy", { body, params: { header: fromBlock(minBlock) } }));
  }

  /** Prepares a sale, to sign and send yourself. */
  prepareSell(body: Schemas["PrepareSellParams"], minBlock?: number): Promise<PreparedTrade> {
    return answer(this.api.POST("/v1/prepare/sell", { body, params: { header: fromBlock(minBlock) } }));
  }

  /** The text that a wallet signs for a key. */
  keyText(address: string): Promise<TextToSign> {
    return answer(this.api.POST("/v1/keys/nonce", { body: { address } }));
  }

  /** Makes a key from a signed text. Only this answer has it. */
  makeKey(body: Schemas["KeyParams"]): Promise<KeyMade> {
    return answer(this.api.POST("/v1/keys", { body }));
  }

  /** The live keys of your account. */
  keys(): Promise<ListedKeys> {
    return answer(this.api.GET("/v1/keys"));
  }

  /** Ends one of your keys, named by its first eight characters. */
  revokeKey(id: string): Promise<RevokedKey> {
    return answer(this.api.DELETE("/v1/keys/{id}", { params: { path: { id } } }));
  }

  /** Your paid calls, and how to pay for more. */
  credits(): Promise<CreditsStatus> {
    return answer(this.api.GET("/v1/credits"));
  }

  /** Counts a payment in. */
  redeemPayment(body: Schemas["PaymentParams"]): Promise<Redeemed> {
    return answer(this.api.POST("/v1/credits", { body }));
  }

  /** Whether the service keeps up with the chain. */
  health(): Promise<Health> {
    return answer(this.api.GET("/v1/health"));
  }

  /** Events to iterate over, without end. Needs a key. */
  stream(options: StreamOptions = {}): EventStream {
    const { signal, tokens = [], events = [], lastEventId = "" } = options;
    const { retries, baseUrl, sleep: pause } = this.#settings;
    const open = async (after: string, attempts: number): Promise<Response> => {
      const query = new URLSearchParams();
      if (tokens.length > 0) query.set("tokens", tokens.join(","));
      if (events.length > 0) query.set("events", events.join(","));
      if (after !== "") query.set("lastEventId", after);
      const request = new Request(`${baseUrl}/v1/stream?${query}`, { ...this.#init(), ...(signal && { signal }) });
      return this.#send(request, true, true, { ...retries, attempts });
    };
    return new EventStream(open, retries.attempts, pause, lastEventId, signal);
  }

  #init(): { headers: Record<string, string>; redirect: "error" } {
    const { key } = this.#settings;
    // No redirect: a key goes to no other host.
    return { headers: key === "" ? {} : { authorization: `Bearer ${key}` }, redirect: "error" };
  }

  /** The first answer that is no error, read whole unless it is streamed. */
  async #send(request: Request, repeatable: boolean, streamed: boolean, retries: Required<Retries>): Promise<Response> {
    const attempts = new Attempts(retries, repeatable, this.#settings.random);
    for (;;) {
      const outcome = await this.#try(request, streamed);
      if (outcome instanceof Response) return outcome;
      await this.#settings.sleep(attempts.waitS(outcome) * 1000, request.signal);
    }
  }

  async #try(request: Request, streamed: boolean): Promise<Response | ClientError> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error("it took too long")), this.#settings.timeoutMs);
    try {
      const signal = AbortSignal.any([request.signal, late.signal]);
      const response = await this.#settings.fetch(new Request(request.clone(), { signal }));
      if (response.ok && streamed) return response;
      const text = await readText(response);
      if (!response.ok) return readError(response, text, Date.now());
      parseJson(text, response);
      return new Response(text, { status: response.status, headers: response.headers });
    } catch (error) {
      if (request.signal.aborted || error instanceof UnreadableAnswer) throw error;
      return new ConnectionFailed("no answer", { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Iterate over it. It connects again by itself, after the last event; where events are missing, one of kind `gap` says
 * so. An event may come twice. Store `lastEventId` to go on later, up to an hour, from another program.
 */
export class EventStream implements AsyncIterable<StreamEvent> {
  constructor(
    private readonly open: (lastEventId: string, attempts: number) => Promise<Response>,
    private attempts: number,
    private readonly pause: (ms: number, signal?: AbortSignal) => Promise<void>,
    public lastEventId: string,
    private readonly signal: AbortSignal | undefined,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<StreamEvent> {
    let pauseMs = PAUSE_MS;
    for (;;) {
      const response = await this.open(this.lastEventId, this.attempts);
      try {
        for await (const sent of readEvents(response.body ?? new ReadableStream(), SILENT_MS)) {
          // From the first on the stream lives for as long as it is read.
          this.attempts = Number.POSITIVE_INFINITY;
          this.lastEventId = sent.id ?? this.lastEventId;
          pauseMs = Math.min(Math.max(sent.retryMs ?? pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS);
          if (sent.data !== null) yield parseJson(sent.data, response) as StreamEvent;
        }
      } catch (error) {
        if (this.signal?.aborted || !(error instanceof ConnectionFailed)) throw error;
      }
      await this.pause(pauseMs, this.signal);
    }
  }
}

/** `T`: what the interface says that the operation answers. */
async function answer<T>(asked: Promise<{ data?: unknown; response: Response }>): Promise<T> {
  const { data, response } = await asked;
  if (data === undefined) throw new UnreadableAnswer(response.headers.get("x-request-id"));
  return data as T;
}

function fromBlock(minBlock: number | undefined): { "x-min-block"?: number } {
  return minBlock === undefined ? {} : { "x-min-block": minBlock };
}

function parseJson(text: string, response: Response): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableAnswer(response.headers.get("x-request-id"));
  }
}

function readError(response: Response, text: string, nowMs: number): ServiceError {
  let error = { code: "no_answer", message: "something in front of the service answered" };
  try {
    error = { ...error, ...(JSON.parse(text) as { error?: typeof error }).error };
  } catch {
    // Not the service's.
  }
  const { status, headers } = response;
  const retryAfterS = readRetryAfter(headers.get("retry-after"), nowMs);
  return new ServiceError(status, error.code, error.message, retryAfterS, headers.get("x-request-id"));
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
