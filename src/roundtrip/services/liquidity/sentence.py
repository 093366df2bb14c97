"""The sentence about liquidity in a deep check, and who the accounts in it are. Needs no database."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace as replace_fields

from roundtrip.domain.base.types import Address
from roundtrip.domain.liquidity.text import Tag, describe
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.support.check_answer import Check

from .findings import LiquidityFindings

UNREAD = "We could not read who can withdraw its liquidity."
Tags = Mapping[Address, tuple[Tag, ...]]


def add_sentence(answer: Check, sentence: str) -> Check:
    """The check with a sentence about its liquidity, where it has any."""
    if answer.verdict.code in _WITHOUT_LIQUIDITY:
        return answer
    verdict = replace_fields(answer.verdict, text=f"{answer.verdict.text} {sentence}")
    return replace_fields(answer, verdict=verdict)


_WITHOUT_LIQUIDITY = frozenset({"no_contract", "not_a_token", "quote_asset", "no_pool", "empty_pool"})


def describe_alone(found: LiquidityFindings) -> str:
    """The sentence that matters most, without an index."""
    accounts = [party.wallet for party in found.depth.free_parties()]
    return describe(found.depth, found.exit_after, tag_accounts(accounts, {}, found.bought))[0]


def tag_accounts(
    accounts: Iterable[Address], funders: Mapping[Address, Address | None], bought: BuyRoundResult
) -> Tags:
    """The tags of each account that has any. ``funders``: who first sent each of them eth, where known."""
    deployer, owner = bought.indexed.deployer, bought.data.facts.owner
    if deployer is None:
        deployer = getattr(bought.data.launch, "deployer", None)
    tags: dict[Address, tuple[Tag, ...]] = {}
    for account in accounts:
        funder = funders.get(account)
        checks: tuple[tuple[Tag, bool], ...] = (
            ("deployer", account == deployer),
            ("owner", account == owner),
            ("funded_by_deployer", funder is not None and funder == deployer),
            ("funded_by_owner", funder is not None and funder == owner and owner != deployer),
        )
        if found := tuple(tag for tag, holds in checks if holds):
            tags[account] = found
    return tags
