"""The tool server's prompts: they lead an agent through a check, a prepared trade and its verification."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .about import STRANGERS

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_AMOUNT = re.compile(r"(?=.*[1-9])[0-9]{1,12}(\.[0-9]{1,18})?")
_SIDE = re.compile(r"buy|sell")


class BadPromptArgument(Exception):
    """An argument is missing, unknown or wrong. The text does not quote it."""


@dataclass(frozen=True, slots=True)
class PromptParam:
    """An argument of a prompt. ``form``: what its value must match: nothing else gets into the text."""

    name: str
    description: str
    form: re.Pattern[str]
    required: bool = True


@dataclass(frozen=True, slots=True)
class AgentPrompt:
    """A prompt. ``write``: its text, from the arguments by name; optional ones may be missing."""

    name: str
    title: str
    description: str
    params: tuple[PromptParam, ...]
    write: Callable[[Mapping[str, str]], str]

    def text(self, arguments: Mapping[str, str]) -> str:
        """The prompt. Raises BadPromptArgument."""
        known = {param.name: param for param in self.params}
        if not arguments.keys() <= known.keys():
            raise BadPromptArgument(f"{self.name} takes {', '.join(known)}.")
        # Clients send an empty text for what a person left out.
        given = {name: value.strip() for name, value in arguments.items() if value.strip()}
        for param in self.params:
            if param.required and param.name not in given:
                raise BadPromptArgument(f"{param.name} is missing. {param.description}")
            if param.name in given and not param.form.fullmatch(given[param.name]):
                raise BadPromptArgument(f"{param.name} is wrong. {param.description}")
        return self.write(given)


_RULES = (
    f"{STRANGERS} Never ask for a private key or a seed phrase, and sign nothing yourself: the person signs "
    "with their own wallet."
)


def _untried_text(amount: str | None, indent: str) -> str:
    """What an ok of check_token does not cover, and which call tries it. ``amount``: eth; None: not planned
    yet. ``indent``: of its lines after the first."""
    size = "" if amount is None else f', amount "{amount}" (0.001 to 10)'
    lines = (
        "An ok does not include sells of real holders, nor what the owner can call. Call check_token",
        f"again with deep true{size}, and go by the worse of the two verdicts.",
    )
    return f"\n{indent}".join(lines)


def _write_check(given: Mapping[str, str]) -> str:
    token, amount = given["token"], given.get("amount")
    size = "Ask how much is planned: a larger trade can cost more."
    if amount is not None:
        size = f"prepare_buy rehearses a trade of {amount} eth, once a wallet is named."
    return f"""Find out whether the token {token} can be bought and sold again.

1. Call check_token with address {token}. Read verdict.level first.
   - danger or unknown: stop. Say that it must not be bought, and quote verdict.text. With
     unknown nothing was proven: it is a no.
   - warn: quote verdict.text, and go on only if the person wants to.
   - ok: go on. {_untried_text(amount, " " * 5)}
2. Call token_holders with the same address. If status is reading, call it again in half a
   minute, at most three times. Report what the ten biggest hold, bundles of the launch, and
   what the deployer did. If something is not known, say so.
3. Without amount, check_token spends 0.1 eth. {size}
4. Report the verdict with its time (checkedAt), trade.roundTripLossBps (hundredths of a
   percent), every flag, and what is not known. The verdict holds for that moment only.

Buy nothing in this task. If the person wants to buy, use the prompt prepare_and_verify.

{_RULES}"""


def _write_trade(given: Mapping[str, str]) -> str:
    token, wallet, amount, side = given["token"], given["wallet"], given["amount"], given.get("side", "buy")
    if side == "buy":
        unit, asset = "eth", " --asset eth"
        level = "Stop if verdict.level is danger or unknown. If it is warn, quote verdict.text and ask."
        level += f"\n   {_untried_text(amount, ' ' * 3)}"
    else:
        # prepare_sell refuses nothing for its verdict: who holds a trap must be able to try to get out.
        unit, asset = "whole tokens", ""
        level = "Quote verdict.text. A bad verdict does not forbid a sell."
    return f"""Prepare one trade, and have it verified before it is signed.
The trade: {side} the token {token}, {amount} {unit}, from the wallet {wallet}.

1. Call check_token with address {token}. {level}
2. Call prepare_{side} with token {token}, from {wallet}, amount "{amount}".
   If refused is true there are no steps: stop, and quote verdict.text. If venue.pays is not
   eth, stop, and say what it is.
3. Verify. Save the answer's structuredContent as trade.json, and run this in an installation
   that the person trusts (on a real network with --network FILE, which names its contracts):
   roundtrip verify-trade trade.json --from {wallet} --token {token} --side {side} --amount {amount}{asset}
   Only an output that begins with OK is a pass. On DO NOT SIGN stop, and quote it. If you
   cannot run programs, say that nothing is verified, and give the person the command. A
   simulation by this service is no substitute: it comes from where the steps come from.
4. Call simulate_transaction with from {wallet}, and as calls to, data and value of every
   step, in order. Compare spent and received with spend and expect. Report every approval.
5. Show the steps, expect.min and validUntil. The person signs and sends them in order, each
   once the one before is in a block, until validUntil. After that prepare again. Change no
   step.
6. When the person names the transaction's hash, call explain_transaction with it, and compare.

{_RULES}"""


_TOKEN = PromptParam("token", "The token's address: 0x and 40 hex digits.", _ADDRESS)
PROMPTS: tuple[AgentPrompt, ...] = (
    AgentPrompt(
        name="check_before_you_buy",
        title="Check a token before you buy it",
        description="Checks a token and its holders, and reports whether it can be sold again. Buys nothing.",
        params=(
            _TOKEN,
            PromptParam(
                "amount", "The eth that is planned: a decimal number, such as 0.1.", _AMOUNT, required=False
            ),
        ),
        write=_write_check,
    ),
    AgentPrompt(
        name="prepare_and_verify",
        title="Prepare a trade and verify it",
        description="Checks, prepares, verifies and simulates one trade, for a person to sign.",
        params=(
            _TOKEN,
            PromptParam("wallet", "The wallet that will sign: 0x and 40 hex digits.", _ADDRESS),
            PromptParam("amount", "Eth to spend, or whole tokens to sell: a decimal number.", _AMOUNT),
            PromptParam("side", "buy or sell. Left out: buy.", _SIDE, required=False),
        ),
        write=_write_trade,
    ),
)
"""Every prompt, in the order of prompts/list."""
