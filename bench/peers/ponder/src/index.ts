import { type Context, type Event, ponder } from "ponder:registry";
import { launch, launchQuote, pool, trade, transfer } from "ponder:schema";

import { NOTHING, settings } from "./settings";

type Hex = `0x${string}`;

const money: Hex[] = [NOTHING, settings.weth, settings.usdg];

const spot = (event: Event) => ({
  atS: Number(event.block.timestamp),
  blockNumber: Number(event.block.number),
  logIndex: event.log.logIndex,
});

// Which side is the token and which the quote: eth before weth before usdg before what launches were made against.
async function sides(context: Context, currency0: Hex, currency1: Hex) {
  const rank = async (currency: Hex) => {
    const place = money.indexOf(currency.toLowerCase() as Hex);
    if (place !== -1) return place;
    return (await context.db.find(launchQuote, { quote: currency })) ? 3 : 4;
  };
  const [rank0, rank1] = [await rank(currency0), await rank(currency1)];
  const quoteFirst = rank0 < rank1 && rank0 < 4;
  return {
    token: quoteFirst ? currency1 : currency0,
    quote: quoteFirst ? currency0 : currency1,
    tokenFirst: !quoteFirst,
    // Money for money is nobody's trade.
    traded: Math.min(rank0, rank1) < 4 && Math.max(rank0, rank1) > 2,
  };
}

// Amounts as the pool sees them: above zero was paid in.
async function swapped(context: Context, event: Event, at: Hex, amount0: bigint, amount1: bigint) {
  const known = await context.db.find(pool, { at });
  if (!known?.traded) return;
  const [tokens, quote] = known.tokenFirst ? [amount0, amount1] : [amount1, amount0];
  if (tokens === 0n || tokens < 0n === quote < 0n) return;
  const size = (amount: bigint) => (amount < 0n ? -amount : amount);
  await context.db.insert(trade).values({
    ...spot(event),
    pool: at,
    trader: event.transaction.from,
    buys: tokens < 0n,
    tokenRaw: size(tokens),
    quoteRaw: size(quote),
    txHash: event.transaction.hash,
  });
}

ponder.on("V3Factory:PoolCreated", async ({ event, context }) => {
  const { token0, token1, fee, tickSpacing } = event.args;
  await context.db.insert(pool).values({
    at: event.args.pool,
    kind: "v3",
    ...(await sides(context, token0, token1)),
    feePips: fee,
    tickSpacing,
    ...spot(event),
  });
});

ponder.on("V3Pool:Swap", async ({ event, context }) => {
  await swapped(context, event, event.log.address, event.args.amount0, event.args.amount1);
});

ponder.on("V4PoolManager:Initialize", async ({ event, context }) => {
  const { id, currency0, currency1, fee, tickSpacing, hooks } = event.args;
  await context.db.insert(pool).values({
    at: id,
    kind: "v4",
    ...(await sides(context, currency0, currency1)),
    feePips: fee,
    tickSpacing,
    hook: hooks === NOTHING ? null : hooks,
    ...spot(event),
  });
});

ponder.on("V4PoolManager:Swap", async ({ event, context }) => {
  // The launchpad's hook turns its fees into money here: nobody's trade.
  if (event.args.sender.toLowerCase() === settings.launchpadHook) return;
  await swapped(context, event, event.args.id, -event.args.amount0, -event.args.amount1);
});

ponder.on("Launchpad:TokenLaunched", async ({ event, context }) => {
  const { token, curve, deployer, pairToken, graduationThreshold } = event.args;
  await context.db.insert(launch).values({
    token,
    generation: 2,
    deployer,
    sender: event.transaction.from,
    quote: pairToken,
    at: curve,
    thresholdRaw: graduationThreshold,
    ...spot(event),
    txHash: event.transaction.hash,
  });
  await context.db.insert(launchQuote).values({ quote: pairToken }).onConflictDoNothing();
  await context.db.insert(pool).values({
    at: curve,
    kind: "curve",
    token,
    quote: pairToken,
    tokenFirst: false,
    traded: true,
    feePips: 0,
    tickSpacing: 0,
    ...spot(event),
  });
});

ponder.on("FirstLaunchpad:TokenLaunched", async ({ event, context }) => {
  const { token, deployer, pairToken, pool: at } = event.args;
  await context.db.insert(launch).values({
    token,
    generation: 1,
    deployer,
    sender: event.transaction.from,
    quote: pairToken,
    at,
    ...spot(event),
    txHash: event.transaction.hash,
  });
  await context.db.insert(launchQuote).values({ quote: pairToken }).onConflictDoNothing();
});

ponder.on("Curve:CurveBuy", async ({ event, context }) => {
  await context.db.insert(trade).values({
    ...spot(event),
    pool: event.log.address,
    trader: event.transaction.from,
    buys: true,
    tokenRaw: event.args.tokensOut,
    quoteRaw: event.args.quoteIn,
    txHash: event.transaction.hash,
  });
});

ponder.on("Curve:CurveSell", async ({ event, context }) => {
  await context.db.insert(trade).values({
    ...spot(event),
    pool: event.log.address,
    trader: event.transaction.from,
    buys: false,
    tokenRaw: event.args.tokensIn,
    quoteRaw: event.args.quoteOut,
    txHash: event.transaction.hash,
  });
});

const moved = async ({ event, context }: { event: Event<"Launched:Transfer">; context: Context }) => {
  await context.db.insert(transfer).values({
    ...spot(event),
    token: event.log.address,
    from: event.args.from,
    to: event.args.to,
    amountRaw: event.args.amount,
    sender: event.transaction.from,
    txHash: event.transaction.hash,
  });
};

ponder.on("Launched:Transfer", moved);
ponder.on("LaunchedFirst:Transfer", moved);
