/** Retries, errors and the stream, over answers that a test scripts. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, type ClientOptions, ConnectionFailed, ServiceError, UnreadableAnswer } from "../src/index.js";
import { readRetryAfter } from "../src/retries.js";

type Step = (() => Response) | Error;
const TOKEN = `0x${"1".repeat(40)}`;
const CHECK = { address: TOKEN, verdict: { code: "ok", level: "ok", text: "fine" } };

function answer(body: unknown = CHECK, status = 200, headers: Record<string, string> = {}): Step {
  return text(JSON.stringify(body), status, headers);
}

function text(body: string, status = 200, headers: Record<string, string> = {}): Step {
  return () => new Response(body, { status, headers: { "x-request-id": "rrrrrrrr", ...headers } });
}

function refusal(status: number, code: string, retryAfter?: string): Step {
  const headers: Record<string, string> = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  return answer({ error: { code, message: "why" } }, status, headers);
}

/** An answer in pieces as they come; `cut`: then the connection ends. */
function pieces(parts: string[], cut = false): Step {
  return () => {
    const waiting = parts.map((part) => new TextEncoder().encode(part));
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const part = waiting.shift();
      if (part !== undefined) controller.enqueue(part);
      else if (cut) controller.error(new Error("cut"));
      else controller.close();
    };
    return new Response(new ReadableStream({ pull }), { headers: { "x-request-id": "rrrrrrrr" } });
  };
}

/** A client, its requests, and its waits in seconds. */
function scripted(steps: Step[], options: Partial<ClientOptions> = {}) {
  const asked: Request[] = [];
  const slept: number[] = [];
  const client = new Client({
    baseUrl: "http://service/",
    key: "rt_key",
    fetch: async (request) => {
      request.signal.throwIfAborted();
      asked.push(request);
      const step = steps.shift();
      if (step === undefined || step instanceof Error) throw step ?? new Error("asked too often");
      return step();
    },
    sleep: async (ms) => {
      slept.push(ms / 1000);
    },
    random: () => 1,
    ...options,
  });
  return { client, asked, slept };
}

const network = new TypeError("fetch failed");

test("an answer is typed, and the request has key and parameters", async () => {
  const { client, asked } = scripted([answer(), answer(), answer({ key: "rt_new" })]);
  const check = await client.check(TOKEN);
  assert.equal(check.verdict.level, "ok");
  await client.check("../keys", { deep: true, amount: "0.5", minBlock: 7 });
  await client.makeKey({ address: TOKEN, signature: "0x", label: "", agent: true });
  const [first, second, third] = asked as [Request, Request, Request];
  assert.equal(first.url, `http://service/v1/check/${TOKEN}`);
  assert.equal(first.headers.get("authorization"), "Bearer rt_key");
  assert.equal(first.redirect, "error");
  assert.equal(second.url, "http://service/v1/check/..%2Fkeys?deep=1&amount=0.5");
  assert.equal(second.headers.get("x-min-block"), "7");
  assert.deepEqual(await third.json(), { address: TOKEN, signature: "0x", label: "", agent: true });
});

const passing: [string, Step[], number[]][] = [
  ["a limit", [refusal(429, "rate_limited", "7")], [7]],
  ["an overload", [refusal(503, "busy", "1"), refusal(503, "busy", "2")], [1, 2]],
  ["a node", [refusal(502, "upstream"), refusal(502, "upstream"), refusal(502, "upstream")], [0.5, 1, 2]],
  ["a network", [network, network], [0.5, 1]],
  ["a proxy", [text("<html>", 504)], [0.5]],
  ["a cut", [pieces(["{"], true)], [0.5]],
];
for (const [name, steps, slept] of passing) {
  test(`${name} is waited for`, async () => {
    const made = scripted([...steps, answer()]);
    assert.equal((await made.client.check(TOKEN)).address, TOKEN);
    assert.deepEqual(made.slept, slept);
  });
}

const lasting: [Step, string, number, number | null][] = [
  [refusal(400, "bad_address"), "bad_address", 400, null],
  [refusal(401, "bad_key"), "bad_key", 401, null],
  [refusal(500, "internal"), "internal", 500, null],
  [refusal(429, "daily_limit", "3600"), "daily_limit", 429, 3600],
  [text("<html>", 404), "no_answer", 404, null],
];
for (const [step, code, status, retryAfterS] of lasting) {
  test(`${code} is thrown at once with the request's id`, async () => {
    const { client, asked, slept } = scripted([step]);
    await assert.rejects(client.check(TOKEN), (error) => {
      assert(error instanceof ServiceError);
      assert.match(error.message, /request rrrrrrrr/);
      assert.deepEqual(
        [error.code, error.status, error.retryAfterS, error.requestId],
        [code, status, retryAfterS, "rrrrrrrr"],
      );
      return true;
    });
    assert.deepEqual([slept, asked.length], [[], 1]);
  });
}

test("attempts end", async () => {
  const short = scripted([refusal(503, "busy"), refusal(503, "busy")], { retries: { attempts: 2 } });
  await assert.rejects(short.client.check(TOKEN), ServiceError);
  const { client, slept } = scripted([network, network, network, network]);
  await assert.rejects(client.check(TOKEN), ConnectionFailed);
  assert.deepEqual(slept, [0.5, 1, 2]);
});

test("what must not happen twice is sent again only where it was refused", async () => {
  const params = { address: TOKEN, signature: "0x", label: "", agent: false };
  const refused = scripted([refusal(429, "rate_limited", "3"), answer({ key: "rt_new" })]);
  assert.equal((await refused.client.makeKey(params)).key, "rt_new");
  for (const step of [network, refusal(503, "busy", "1"), refusal(502, "upstream")]) {
    const { client, slept } = scripted([step]);
    await assert.rejects(client.makeKey(params));
    assert.deepEqual(slept, []);
  }
});

