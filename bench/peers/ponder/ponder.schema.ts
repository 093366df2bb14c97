// The columns of roundtrip's facts that these events fill, with the same indexes.
import { index, onchainTable, primaryKey } from "ponder";

export const pool = onchainTable(
  "pool",
  (t) => ({
    at: t.hex().primaryKey(),
    kind: t.text().notNull(),
    token: t.hex().notNull(),
    quote: t.hex().notNull(),
    tokenFirst: t.boolean().notNull(),
    traded: t.boolean().notNull(),
    feePips: t.integer().notNull(),
    tickSpacing: t.integer().notNull(),
    hook: t.hex(),
    blockNumber: t.integer().notNull(),
    logIndex: t.integer().notNull(),
    atS: t.integer().notNull(),
  }),
  (table) => ({
    byToken: index().on(table.token),
    byQuote: index().on(table.quote),
    byBlock: index().on(table.blockNumber),
  }),
);

export const launch = onchainTable(
  "launch",
  (t) => ({
    token: t.hex().primaryKey(),
    generation: t.integer().notNull(),
    deployer: t.hex().notNull(),
    sender: t.hex().notNull(),
    quote: t.hex().notNull(),
    at: t.hex().notNull(),
    thresholdRaw: t.bigint(),
    blockNumber: t.integer().notNull(),
    logIndex: t.integer().notNull(),
    atS: t.integer().notNull(),
    txHash: t.hex().notNull(),
  }),
  (table) => ({
    byDeployer: index().on(table.deployer),
    byBlock: index().on(table.blockNumber),
  }),
);

export const launchQuote = onchainTable("launch_quote", (t) => ({ quote: t.hex().primaryKey() }));

export const trade = onchainTable(
  "trade",
  (t) => ({
    atS: t.integer().notNull(),
    blockNumber: t.integer().notNull(),
    logIndex: t.integer().notNull(),
    pool: t.hex().notNull(),
    trader: t.hex().notNull(),
    buys: t.boolean().notNull(),
    tokenRaw: t.bigint().notNull(),
    quoteRaw: t.bigint().notNull(),
    txHash: t.hex().notNull(),
  }),
  (table) => ({
    pk: primaryKey({ columns: [table.blockNumber, table.logIndex] }),
    byPool: index().on(table.pool),
    byTrader: index().on(table.trader),
  }),
);

export const transfer = onchainTable(
  "transfer",
  (t) => ({
    atS: t.integer().notNull(),
    blockNumber: t.integer().notNull(),
    logIndex: t.integer().notNull(),
    token: t.hex().notNull(),
    from: t.hex().notNull(),
    to: t.hex().notNull(),
    amountRaw: t.bigint().notNull(),
    sender: t.hex().notNull(),
    txHash: t.hex().notNull(),
  }),
  (table) => ({
    pk: primaryKey({ columns: [table.blockNumber, table.logIndex] }),
    byToken: index().on(table.token),
  }),
);
