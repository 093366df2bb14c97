"""What accounts other than the owner could change, by trial: a token may obey accounts that it hides."""

from roundtrip.domain.base import names
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES, Address

from .evidence import AccountRights, Caller, Evidence, Missing, OwnerCall, OwnerCalls, RightsGap
from .owner_calls import change, control_gap, harm_text, lost_bps

_CALLERS: dict[Caller, str] = {
    "deployer": "its deployer",
    "role": "an account that its events gave a right",
    "storage": "an account in its storage",
    "code": "an account in its code",
    "supply": "an account with supply",
    "event": "an account in its events",
    "contract": "a contract that it names",
    "contract owner": "the owner of a contract that it names",
    "contract account": "an account of a contract that it names",
}
_GAPS: dict[RightsGap, str] = {
    "events": "we could not read all of its events",
    "storage": "we could not read its storage",
    "contracts": "a sale may call a contract that we could not try",
    "calls": "not all of the calls could be simulated",
}


def is_complete(rights: AccountRights | Missing) -> bool:
    """Whether everything that was named was tried, with a result."""
    if isinstance(rights, Missing) or control_gap(rights) is not None:
        return False
    return not (rights.accounts_left_out or rights.left_out or rights.unread or _functions(rights, lost=True))


def rights_sentence(evidence: Evidence, policy: Policy) -> str:
    """One sentence; empty where no account was tried, and where it would add nothing to the owner's."""
    rights = evidence.account_rights
    if rights is None:
        return ""
    subject = _subject(evidence.facts.owner, rights)
    gap = rights if isinstance(rights, Missing) else control_gap(rights)
    if gap is not None:
        why = names.reason(gap.why).rstrip(".")
        if subject:
            return f"{subject}; we could not find out whether other accounts have rights over it: {why}."
        if isinstance(evidence.owner_calls, Missing):
            return ""
        return f"We could not find out whether accounts other than its owner have rights over it: {why}."
    assert isinstance(rights, AccountRights)
    effect = change(rights, policy)
    if effect is not None:
        text = f"{_caller(effect.call)} {harm_text(effect)}{_more_text(rights, effect.call)}."
        return f"{subject}, but {text}" if subject else f"Beside its owner, {text}"
    if not subject and _adds_nothing(evidence.owner_calls, rights, policy):
        return ""
    return f"{'; '.join((_tried_text(subject, rights), *_untried_texts(rights)))}."


_MAX_MORE = 3


def _more_text(rights: AccountRights, named: OwnerCall) -> str:
    """Other functions of a known name that stop the sell, each with its first caller."""
    seen, texts = {named.function}, []
    for call in rights.tried:
        stops = call.outcome is not None and lost_bps(call.outcome) is None
        if stops and call.function not in seen and not call.function.startswith("0x"):
            seen.add(call.function)
            who = "" if call.sender == named.sender else f" by {_caller(call).rstrip(',')}"
            of = "" if call.target is None else f", of {call.target}"
            texts.append(f"function {call.function}{of}{who}")
    return f"; so can {'; '.join(texts[:_MAX_MORE])}" if texts else ""


def _subject(owner: Address | Missing | None, rights: AccountRights | Missing) -> str:
    """How the sentence of a token without an owner begins; empty for one with an owner who can act."""
    if owner is None:
        return "It names no owner"
    if owner in BURN_ADDRESSES:
        return "Its owner is a burn address"
    return "" if isinstance(rights, Missing) or rights.beside_owner else "Its owner cannot act"


def _adds_nothing(owner_calls: OwnerCalls | Missing | None, rights: AccountRights, policy: Policy) -> bool:
    """Whether the owner is known to do harm, or nobody and nothing else was there to try."""
    if isinstance(owner_calls, OwnerCalls) and change(owner_calls, policy) is not None:
        return True
    if rights.tried or "contracts" in rights.unread:
        return False
    return not rights.functions or not (rights.accounts or rights.unread)


def _caller(call: OwnerCall) -> str:
    return "anybody" if call.by == "anyone" else f"{_CALLERS[call.by]}, {call.sender},"


_Function = tuple[str, Address | None]
"""A function's name, and the contract that it is of where that is not the token."""


def _functions(rights: AccountRights, *, lost: bool) -> set[_Function]:
    """The functions with an accepted call, or a call of which the result is missing (``lost``)."""
    return {
        (call.function, call.target)
        for call in rights.tried
        if call.outcome is not None and isinstance(lost_bps(call.outcome), Missing) is lost
    }


def _tried_text(subject: str, rights: AccountRights) -> str:
    """What was tried, and that nothing of it is known to do harm."""
    unknown = _functions(rights, lost=True)
    accepted = _functions(rights, lost=False) - unknown
    text = _called_text(subject, rights)
    if not accepted:
        return text if unknown or not rights.functions else f"{text}: no call was accepted"
    harmless = "it did not stop the sell" if len(accepted) == 1 else "none of them stopped the sell"
    return f"{text}; {format_count(len(accepted), 'function')} accepted a call, and {harmless}"


def _called_text(subject: str, rights: AccountRights) -> str:
    """Who called how many functions of the token."""
    if not rights.functions:
        nothing = "it has no function that we could test"
        return f"{subject}, and {nothing}" if subject else "It has no function to call as another account"
    functions = format_count(rights.functions, "function")
    called = f"called {functions} as a new wallet"
    if rights.accounts:
        called = f"called {functions} as {format_count(rights.accounts, 'other account')} and as a new wallet"
    elif subject:
        called = f"know no other account, and {called}"
    return f"{subject}; we {called}" if subject else f"We also {called}"


def _untried_texts(rights: AccountRights) -> list[str]:
    texts = []
    unknown, accepted = _functions(rights, lost=True), _functions(rights, lost=False)
    # The token's own functions are among those that were called.
    of_contracts = {(call.function, call.target) for call in rights.tried if call.target is not None}
    refused = of_contracts - unknown - accepted
    if unknown:
        texts.append(f"we could not find out what {format_count(len(unknown), 'function')} would do")
    if refused:
        functions = format_count(len(refused), "function")
        texts.append(f"{functions} of contracts that it names refused all values that we tried")
    for count, thing in ((rights.left_out, "function"), (rights.accounts_left_out, "account")):
        if count:
            texts.append(f"{count} more {thing}{' was' if count == 1 else 's were'} not tried")
    return texts + [_GAPS[gap] for gap in rights.unread]
