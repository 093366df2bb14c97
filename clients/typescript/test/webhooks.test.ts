/** Webhooks, by messages that the service signed: the file that VECTORS names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { readChallenge, verifyWebhook, WebhookRefused } from "../src/index.js";

interface Vectors {
  secret: string;
  nowS: number;
  challenge: string;
  messages: { name: string; body: string; headers: Record<string, string>; isOurs: boolean }[];
}

const { secret, nowS, challenge, messages } = JSON.parse(readFileSync(process.env.VECTORS ?? "", "utf8")) as Vectors;

for (const { name, body, headers, isOurs } of messages) {
  test(`${name} is ${isOurs ? "verified" : "refused"}`, async () => {
    const forms = [verifyWebhook(secret, headers, body, nowS)];
    forms.push(verifyWebhook(secret, headers, new TextEncoder().encode(body), nowS));
    if (isOurs) {
      forms.push(verifyWebhook(secret, new Headers(headers), body, nowS));
      for (const message of await Promise.all(forms)) {
        assert.deepEqual([message.kind, message.rows[0]?.id, message.rows[0]?.text], ["rule", 4711, "naïve ☃"]);
      }
      assert.equal(readChallenge(headers), challenge);
    } else {
      await Promise.all(forms.map((form) => assert.rejects(form, WebhookRefused)));
    }
  });
}

test("a secret that is none verifies nothing", async () => {
  const { body, headers } = messages[0] ?? assert.fail();
  for (const none of ["", "whsec_", "whsec_§", secret.slice(6)]) {
    await assert.rejects(verifyWebhook(none, headers, body, nowS), TypeError);
  }
});

test("a challenge has its form", () => {
  assert.equal(readChallenge({ "webhook-challenge": "<script>" }), "");
  assert.equal(readChallenge({}), "");
});
