// Everything that bench/indexers.py hands over, by environment.
declare const process: { env: Record<string, string | undefined> };

type Address = `0x${string}`;

function given(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
}

const address = (name: string): Address => given(name).toLowerCase() as Address;

export const NOTHING: Address = "0x0000000000000000000000000000000000000000";

export const settings = {
  chainId: Number(given("BENCH_CHAIN_ID")),
  urls: Number(given("BENCH_URLS")),
  rpcUrl: given("BENCH_RPC_URL"),
  startBlock: Number(given("BENCH_START_BLOCK")),
  endBlock: Number(given("BENCH_END_BLOCK")),
  weth: address("BENCH_WETH"),
  usdg: address("BENCH_USDG"),
  v3Factory: address("BENCH_V3_FACTORY"),
  v4PoolManager: address("BENCH_V4_POOL_MANAGER"),
  launchpadFactory: address("BENCH_LAUNCHPAD_FACTORY"),
  launchpadHook: address("BENCH_LAUNCHPAD_HOOK"),
  firstFactory: address("BENCH_LAUNCHPAD_V1_FACTORY"),
};
