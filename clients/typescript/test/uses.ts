/** Compiled, not run: every method, and what of its answer a program iterates over, compares or may find null. */
import { Client, type PreparedTrade, type StreamEvent } from "../src/index.js";

const client = new Client({ baseUrl: "http://service.example" });
const TOKEN = "0x00112233445566778899aabbccddeeff00112233";

export async function useReads(): Promise<unknown[]> {
  const check = await client.check(TOKEN, { amount: "0.5", deep: true });
  const hooked: boolean = check.flags.includes("hook");
  const isOk: boolean = check.verdict.level === "ok" && check.verdict.code === "ok";
  const owner: string | null = check.token.owner;
  const history = await client.history(TOKEN);
  const levels: string[] = history.changes.map((change) => change.level);
  const holders = await client.holders(TOKEN);
  const tops: string[] = holders.top.map((holder) => holder.address);
  const liquidity = await client.liquidity(TOKEN);
  const unlocks = await client.unlocks();
  const proof = await client.proof(TOKEN);
  const health = await client.health();
  const lacks: string[] = health.lacks.map((lack) => lack.what);
  const lines: string[] = [];
  for await (const line of client.checks([TOKEN])) lines.push(line.address);
  return [hooked, isOk, owner, levels, tops, liquidity, unlocks, proof, lacks, lines];
}

export async function useTrades(): Promise<string[]> {
  const trades: PreparedTrade[] = [
    await client.prepareBuy({ token: TOKEN, from: TOKEN, amount: "0.1" }),
    await client.prepareSell({ token: TOKEN, from: TOKEN, amount: "all" }),
  ];
  const simulation = await client.simulate({ from: TOKEN, calls: [{ to: TOKEN, data: "0x" }] });
  const ran: boolean = simulation.calls.every((call) => call.ok);
  const sent: string[] = [String(ran)];
  for (const trade of trades) for (const step of trade.steps) sent.push(step.to, step.data);
  return sent;
}

export async function useAccount(): Promise<unknown[]> {
  const text = await client.keyText(TOKEN);
  const made = await client.makeKey({ address: TOKEN, signature: "0x", label: "bot" });
  const keys = await client.keys();
  const revoked = await client.revokeKey("01234567");
  const credits = await client.credits();
  const redeemed = await client.redeemPayment({ tx: TOKEN });
  return [text.message, made.key, keys.live.map((key) => key.start), revoked, credits, redeemed];
}

export async function useEvents(): Promise<StreamEvent["kind"][]> {
  const kinds: StreamEvent["kind"][] = [];
  for await (const event of client.stream({ events: ["verdict", "removal"] })) kinds.push(event.kind);
  return kinds;
}

export async function useApi(): Promise<boolean> {
  const { data } = await client.api.GET("/v1/check/{address}", { params: { path: { address: TOKEN } } });
  return data?.flags.includes("hook") ?? false;
}
