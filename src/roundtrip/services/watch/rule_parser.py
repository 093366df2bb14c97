"""What somebody wrote as a rule, read: the rule, or where it is none and what was expected there."""

import string
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Unit, Verb, Who, WhoKind

MOST_CHARACTERS = 200
BELOW: dict[Unit, int] = {"eth": 10**12, "usd": 10**12, "%": 100}
"""A threshold is below that: nothing is more than all there is."""
_SHOWN = 40
_FORM = "A rule is: <who> <verb> [over <n> eth|usd|%] [on <token>]."
_WHO = "who is meant (follow, any, a wallet's address, deployer:<token> or creator:<token>)"
_VERB = "a verb (buying, selling, launching, graduating, moving or draining)"
_END = "the end of the rule"

# Only small letters: text is lowered first, and only A to Z, since other letters may become one of these too.
# A word ends at white space or at the end.
_GRAMMAR = r"""
start: _who _deed on?
_who: FOLLOW | ANY | WALLET | of
of: (DEPLOYER | CREATOR) TOKEN
_deed: SHARE_VERB over_any? | MONEY_VERB over_money?
over_any: _OVER NUMBER (MONEY | SHARE)   -> over
over_money: _OVER NUMBER MONEY           -> over
on: _ON TOKEN

FOLLOW: /follow(?!\S)/
ANY: /any(?!\S)/
WALLET: /0x[0-9a-f]{40}(?!\S)/
TOKEN: /0x[0-9a-f]{40}(?!\S)/
DEPLOYER: /deployer\s*:/
CREATOR: /creator\s*:/
SHARE_VERB: /(buying|selling|moving|draining)(?!\S)/
MONEY_VERB: /(launching|graduating)(?!\S)/
_OVER: /over(?!\S)/
_ON: /on(?!\S)/
NUMBER: /[0-9]+(\.[0-9]+)?(?=eth|usd|%|\s|$)/
MONEY: /(eth|usd)(?!\S)/
SHARE: /%(?!\S)/
SPACE: /\s+/
%ignore SPACE
"""
_PARSER = Lark(_GRAMMAR, parser="lalr")
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_EXPECTED = {
    "FOLLOW": _WHO,
    "SHARE_VERB": _VERB,
    "_OVER": '"over <n> eth|usd|%"',
    "NUMBER": "a plain number (5 or 0.25)",
    "SHARE": "eth, usd or %",
    "MONEY": "eth or usd (of a launch or a graduation there is no %)",
    "_ON": '"on <token>"',
    "TOKEN": "a token's address (0x and 40 hex digits)",
}
"""What is said of a terminal that may stand there; of several that are one thing, the first speaks."""


def parse(text: str) -> Rule:
    """The rule that ``text`` is. Raises CallerFault bad_input, with where it is none and why."""
    if len(text) > MOST_CHARACTERS:
        raise CallerFault("bad_input", f"A rule has at most {MOST_CHARACTERS} characters, not {len(text)}.")
    try:
        tree = _PARSER.parse(text.translate(_LOWER))
    except UnexpectedCharacters as fault:
        raise _refusal_at(text, cast(int, fault.pos_in_stream), _expected_text(fault.allowed)) from None
    except UnexpectedToken as fault:
        # The end has no place of its own there, but that of the token before it.
        at = len(text) if fault.token.type == "$END" else int(fault.token.start_pos or 0)
        raise _refusal_at(text, at, _expected_text(fault.expected)) from None
    return _rule(text, tree)


def _rule(text: str, tree: Tree[Token]) -> Rule:
    """The parts that the grammar has found."""
    parts = {part.data if isinstance(part, Tree) else part.type: part for part in tree.children}
    over, on = parts.get("over"), parts.get("on")
    return Rule(
        _who(tree.children[0]),
        cast(Verb, str(parts.get("SHARE_VERB") or parts["MONEY_VERB"])),
        None if over is None else _over(text, *_tokens(over)),
        None if on is None else Address(str(_tokens(on)[0])),
    )


def _who(part: Tree[Token] | Token) -> Who:
    """Whom it is about."""
    if isinstance(part, Tree):
        kind, token = _tokens(part)
        return Who(cast(WhoKind, kind.rstrip(":").rstrip()), Address(str(token)))
    if part.type == "WALLET":
        return Who("wallet", Address(str(part)))
    return Who(cast(WhoKind, str(part)))


def _over(text: str, number: Token, unit: Token) -> Over:
    """The threshold in its unit. Raises CallerFault when it is too fine or too large."""
    known, at = cast(Unit, str(unit)), int(number.start_pos or 0)
    decimals, (whole, _, fraction) = DECIMALS[known], number.partition(".")
    if len(fraction) > decimals:
        raise _refusal_at(text, at, f"at most {decimals} digits after the point for {known}")
    raw = int(whole + fraction.ljust(decimals, "0"))
    if raw >= BELOW[known] * 10**decimals:
        raise _refusal_at(text, at, f"a number below {BELOW[known]} for {known}")
    return Over(known, raw)


def _tokens(part: Tree[Token] | Token) -> list[Token]:
    """The words of one part."""
    assert isinstance(part, Tree)
    return cast("list[Token]", part.children)


def _expected_text(terminals: set[str]) -> str:
    """The same in words."""
    words = [said for name, said in _EXPECTED.items() if name in terminals]
    if "SHARE" in terminals:
        words.remove(_EXPECTED["MONEY"])
    if not words or "_ON" in terminals:
        words.append(_END)
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _refusal_at(text: str, at: int, expected: str) -> CallerFault:
    """``at``: so many characters stand before it."""
    said = f"At character {at + 1}: expected {expected}, found {_found_word(text[at:])}. {_FORM}"
    return CallerFault("bad_input", said)


def _found_word(rest: str) -> str:
    """The word that ``rest`` begins with. It is a stranger's: cleaned and cut."""
    words = rest.split(maxsplit=1)
    if not words:
        return "the end"
    shown = names.reason(words[0])
    if not shown:
        return "nothing that can be shown"
    return f'"{shown}"' if len(shown) <= _SHOWN else f'"{shown[:_SHOWN]}..."'
