"""Few wallets, tokens, thresholds and amounts, so that rules drawn at random are about what happens."""

from hypothesis import strategies as st

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.watch.rules import (
    DECIMALS,
    VERBS,
    WITHOUT_SHARE,
    Happening,
    Over,
    Rule,
    Verb,
    Who,
    WhoKind,
)

WALLETS = tuple(Address("0x" + digit * 40) for digit in "123")
TOKENS = tuple(Address("0x" + digit * 40) for digit in "abc")
RAW = st.integers(0, 4)
A_WALLET, A_TOKEN = st.sampled_from(WALLETS), st.sampled_from(TOKENS)
WORTH = st.none() | RAW


def happening(
    verb: Verb = "buying",
    wallet: Address = WALLETS[0],
    token: Address = TOKENS[0],
    eth_wei: int | None = None,
    micro_usd: int | None = None,
    part_raw: int | None = None,
    whole_raw: int | None = None,
    block_number: int = 10,
    by_deployer: bool = False,
) -> Happening:
    """One, of which nothing is known but what is said."""
    spot = Spot(block_number, 0, 1_700_000_000 + block_number, TxHash("0x" + "0" * 64))
    return Happening(verb, spot, wallet, token, eth_wei, micro_usd, part_raw, whole_raw, by_deployer)


HAPPENINGS = st.builds(
    happening,
    st.sampled_from(VERBS),
    A_WALLET,
    A_TOKEN,
    WORTH,
    WORTH,
    WORTH,
    st.none() | st.sampled_from((0, 10**6, 3 * 10**6, 700_000)),
    st.integers(0, 6),
    st.booleans(),
)


def whos(wallets: st.SearchStrategy[Address], tokens: st.SearchStrategy[Address]) -> st.SearchStrategy[Who]:
    """Every kind of who."""

    def of(kind: WhoKind) -> st.SearchStrategy[Who]:
        if kind in ("deployer", "creator"):
            return st.builds(Who, st.just(kind), tokens)
        return st.builds(Who, st.just(kind), wallets if kind == "wallet" else st.none())

    kinds: tuple[WhoKind, ...] = ("follow", "any", "wallet", "deployer", "creator")
    return st.sampled_from(kinds).flatmap(of)


def rules(
    wallets: st.SearchStrategy[Address] = A_WALLET,
    tokens: st.SearchStrategy[Address] = A_TOKEN,
    raw: st.SearchStrategy[int] = RAW,
) -> st.SearchStrategy[Rule]:
    """Whatever can be written."""

    def of(verb: Verb) -> st.SearchStrategy[Rule]:
        units = [unit for unit in DECIMALS if unit != "%" or verb not in WITHOUT_SHARE]
        over = st.none() | st.builds(Over, st.sampled_from(units), raw)
        return st.builds(Rule, whos(wallets, tokens), st.just(verb), over, st.none() | tokens)

    return st.sampled_from(VERBS).flatmap(of)
