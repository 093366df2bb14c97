"""Removals of active liquidity, as rules see them."""

from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, Numeric
from roundtrip.domain.watch.rules import Happening
from roundtrip.store.liquidity.removals import GONE

from .happening_moves import worth_threshold
from .happening_rows import PPM, Arguments, FactSpan, HappeningPage, HappeningReader, RuleFilter, page

_REMOVALS = """{gone}, chosen AS MATERIALIZED (
    SELECT gone.*, pool.token_id, pool.quote_id FROM gone JOIN facts.pool AS pool ON pool.id = gone.pool_id
    WHERE pool.in_money_from IS NOT NULL AND pool.token_id <> ALL({money}::int[]){threshold} AND {newest}
)
SELECT chosen.block_number, chosen.log_index, chosen.at_s, chosen.tx_hash, wallet.address AS wallet,
    token.address AS token, quote.address AS quote, chosen.part_raw::text, chosen.quote_raw::text,
    chosen.active_raw::text, launch.token_id IS NOT NULL AS by_deployer
FROM chosen JOIN facts.address AS wallet ON wallet.id = chosen.sender_id
JOIN facts.address AS token ON token.id = chosen.token_id
JOIN facts.address AS quote ON quote.id = chosen.quote_id
LEFT JOIN facts.launch AS launch ON launch.token_id = chosen.token_id
    AND launch.deployer_id = chosen.sender_id
"""


class _RemovingRow(NamedTuple):
    spot: Spot
    wallet: Address
    token: Address
    quote: Address
    part_raw: Numeric
    quote_raw: Numeric | None
    active_raw: Numeric | None
    by_deployer: bool


async def removals(reader: HappeningReader, span: FactSpan, rule_filter: RuleFilter) -> HappeningPage:
    """removing: a wallet took more active liquidity out of a money pool, in one transaction, than it put in
    (``store/liquidity/removals.GONE``). Worth the quote that came out, as in ``drains``. A share of the
    pool's active liquidity just before; None: not known. Where others added so much within the transaction
    that the wallet took out more than was active before, the share is all of it."""
    arguments = Arguments()
    where = arguments.within(span, "change")
    if rule_filter.wallets is not None:
        where += f" AND change.sender_id = ANY({arguments(rule_filter.wallets)}::int[])"
    if rule_filter.pools is not None:
        where += f" AND change.pool_id = ANY({arguments(rule_filter.pools)}::int[])"
    threshold = await worth_threshold(reader, arguments, span, rule_filter)
    if (ppm := rule_filter.above("%")) is not None:
        threshold += f" AND gone.part_raw * {PPM} > gone.active_raw * {arguments(ppm)}::bigint"
    statement = _REMOVALS.format(
        gone=GONE.format(where=where),
        money=arguments(reader.money_ids),
        threshold=threshold,
        newest=arguments.newest(span, "gone"),
    )
    rows = await reader.rows(_RemovingRow, statement, arguments)
    worths = await reader.worths((row.quote, row.quote_raw, row.spot) for row in rows)
    happenings = []
    for row, (wei, micro_usd) in zip(rows, worths, strict=True):
        whole_raw = None if row.active_raw is None else max(row.active_raw, row.part_raw)
        who = row.wallet, row.token
        happenings.append(
            Happening("removing", row.spot, *who, wei, micro_usd, row.part_raw, whole_raw, row.by_deployer)
        )
    return page(rows, happenings, span)
