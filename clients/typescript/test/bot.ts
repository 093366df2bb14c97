// bot.ts: buys a token that is ok, and sells it once it is no more, or after so many seconds.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { Client, type PreparedTrade } from "roundtrip-client";
import { createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const [token = "", amount = "0.1", seconds = "3600"] = process.argv.slice(2);
const { ROUNDTRIP_URL = "", NODE_URL = "", WALLET_KEY = "", CONTRACTS = "" } = process.env;
const client = new Client({ baseUrl: ROUNDTRIP_URL });
const account = privateKeyToAccount(WALLET_KEY as `0x${string}`);
const currency = { name: "ether", symbol: "ETH", decimals: 18 };
const rpcUrls = { default: { http: [NODE_URL] } };
const chain = defineChain({ id: 4663, name: "Robinhood Chain", nativeCurrency: currency, rpcUrls });
const wallet = createWalletClient({ account, chain, transport: http() }).extend(publicActions);

/** Proves the steps of a trade from their own bytes, then signs and sends each. */
async function send(trade: PreparedTrade, asked: string): Promise<void> {
  writeFileSync("trade.json", JSON.stringify(trade));
  const wanted = ["--from", account.address, "--token", token, "--side", trade.side, "--amount", asked];
  const proof = spawnSync("roundtrip-verify", ["trade.json", "--network", CONTRACTS, ...wanted], { encoding: "utf8" });
  if (trade.refused) throw new Error(trade.verdict.text);
  if (proof.status !== 0) throw new Error(`not proven: ${proof.error?.message ?? proof.stdout}`);
  for (const { to, data, value, gas, does } of trade.steps) {
    const step = { to: to as `0x${string}`, data: data as `0x${string}`, value: BigInt(value), gas: BigInt(gas) };
    const { status } = await wallet.waitForTransactionReceipt({ hash: await wallet.sendTransaction(step) });
    if (status !== "success") throw new Error(`failed on the chain: ${does}`);
  }
}

const check = async () => (await client.check(token, { amount })).verdict;
const { level, text } = await check();
if (level !== "ok") throw new Error(`not bought: ${text}`);
await send(await client.prepareBuy({ token, from: account.address, amount }), amount);
console.log("bought", token);
for (const until = Date.now() + Number(seconds) * 1000; Date.now() < until && (await check()).level === "ok"; )
  await new Promise((wake) => setTimeout(wake, 30_000));
await send(await client.prepareSell({ token, from: account.address, amount: "all" }), "all");
console.log("sold", token);
