"""What to know of a token before buying it: a few lines, the worst first, out of what is known already."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from roundtrip.domain.base.figures import format_count, format_duration, format_percent
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.market.exposure import INSIDERS_HIGH_BPS, INSIDERS_MINDED_BPS
from roundtrip.domain.verdicts.risks import MARKED_LOSS_BPS

MOST_FACTS = 5
_HIGH_TOP10_BPS, _SOME_TOP10_BPS = 5000, 3000
_DAY_S = 86_400
_HALF_BPS, _NEARLY_ALL_BPS = 5000, 9900

Sign = Literal["bad", "mind", "good"]
_WORST_FIRST: tuple[Sign, ...] = ("bad", "mind", "good")
Answer = Mapping[str, Any]
"""An answer of an operation, or a part of one, as decoded JSON."""
NOTHING_STORED: Answer = {"insidersBps": None, "freeBps": None, "unprovenBps": None}


class TokenFact(NamedTuple):
    """One line. ``good``: it was measured and speaks for the token. ``part``: the id of the page's part that
    says more; empty: none does."""

    sign: Sign
    text: str
    part: str = ""


def list_facts(
    check: Answer,
    card: Answer | None,
    holders: Answer | None,
    liquidity: Answer | None,
    says_liquidity: bool = False,
    stored: Answer = NOTHING_STORED,
) -> list[TokenFact]:
    """What is known, the worst first. ``card``, ``holders``, ``liquidity``: None: not known here, or not yet,
    which is never a pass. ``says_liquidity``: the verdict's text says who can withdraw it. ``stored``: as
    ``StoredRisk``: what was last read."""
    held = None if holders is None else holders["held"]
    facts = [
        *(_stored_insiders(stored["insidersBps"]) if held is None else ()),
        *_holders(held, () if holders is None else holders["launched"]["groups"]),
        *_flags(check),
        *_outlook(check, card),
        *_cost(card),
        *_deployer(check),
        *_age(check, held),
        *(() if says_liquidity or check["verdict"]["code"] == "no_pool" else _liquidity(liquidity, stored)),
    ]
    return sorted(facts, key=lambda fact: _WORST_FIRST.index(fact.sign))


def _sign(bps: int, mind_bps: int, bad_bps: int) -> Sign:
    if bps >= bad_bps:
        return "bad"
    return "mind" if bps >= mind_bps else "good"


def _stored_insiders(bps: int | None) -> Iterator[TokenFact]:
    """What is known while the holders are read."""
    if bps is not None:
        sign = _sign(bps, INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
        yield TokenFact(sign, f"Insiders held {format_percent(bps)} when they were last read.", "holders")


def _holders(held: Answer | None, groups: Sequence[Answer]) -> Iterator[TokenFact]:
    if held is None or held["holders"] is None:
        yield TokenFact("mind", "Holders: not known yet.", "holders")
        return
    is_complete = held["status"] == "complete"
    purses = (held["forensics"].get("purses") or {"rows": []})["rows"]
    insiders = list(_insiders(held, groups, is_complete))
    yield from insiders
    # The deployer's is counted above. Strangers with one payer are one big holder.
    for purse in [purse for purse in purses if not purse["hasDeployer"]][:1]:
        sign = _sign(purse["heldBps"], INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
        if sign != "good":
            text = f"{format_count(purse['wallets'], 'wallet')} of one purse hold"
            yield TokenFact(sign, f"{text} {format_percent(purse['heldBps'])}.", "holders")
    top_bps = held["holders"]["top10Bps"]
    sign = _sign(top_bps, _SOME_TOP10_BPS, _HIGH_TOP10_BPS)
    if sign != "good" or (is_complete and all(fact.sign == "good" for fact in insiders)):
        yield TokenFact(sign, f"The ten biggest wallets hold {format_percent(top_bps)}.", "holders")


_INSIDERS_UNKNOWN = TokenFact("mind", "What insiders hold is not known.", "holders")


def insiders_bps(held: Answer) -> int | None:
    """What insiders hold: the share of the boards; where the deployer's purse holds more, that. None: not
    known."""
    known_bps, purses = held["forensics"]["suspiciousBps"], held["forensics"].get("purses") or {"rows": []}
    if known_bps is None:
        return None
    of_deployer = (int(purse["heldBps"]) for purse in purses["rows"] if purse["hasDeployer"])
    return max(int(known_bps), *of_deployer, 0)


def launch_age_s(check: Answer, held: Answer | None) -> int | None:
    """Seconds between the token's launch and the check; None: not known."""
    launch = None if held is None else held["launch"]
    if launch is None or launch["time"] is None:
        return None
    at, launched = (datetime.fromisoformat(text) for text in (check["checkedAt"], launch["time"]))
    return int((at - launched).total_seconds())


