"""The account of a whole transaction in plain sentences, out of its steps."""

from collections.abc import Sequence

from roundtrip.chain.transactions import Around, Mined, Sent
from roundtrip.domain.account import Account, Moved, Step, StepKind
from roundtrip.domain.types import ZERO_ADDRESS, Address
from roundtrip.venues.known_calls import KNOWN_CALLS, KnownCall

from .explain_answer import EthBy
from .explain_text import WEIGHTY, Words, wei_text
from .index_answer import when

MOST_TOLD = 5
"""Steps in the text; the answer has more."""
_LEAST_FEE_WEI = 10**12
"""Of a fee that is less nobody wants the digits."""


def sentences(
    words: Words,
    sent: Sent,
    account: Account,
    whose: Address | None,
    moved: dict[Address, int],
    eth_by: EthBy,
    mined: Mined,
    around: Around,
) -> str:
    said = [_operations_text(sent, account)] if account.accounts else []
    if sent.is_the_chains_own():
        said.append("The chain itself made this transaction, such as for a deposit by its bridge.")
    if account.steps[0].kind == "call":
        said.append(call_text(words, sent))
    else:
        weight = sorted(range(len(account.steps)), key=lambda n: WEIGHTY.index(account.steps[n].kind))
        shown = [account.steps[number] for number in sorted(weight[:MOST_TOLD])]
        said += [f"{upper(words.step(step))}." for step in shown]
        left = len(account.steps) - len(shown)
        if left:
            said.append(f"{left:,} more {'step is' if left == 1 else 'steps are'} not told here.")
    if account.strange_swaps:
        said.append(_strange_text(account.strange_swaps))
    said += _altogether(words, account, whose, moved, eth_by, around)
    said.append(fee_text(sent, mined, around))
    if any(not_money for not_money in moved if words.token(not_money) not in ("eth", "weth", "usdg")):
        said.append("Amounts of tokens are as their contracts tell them.")
    return " ".join(one for one in said if one)


def _operations_text(sent: Sent, account: Account) -> str:
    shown = ", ".join(account.accounts[:MOST_TOLD])
    more = len(account.accounts) - MOST_TOLD
    beside = f" and {more:,} more" if more > 0 else ""
    if len(account.accounts) == 1:
        return f"{sent.sender} carried operations of the account {shown} (account abstraction)."
    return f"{sent.sender} carried operations of the accounts {shown}{beside} (account abstraction)."


def call_text(words: Words, sent: Sent) -> str:
    """What is told of a call that did nothing that its logs tell."""
    paid = f" with {wei_text(sent.value_wei)}" if sent.value_wei else ""
    if sent.to is None:
        return f"{sent.sender} tried to make a contract{paid}."
    target = words.who(sent.to)
    if not sent.data:
        return f"{sent.sender} sent {wei_text(sent.value_wei)} to {target}."
    known = known_call(sent)
    if known is not None:
        return f"{sent.sender} called {known.name} on {target}{paid}."
    if target != sent.to:
        return f"{sent.sender} called {target}{paid}: selector {_selector(sent)}."
    return (
        f"{sent.sender} called a contract that we do not know, {sent.to}{paid}: selector {_selector(sent)}."
    )


def known_call(sent: Sent) -> KnownCall | None:
    return KNOWN_CALLS.get(_selector(sent)) if len(sent.data) >= 4 else None


def _selector(sent: Sent) -> str:
    return "0x" + sent.data[:4].hex()


def _strange_text(count: int) -> str:
    if count == 1:
        return "A contract that is no pool we know told of a trade, too: nothing it says is believed here."
    return f"Contracts that are no pools we know told of {count:,} trades: nothing they say is believed here."


def _altogether(
    words: Words,
    account: Account,
    whose: Address | None,
    moved: dict[Address, int],
    eth_by: EthBy,
    around: Around,
) -> list[str]:
    """What it comes to, where one step does not say it already; and how its eth is known."""
    if whose is None:
        return ["What each account paid and got is told for itself."]
    paid = [Moved(asset, -raw) for asset, raw in moved.items() if raw < 0]
    got = [Moved(asset, raw) for asset, raw in moved.items() if raw > 0]
    said = []
    if (paid or got) and not _says_all(account.steps, whose, paid, got):
        parts = [f"paid {words.amounts(paid)}"] if paid else []
        parts += [f"got {words.amounts(got)}"] if got else []
        said.append(f"Altogether {whose} {' and '.join(parts)}, its fee left out.")
    if eth_by == "balance" and around.others and ZERO_ADDRESS in moved:
        said.append("Its eth is measured over the whole block, in which others acted, too.")
    elif eth_by == "events" and not {step.kind for step in account.steps} <= _EXACT:
        said.append("Eth that contracts handed out inside of it could not be told.")
    return said


_EXACT: frozenset[StepKind] = frozenset({"approval", "transfer", "item", "wrap"})
"""Steps after which nobody expects eth back."""


def _says_all(steps: Sequence[Step], whose: Address, paid: list[Moved], got: list[Moved]) -> bool:
    """Whether the only step says what the wallet paid and got."""
    step = steps[0]
    if len(steps) > 1 or step.who != whose or step.kind not in ("transfer", "buy", "sell", "swap"):
        return False
    return [step.paid] == paid and ([] if step.got is None else [step.got]) == got


def fee_text(sent: Sent, mined: Mined, around: Around) -> str:
    at = f"It is in block {around.ref.number} of {when(around.ref.timestamp_s):%Y-%m-%d %H:%M:%S} UTC"
    if sent.is_the_chains_own():
        return f"{at}."
    fee_wei = mined.fee_wei()
    fee = "under 0.000001 eth" if 0 < fee_wei < _LEAST_FEE_WEI else wei_text(fee_wei)
    return f"{at}; its fee was {fee}."


def upper(text: str) -> str:
    return text if text.startswith("0x") else text[:1].upper() + text[1:]
