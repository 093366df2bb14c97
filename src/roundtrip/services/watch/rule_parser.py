"""Parses a user's rule. An error says where the text is wrong, what is expected there, and an example."""

import string
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import DECIMALS, Over, Rule, Unit, Verb, Who, WhoKind

MAX_CHARACTERS = 200
BELOW: dict[Unit, int] = {"eth": 10**12, "usd": 10**12, "%": 100}
"""A threshold must be below this number."""
_SHOWN = 40
"""Characters of a wrong word that an error shows."""
_FORM = "A rule is <who> <verb> [over <n> eth|usd|%] [on <token>], for example: any buying over 1 eth"
_WHO = "who acts (follow, any, a wallet's address, deployer:<token> or creator:<token>)"
_VERB = "a verb (buying, selling, launching, graduating, moving, draining or removing)"
_END = "the end of the rule"

# Lower case only: the text is lowered first, and only A to Z, because other letters may lower to these too.
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
SHARE_VERB: /(buying|selling|moving|draining|removing)(?!\S)/
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
    "NUMBER": "a plain number such as 5 or 0.25",
    "SHARE": "eth, usd or %",
    "MONEY": "eth or usd (launching and graduating take no %)",
    "_ON": '"on <token>"',
    "TOKEN": "a token's address (0x and 40 hex digits)",
}
"""The description of each expected terminal. Of terminals that are only expected together, the first alone is
listed."""


def parse(text: str) -> Rule:
    """Parses a rule. Raises ParamFault (bad_input) with the place of the error and what was expected."""
    if len(text) > MAX_CHARACTERS:
        raise ParamFault(
            "bad_input",
            f"rule must have at most {MAX_CHARACTERS} characters; this one has {len(text):,}. {_FORM}",
        )
    try:
        tree = _PARSER.parse(text.translate(_LOWER))
    except UnexpectedCharacters as error:
        raise _refusal_at(text, cast(int, error.pos_in_stream), _expected_text(error.allowed)) from None
    except UnexpectedToken as error:
        # The parser gives the end of the text the position of the last token.
        at = len(text) if error.token.type == "$END" else int(error.token.start_pos or 0)
        raise _refusal_at(text, at, _expected_text(error.expected)) from None
    return _rule(text, tree)


def _rule(text: str, tree: Tree[Token]) -> Rule:
    parts = {part.data if isinstance(part, Tree) else part.type: part for part in tree.children}
    over, on = parts.get("over"), parts.get("on")
    return Rule(
        _who(tree.children[0]),
        cast(Verb, str(parts.get("SHARE_VERB") or parts["MONEY_VERB"])),
        None if over is None else _over(text, *_tokens(over)),
        None if on is None else Address(str(_tokens(on)[0])),
    )


def _who(part: Tree[Token] | Token) -> Who:
    if isinstance(part, Tree):
        kind, token = _tokens(part)
        return Who(cast(WhoKind, kind.rstrip(":").rstrip()), Address(str(token)))
    if part.type == "WALLET":
        return Who("wallet", Address(str(part)))
    return Who(cast(WhoKind, str(part)))


def _over(text: str, number: Token, unit: Token) -> Over:
    """Builds the threshold. Raises ParamFault when it has too many decimals or is too large."""
    name, at = cast(Unit, str(unit)), int(number.start_pos or 0)
    decimals, (whole, _, fraction) = DECIMALS[name], number.partition(".")
    if len(fraction) > decimals:
        raise _refusal_at(text, at, f"at most {decimals} digits after the point for {name}")
    raw = int(whole + fraction.ljust(decimals, "0"))
    if raw >= BELOW[name] * 10**decimals:
        raise _refusal_at(text, at, f"a number below {BELOW[name]:,} for {name}")
    return Over(name, raw)


def _tokens(part: Tree[Token] | Token) -> list[Token]:
    assert isinstance(part, Tree)
    return cast("list[Token]", part.children)


def _expected_text(terminals: set[str]) -> str:
    phrases = [phrase for name, phrase in _EXPECTED.items() if name in terminals]
    if "SHARE" in terminals:
        # The phrase of SHARE names eth and usd, too.
        phrases.remove(_EXPECTED["MONEY"])
    # Where "on" may follow, the rule may also end; where nothing may, it must.
    if not phrases or "_ON" in terminals:
        phrases.append(_END)
    return " or ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))


def _refusal_at(text: str, at: int, expected: str) -> ParamFault:
    message = f"At character {at + 1}: found {_found_word(text[at:])}, expected {expected}. {_FORM}"
    return ParamFault("bad_input", message)


def _found_word(rest: str) -> str:
    """The first word of ``rest``. It is untrusted input: cleaned and cut."""
    words = rest.split(maxsplit=1)
    if not words:
        return "the end"
    shown = names.reason(words[0])
    if not shown:
        return "characters that cannot be shown"
    return f'"{shown}"' if len(shown) <= _SHOWN else f'"{shown[:_SHOWN]}..."'