test("an attempt ends in time", async () => {
  const silent = (request: Request) =>
    new Promise<Response>((_, reject) => {
      request.signal.addEventListener("abort", () => reject(request.signal.reason as Error));
    });
  const { client } = scripted([], { fetch: silent, timeoutMs: 10, retries: { attempts: 1 } });
  await assert.rejects(client.check(TOKEN), ConnectionFailed);
});

test("an answer that is none is an error", async () => {
  for (const body of ["<html>", ""]) {
    await assert.rejects(scripted([text(body)]).client.check(TOKEN), (error) => {
      assert(error instanceof UnreadableAnswer);
      assert.equal(error.requestId, "rrrrrrrr");
      return true;
    });
  }
});

test("retry-after names seconds or a date", () => {
  const nowMs = Date.UTC(2026, 0, 5, 12, 0, 1);
  const cases: [string | null, number | null][] = [
    ["7", 7],
    ["Mon, 05 Jan 2026 12:00:11 GMT", 10],
    ["Mon, 05 Jan 2026 11:00:00 GMT", 0],
    ["soon", null],
    ["-1", null],
    ["", null],
    [null, null],
  ];
  for (const [given, waitS] of cases) assert.equal(readRetryAfter(given, nowMs), waitS, String(given));
});

test("lines come one by one, and a cut is an error", async () => {
  const line = JSON.stringify({
    address: TOKEN,
    check: null,
    error: { code: "busy", message: "☃", retryAfterS: null },
  });
  const bytes = [`${line.slice(0, 50)}`, `${line.slice(50)}\r`, `\n${line}\n`];
  const { client, slept, asked } = scripted([refusal(503, "busy", "1"), pieces(bytes)]);
  const found = [];
  for await (const one of client.checks([TOKEN])) found.push(one.error?.message);
  assert.deepEqual([found, slept], [["☃", "☃"], [1]]);
  assert.deepEqual(await asked[1]?.json(), { addresses: [TOKEN] });
  await assert.rejects(async () => {
    for await (const one of scripted([pieces([`${line}\n`, line], true)]).client.checks([TOKEN])) found.push(one);
  }, ConnectionFailed);
  assert.equal(found.length, 3);
});

function event(number: number, kind = "verdict"): string {
  return `id: ${number}\nevent: ${kind}\ndata: ${JSON.stringify({ kind, text: String(number) })}\n\n`;
}

test("a stream goes on after its last event", async () => {
  const { client, asked, slept } = scripted([
    pieces(["retry: 750\nid: 1\n\n", event(2).slice(0, 30), event(2).slice(30), ": still there\nid: 3\n\n"], true),
    ...Array.from({ length: 6 }, () => network),
    refusal(429, "rate_limited", "9"),
    pieces([event(4, "gap") + event(5), "id: 6\nevent: verdict\ndata: {"]),
    pieces([event(6)]),
  ]);
  const stream = client.stream({ tokens: [TOKEN], events: ["verdict"] });
  const found = [];
  for await (const { kind, text: said } of stream) {
    found.push(`${kind} ${said}`);
    if (found.length === 4) break;
  }
  assert.deepEqual(found, ["verdict 2", "gap 4", "verdict 5", "verdict 6"]);
  const places = asked.map((request) => new URL(request.url).searchParams.get("lastEventId"));
  assert.deepEqual(places, [null, ...Array.from({ length: 8 }, () => "3"), "5"]);
  assert.equal(new URL(asked[0]?.url ?? "").searchParams.get("tokens"), TOKEN);
  assert.deepEqual(slept, [0.75, 0.5, 1, 2, 4, 8, 16, 9, 0.75]);
  assert.equal(stream.lastEventId, "6");
});

for (const [retry, pauseS] of [
  ["0", 0.5],
  ["99999999999", 60],
  ["x", 1],
] as const) {
  test(`a service that asks for retry ${retry} gets ${pauseS} s`, async () => {
    const { client, slept } = scripted([pieces([`retry: ${retry}\nid: 1\n\n`]), pieces([event(2)])]);
    for await (const _ of client.stream()) break;
    assert.deepEqual(slept, [pauseS]);
  });
}

test("bodies, lines and events are read to a limit", async () => {
  const mib = "x".repeat(2 ** 20);
  await assert.rejects(scripted([pieces(Array(17).fill(mib))]).client.health(), UnreadableAnswer);
  for (const parts of [[mib, mib], [`${mib}x\n`]]) {
    await assert.rejects(
      scripted([pieces(parts)])
        .client.checks([TOKEN])
        .next(),
      UnreadableAnswer,
    );
  }
  for (const parts of [[`data: ${mib}`, mib], ["data: x\n".repeat(200_000)]]) {
    const events = scripted([pieces(parts)]).client.stream();
    await assert.rejects(events[Symbol.asyncIterator]().next(), UnreadableAnswer);
  }
});

test("a stream that never opened fails, and so does one whose key was revoked", async () => {
  const read = async (steps: Step[], signal?: AbortSignal) => {
    const { client } = scripted(steps);
    for await (const _ of client.stream({ lastEventId: "0", ...(signal && { signal }) }));
  };
  await assert.rejects(read([network, network, network, network]), ConnectionFailed);
  await assert.rejects(read([pieces([event(1)]), refusal(401, "bad_key")]), /bad_key/);
  await assert.rejects(read([pieces([event(1)])], AbortSignal.abort()), { name: "AbortError" });
});
