"""Rules in words."""

from collections.abc import Mapping

from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Verb, Who

_WORTH: Mapping[Verb, str] = {
    "buying": "for more than {}",
    "selling": "for more than {}",
    "launching": "with a first buy of more than {}",
    "graduating": "with more than {} raised",
    "moving": "worth more than {}",
    "draining": "worth more than {}",
}


def when_it_tells(rule: Rule, wallet: Address | None) -> str:
    """What a rule tells of, to stand behind "when". ``wallet``: the one that it is about, if it is one."""
    who, token, over = _who(rule.who, wallet), _token(rule), _over(rule)
    match rule.verb:
        case "buying":
            return f"{who} buys {token}{over}"
        case "selling":
            return f"{who} sells {token}{over}"
        case "launching":
            return f"{who} launches {token}{over}"
        case "graduating":
            by = "" if rule.who.kind == "any" else f" launched by {who}"
            return f"{token}{by} graduates{over}"
        case "moving":
            return f"{who} moves {token}{over}"
        case "draining":
            return f"{who} takes liquidity{over} out of a pool of {token}"


def _who(who: Who, wallet: Address | None) -> str:
    match who.kind:
        case "follow":
            return "a wallet that you follow"
        case "any":
            return "anybody"
        case "wallet":
            return str(who.address)
        case "deployer" | "creator":
            return f"{wallet}, the {who.kind} of {who.address},"


def _token(rule: Rule) -> Address | str:
    return rule.token or ("a token from the launchpad" if rule.verb == "moving" else "a token")


def _over(rule: Rule) -> str:
    over: Over | None = rule.over
    if over is None:
        return ""
    amount = plain_decimal(over.raw, DECIMALS[over.unit])
    if over.unit != "%":
        return f" {_WORTH[rule.verb].format(f'{amount} {over.unit}')}"
    if rule.verb == "draining":
        return f", more than {amount} % of the pool's,"
    return f", more than {amount} % of its supply at once"
