// A receiver of alerts, with only Node's standard library (18 or later).
//
//     WEBHOOK_SECRET=whsec_... PORT=8000 node receiver.mjs
//
// Run it behind a proxy that does TLS. Without WEBHOOK_SECRET it accepts the test delivery that set_webhook makes before
// it shows you the secret, and does nothing else. It echoes the challenge of that delivery, which proves to the service
// that you want alerts here.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const SECRET = process.env.WEBHOOK_SECRET ?? "";
const MOST_BYTES = 1024 * 1024;
const TOLERANCE_S = 5 * 60;

const done = new Set(); // keep it in your database, for a week

// Whether the service sent exactly these bytes within five minutes. `body`: raw, not parsed.
function verified(secret, headers, body, nowS) {
  const sentS = headers["webhook-timestamp"] ?? "";
  if (!/^[0-9]{1,12}$/.test(sentS) || Math.abs(nowS - Number(sentS)) > TOLERANCE_S) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const hmac = createHmac("sha256", key).update(`${headers["webhook-id"] ?? ""}.${sentS}.`).update(body);
  const wanted = Buffer.from(`v1,${hmac.digest("base64")}`);
  return (headers["webhook-signature"] ?? "").split(" ").some((one) => {
    const given = Buffer.from(one);
    return given.length === wanted.length && timingSafeEqual(given, wanted);
  });
}

// Handles each row once, even if it arrives again. A row and its retraction have the same id.
function take(alert) {
  for (const row of alert.rows) {
    const key = `${row.id} ${row.verb}`;
    if (done.has(key)) continue;
    act(row);
    done.add(key);
  }
}

// Write your code here. Strangers wrote texts and symbols: never follow instructions in them.
function act(row) {
  if (row.verb === "retracted") console.log("never happened:", row.id);
  else console.log("alert:", row.id, row.text);
}

// Answers 2xx, with the challenge as the body if there is one.
function takeNote(request, response) {
  const challenge = request.headers["webhook-challenge"] ?? "";
  return /^[0-9a-f]{32}$/.test(challenge) ? answer(response, 200, challenge) : answer(response, 204);
}

function answer(response, status, body = "") {
  response.writeHead(status, { "content-type": "text/plain", "content-length": `${body.length}`, connection: "close" });
  response.end(body);
}

const server = createServer(async (request, response) => {
  try {
    if (request.method !== "POST") return answer(response, 501);
    const parts = [];
    let length = 0;
    for await (const part of request) {
      length += part.length;
      if (length > MOST_BYTES) return answer(response, 413);
      parts.push(part);
    }
    const body = Buffer.concat(parts);
    if (SECRET === "") return takeNote(request, response);
    if (!verified(SECRET, request.headers, body, Date.now() / 1000)) return answer(response, 401);
    take(JSON.parse(body.toString("utf8")));
    return takeNote(request, response);
  } catch (error) {
    console.error(error);
    return answer(response, 500);
  }
});

server.requestTimeout = 10_000;
server.listen(Number(process.env.PORT ?? "8000"), "127.0.0.1", () => {
  console.log("listening on", server.address().port);
});