def _insiders(held: Answer, groups: Sequence[Answer], is_complete: bool) -> Iterator[TokenFact]:
    """Their share is that of the boards: where the deployer's purse holds more, it is its."""
    share_bps, deployer, bundle = insiders_bps(held), held["deployer"], held["bundle"]
    deployer_bps = 0 if deployer is None else deployer["heldBps"] or 0
    bundle_bps = 0 if bundle is None else bundle["heldBps"] or 0
    if share_bps is None:
        parts = _parts(deployer_bps, bundle, _has_deployer(held, groups))
        if parts:
            yield TokenFact("bad", f"Of the supply, {' and '.join(parts)} hold.", "holders")
        else:
            yield _INSIDERS_UNKNOWN
        return
    sign = _sign(share_bps, INSIDERS_MINDED_BPS, INSIDERS_HIGH_BPS)
    if (not share_bps and deployer is None) or (sign == "good" and not is_complete):
        yield _INSIDERS_UNKNOWN
        return
    is_among = _has_deployer(held, groups)
    parts = _parts(deployer_bps, bundle, is_among)
    rest_bps = share_bps - (bundle_bps if is_among else deployer_bps + bundle_bps)
    of_them = f": {', '.join(parts)}" if parts else ""
    if parts and rest_bps > 0:
        of_them += f", others {format_percent(rest_bps)}"
    elif rest_bps < 0:
        of_them += " (these overlap)"
    yield TokenFact(sign, f"Insiders hold {format_percent(share_bps)}{of_them}.", "holders")


def _parts(deployer_bps: int, bundle: Answer | None, is_among: bool) -> list[str]:
    """What the deployer and the largest bundle hold. ``is_among``: he is one of its wallets, counted once."""
    parts = [f"the deployer {format_percent(deployer_bps)}"] if deployer_bps else []
    if bundle is None or not bundle["heldBps"]:
        return parts
    if is_among:
        others_bps = bundle["heldBps"] - deployer_bps
        more = f"{bundle['wallets'] - 1} more of its bundle {format_percent(others_bps)}"
        return [*parts, *([more] if others_bps else [])]
    tie = "in one transaction" if bundle["funder"] is None else "with one funder"
    return [*parts, f"a bundle of {bundle['wallets']} {tie} {format_percent(bundle['heldBps'])}"]


def _has_deployer(held: Answer, groups: Sequence[Answer]) -> bool:
    """Whether the deployer is known to be one of the largest bundle's wallets."""
    deployer, bundle = held["deployer"], held["bundle"]
    if deployer is None or bundle is None:
        return False
    same = (bundle["wallets"], bundle["heldBps"])
    return any(
        deployer["address"] in [wallet["address"] for wallet in group["wallets"]]
        for group in groups
        if group["isBundle"] and (group["count"], group["heldBps"]) == same
    ) and (bundle["heldBps"] or 0) >= (deployer["heldBps"] or 0)


_FLAG_FACTS: Mapping[str, tuple[Sign, str]] = {
    "deployer_sold": ("bad", "The deployer sold half or more of what it got."),
    "serial_deployer": ("bad", "The deployer launched many tokens, and few graduated."),
    "no_liquidity": ("bad", "There is nearly no liquidity: a larger sell brings little."),
    "hook": ("mind", "A stranger's contract, a hook, runs in every trade."),
    "dynamic_fee": ("mind", "The pool's fee can change with every trade."),
    "snipe_tax_active": ("mind", "Who buys now pays the extra tax on first buyers."),
    "curve_closed": ("mind", "Its curve is closed: no trade until its pool opens."),
}


def _flags(check: Answer) -> Iterator[TokenFact]:
    for flag in check["flags"]:
        if flag in _FLAG_FACTS:
            yield TokenFact(*_FLAG_FACTS[flag], "flags")


_MINDED = {(topic, standing) for topic in ("owner", "code") for standing in ("may", "not_known")} | {
    ("holders", "not_known")
}


def _outlook(check: Answer, card: Answer | None) -> Iterator[TokenFact]:
    """Who can change the token. Nothing found is no promise, and speaks for nothing."""
    outlook = [] if card is None else card["outlook"]
    owner_harms = ("owner", "can") in {(prospect["topic"], prospect["standing"]) for prospect in outlook}
    for prospect in outlook:
        topic, standing, text = prospect["topic"], prospect["standing"], prospect["text"]
        if standing == "can":
            yield TokenFact("bad", text, "outlook")
        elif (topic, standing) == ("owner", "may") and check["token"]["owner"]:
            untried = "" if card is None or card["deep"] else "; what it can do was not tried"
            if not owner_harms:
                text = f"Its owner {check['token']['owner']} can still act{untried}."
                yield TokenFact("mind", text, "outlook")
        elif (topic, standing) in _MINDED:
            yield TokenFact("mind", text, "outlook")


