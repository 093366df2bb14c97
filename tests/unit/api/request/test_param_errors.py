"""Every parameter error names the parameter, says what it must be and gives an example of a right value."""

from typing import Any

import msgspec
import pytest

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.request import param_errors
from roundtrip.api.request.param_errors import find_similar, quote_name
from roundtrip.domain.base.errors import ParamFault
from roundtrip.services.support.answer_fields import EXAMPLE_ADDRESS

ADDRESS = "0x" + "1" * 40
BY_NAME = {operation.name: operation for operation in OPERATIONS}
TRADE = {"token": ADDRESS, "from": ADDRESS}


def refusal(tool: str, **given: Any) -> str:
    """The message for these parameters, which are refused."""
    with pytest.raises(ParamFault) as refused:
        read_params(BY_NAME[tool], given)
    return refused.value.message


HEX = f'0x and 40 hex digits, such as "{EXAMPLE_ADDRESS}".'


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("check_token", {"address": "0x1"}, f"address must be {HEX}"),
        ("check_token", {}, f"address is missing. It must be {HEX}"),
        ("check_token", {"address": None}, f"address must be {HEX}"),
        ("prepare_buy", {"token": "PEPE"}, f"token must be an address: {HEX}"),
        (
            "prepare_buy",
            {**TRADE, "amount": 0.1},
            'amount must be a decimal number in quotes, such as "0.1".',
        ),
        (
            "prepare_buy",
            {**TRADE, "amount": "1", "slippageBps": 0},
            "slippageBps must be a whole number from 1 to 5000, such as 100.",
        ),
        (
            "prepare_buy",
            {**TRADE, "amount": "1", "fund": "yes"},
            "fund must be true or false, without quotes.",
        ),
        (
            "prepare_sell",
            {**TRADE, "amount": "half"},
            'amount must be "all", or a decimal number of tokens in quotes, such as "1250.5".',
        ),
        (
            "prepare_sell",
            {**TRADE, "percent": "50"},
            "percent must be a number above 0 and at most 100, such as 50.",
        ),
        ("league", {"who": "bots"}, 'who must be "agents", "all" or "people".'),
        (
            "simulate_transaction",
            {"from": ADDRESS, "calls": [{"to": "x"}]},
            f"calls[0].to must be an address: {HEX}",
        ),
        (
            "simulate_transaction",
            {"from": ADDRESS, "calls": [7]},
            "calls[0] must be an object with to, data, value.",
        ),
        ("delete_rule", {"id": "1"}, "id must be a whole number from 1, such as 7."),
        (
            "prepare_buy",
            {**TRADE, "amout": "1"},
            '"amout" is not an argument of prepare_buy. Did you mean amount? It takes token, from, amount, '
            "slippageBps, fund.",
        ),
        (
            "simulate_transaction",
            {"from": ADDRESS, "calls": [{"tto": ADDRESS}]},
            '"tto" is not an argument of calls[0]. Did you mean to? It takes to, data, value, and what '
            "wallets write: input, gas, nonce, chainId, type, gasPrice, maxFeePerGas, maxPriorityFeePerGas, "
            "accessList.",
        ),
        ("moving_now", {"page": 2}, '"page" is not an argument of moving_now. It takes no arguments.'),
        # deep is taken from the query string only.
        ("check_token", {"address": ADDRESS, "deep": "1"}, '"deep" is a parameter of the query string.'),
    ],
)
def test_a_wrong_parameter_is_named_with_what_it_must_be(
    tool: str, given: dict[str, Any], message: str
) -> None:
    assert refusal(tool, **given) == message


@pytest.mark.parametrize("tool", ["check_token", "token_holders", "key_nonce", "moving_now", "prepare_buy"])
def test_an_unknown_argument_is_bad_input(tool: str) -> None:
    with pytest.raises(ParamFault) as refused:
        read_params(BY_NAME[tool], {"address": ADDRESS, "token": ADDRESS, "junk": 1})
    assert refused.value.code == "bad_input"
    assert refused.value.message.startswith(
        ('"junk" is not an argument', '"address" is not an', '"token" is not')
    )


@pytest.mark.parametrize(
    ("tool", "query", "message"),
    [
        ("check_token", {"dep": "1"}, "check_token. Did you mean deep? It takes deep, amount."),
        ("token_holders", {"x": "1"}, "token_holders. It takes none."),
        ("token_holders", {"address": ADDRESS}, "token_holders. It takes none."),
    ],
)
def test_an_unknown_query_parameter_is_bad_input(tool: str, query: dict[str, str], message: str) -> None:
    with pytest.raises(ParamFault) as refused:
        read_params(BY_NAME[tool], {"address": ADDRESS}, query)
    text = f'"{next(iter(query))}" is not a query parameter of {message}'
    assert (refused.value.code, refused.value.message) == ("bad_input", text)


def wrong_values() -> list[tuple[str, str, Any]]:
    """Each parameter of each operation, with a value of a wrong type."""
    found = []
    for operation in OPERATIONS:
        (root,), components = msgspec.json.schema_components([operation.params])
        schema = components[root["$ref"].rpartition("/")[2]]
        found += [(operation.name, name, {"no": "such"}) for name in schema.get("properties", {})]
    return found


@pytest.mark.parametrize(("tool", "name", "value"), wrong_values())
def test_every_parameter_says_what_it_must_be(tool: str, name: str, value: Any) -> None:
    """Those read from the query string, too; whatever else is missing."""
    operation = BY_NAME[tool]
    with pytest.raises(msgspec.ValidationError) as mismatch:
        msgspec.convert({name: value}, type=operation.params)
    message = str(mismatch.value)
    if "missing" in message:
        message = f"Expected something - at `$.{name}`"
    text = param_errors.describe_mismatch(operation.params, tool, message)
    assert text.startswith(f"{name} must be ")
    assert any(word in text for word in ("such as", '"', "true or false", "hex digits", "in hex"))


def test_a_callers_word_is_cleaned_cut_and_without_keys() -> None:
    key = "rt_" + "a" * 43
    assert key not in refusal("moving_now", **{key: 1})
    assert "a" * 9 not in refusal("moving_now", **{key: 1})
    assert quote_name('x"\u202e\n') == '"x\'"'
    assert quote_name("x" * 99) == f'"{"x" * 40}"'


def test_a_similar_name_is_found() -> None:
    assert find_similar("chek_token", list(BY_NAME)) == "check_token"
    assert find_similar("nope", list(BY_NAME)) is None
    assert find_similar("a" * 100_000, list(BY_NAME)) is None
