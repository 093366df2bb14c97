import { createConfig, factory } from "ponder";
import { getAbiItem } from "viem";

import { v3FactoryAbi, v3PoolAbi, v4PoolManagerAbi } from "./abis/exchange";
import { curveAbi, factoryAbi, firstFactoryAbi, tokenAbi } from "./abis/launchpad";
import { settings } from "./src/settings";

const { startBlock, endBlock } = settings;
const blocks = { chain: "local", startBlock, endBlock } as const;
const launched = getAbiItem({ abi: factoryAbi, name: "TokenLaunched" });
const launchedFirst = getAbiItem({ abi: firstFactoryAbi, name: "TokenLaunched" });

// Ponder begins with 20 requests a second to each url and learns slowly that it may ask for more. That guards
// strangers' nodes and says nothing of its speed: named so often, the node is never waited for because of it.
const rpc = Array.from({ length: settings.urls }, (_, number) => `${settings.rpcUrl}/?${number}`);

export default createConfig({
  chains: { local: { id: settings.chainId, rpc } },
  contracts: {
    V3Factory: { ...blocks, abi: v3FactoryAbi, address: settings.v3Factory },
    V3Pool: {
      ...blocks,
      abi: v3PoolAbi,
      address: factory({
        address: settings.v3Factory,
        event: getAbiItem({ abi: v3FactoryAbi, name: "PoolCreated" }),
        parameter: "pool",
        startBlock,
      }),
    },
    V4PoolManager: { ...blocks, abi: v4PoolManagerAbi, address: settings.v4PoolManager },
    Launchpad: { ...blocks, abi: factoryAbi, address: settings.launchpadFactory },
    FirstLaunchpad: { ...blocks, abi: firstFactoryAbi, address: settings.firstFactory },
    Curve: {
      ...blocks,
      abi: curveAbi,
      address: factory({
        address: settings.launchpadFactory,
        event: launched,
        parameter: "curve",
        startBlock,
      }),
    },
    Launched: {
      ...blocks,
      abi: tokenAbi,
      address: factory({
        address: settings.launchpadFactory,
        event: launched,
        parameter: "token",
        startBlock,
      }),
    },
    LaunchedFirst: {
      ...blocks,
      abi: tokenAbi,
      address: factory({
        address: settings.firstFactory,
        event: launchedFirst,
        parameter: "token",
        startBlock,
      }),
    },
  },
});