def _cost(card: Answer | None) -> Iterator[TokenFact]:
    cost = None if card is None else card["cost"]
    if cost is None:
        return
    buy_bps, sell_bps = cost["buyTaxBps"], cost["sellTaxBps"]
    worst_bps = max(buy_bps or 0, sell_bps or 0, cost["taxBps"] or 0)
    if worst_bps >= MARKED_LOSS_BPS:
        yield TokenFact(_sign(worst_bps, 0, POLICY.warn_loss_bps), describe_tax(cost), "cost")
    elif buy_bps is not None and sell_bps is not None and worst_bps == 0:
        yield TokenFact("good", "No buy tax, no sell tax.", "cost")
    for bps, what in ((cost["poolBps"], "The pool and its hook keep {} of a round trip."),
                      (cost["impactBps"], "Your own buy moves the price: {} fewer tokens than a small one."),
                      ):  # fmt: skip
        if bps is not None and bps >= MARKED_LOSS_BPS:
            sign = _sign(bps, 0, POLICY.warn_loss_bps)
            yield TokenFact(sign, what.format(format_percent(bps)), "cost")


def describe_tax(cost: Answer) -> str:
    """What the taxes keep, in a sentence."""
    buy_bps, sell_bps = cost["buyTaxBps"], cost["sellTaxBps"]
    if buy_bps is None or sell_bps is None:
        most_bps = max(buy_bps or 0, sell_bps or 0, cost["taxBps"] or 0)
        return f"Taxes take {format_percent(most_bps)} of a round trip."
    ways = [("buy", buy_bps), ("sell", sell_bps)]
    return f"A tax takes {' and '.join(f'{format_percent(bps)} of each {way}' for way, bps in ways if bps)}."


def _deployer(check: Answer) -> Iterator[TokenFact]:
    launchpad = check["launchpad"]
    record = None if launchpad is None else launchpad["deployer"]
    if record is None or "serial_deployer" in check["flags"]:
        return
    launches, graduated, sold = record["launches"], record["graduated"], record["soldOwn"]
    text = f"Deployer: {format_count(launches, 'launch', 'launches')}, {graduated} graduated, "
    text += f"sold its own in {sold}." if sold else "sold its own in none."
    yield TokenFact("mind" if sold or not graduated else "good", text)


def _age(check: Answer, held: Answer | None) -> Iterator[TokenFact]:
    age_s = launch_age_s(check, held)
    if age_s is not None and age_s > 0:
        text = f"Launched {format_duration(age_s)} ago."
        yield TokenFact("mind" if age_s < _DAY_S else "good", text, "holders")


def _stored_liquidity(stored: Answer) -> Iterator[TokenFact]:
    """What is known while the positions are read."""
    free_bps, unproven_bps = stored["freeBps"], stored["unprovenBps"]
    sign: Sign = "mind"
    if free_bps is None or unproven_bps is None:
        text = "Liquidity: who can withdraw it is not known yet."
    elif free_bps:
        sign, text = _sign(free_bps, 1, _HALF_BPS), _FREE.format(format_percent(free_bps))
    elif unproven_bps:
        text = _UNSURE.format(format_percent(unproven_bps))
    else:
        text = "Nobody could withdraw the liquidity when it was last read: it was locked, burned or kept."
    yield TokenFact(sign, text, "liquidity")


_FREE = "{} of the liquidity can be withdrawn now."
_UNSURE = "Who can withdraw {} of the liquidity is not known."


def _liquidity(found: Answer | None, stored: Answer) -> Iterator[TokenFact]:
    totals = None if found is None else found["totals"]
    if found is None:
        yield from _stored_liquidity(stored)
        return
    if totals is None:
        yield TokenFact("mind", "Liquidity: who can withdraw it is not known.", "liquidity")
        return
    free_bps, unsure_bps = totals["freeBps"], totals["unknownBps"] + totals["contractBps"]
    if not free_bps and found["ifItLeft"] is not None:
        # Totals are of the liquidity in range only.
        yield TokenFact("bad", "Money beside the price, out of range, can be withdrawn now.", "liquidity")
        return
    if not free_bps and not found["poolsComplete"]:
        text = "Not all of its pools were read: who can withdraw the rest is not known."
        yield TokenFact("mind", text, "liquidity")
        return
    if free_bps:
        sign = _sign(free_bps, 1, _HALF_BPS)
        yield TokenFact(sign, _FREE.format(format_percent(free_bps)), "liquidity")
    elif unsure_bps:
        yield TokenFact("mind", _UNSURE.format(format_percent(unsure_bps)), "liquidity")
    elif totals["burnedBps"] + totals["launchpadBps"] >= _NEARLY_ALL_BPS:
        yield TokenFact(
            "good", "Nobody can withdraw the liquidity: it is burned or the launchpad's.", "liquidity"
        )
    else:
        text = f"{format_percent(totals['lockedBps'])} of the liquidity is locked: see until when."
        yield TokenFact("mind", text, "liquidity")
