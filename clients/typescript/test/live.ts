/** Uses a live service as a bot does, and prints what it got. Arguments: url, key, two tokens. */
import { Client, ServiceError } from "../src/index.js";

const [baseUrl = "", key = "", plain = "", trap = ""] = process.argv.slice(2);
const client = new Client({ baseUrl, key });
const lines: Record<string, string | undefined> = {};
const stream = client.stream({ tokens: [plain, trap], events: ["verdict"] });
const events: string[] = [];
const reading = (async () => {
  for await (const event of stream) {
    events.push(`${event.kind} ${event.token} ${event.verdict?.level}`);
    if (events.length === 2) break;
  }
})();
while (stream.lastEventId === "") await client.health();
const check = await client.check(plain, { deep: true, amount: "0.2" });
for await (const { address, check: found, error } of client.checks([plain, trap, "0x12"])) {
  lines[address] = found?.verdict.code ?? error?.code;
}
await reading;
const error = await client.check("0x12").catch((caught: unknown) => caught);
const proof = await client.proof(plain);
const keys = await client.keys();
const text = await client.keyText(plain);
const refused = await client
  .makeKey({ address: plain, signature: `0x${"11".repeat(65)}`, label: "", agent: false })
  .catch((caught: unknown) => caught);
console.log(
  JSON.stringify({
    level: check.verdict.level,
    lines,
    events: events.sort(),
    history: (await client.history(plain)).changes[0]?.code,
    holders: (await client.holders(plain)).address,
    liquidity: (await client.liquidity(plain)).address,
    unlocks: (await client.unlocks()).unlocks.length,
    evidence: proof.verdict.level,
    keys: keys.live.length,
    sign: text.sign,
    health: (await client.health()).ok,
    errors: [error, refused].map(
      (caught) => caught instanceof ServiceError && [caught.code, Boolean(caught.requestId)],
    ),
  }),
);
