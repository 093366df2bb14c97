"""Operations of pages, made from their handlers."""

from typing import cast

import pytest

from roundtrip.api.operations.catalog import find_operation
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.console.support.page_operations import own_operation, own_variant, page_operation, page_variant
from roundtrip.domain.accounts.account import Account
from roundtrip.services.check.schema import CheckParams
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.check_answer import Check
from roundtrip.services.support.index_reader import Nothing, TokenNamed
from roundtrip.services.wallets.history_answer import WalletHistory

CTX, ACCOUNT = cast(Context, object()), cast(Account, object())
NAMED = TokenNamed("0x1", "AB", None)


async def name_token(ctx: Context, params: CheckParams) -> UseCaseAnswer[TokenNamed]:
    return UseCaseAnswer(TokenNamed(params.address, "AB", None))


async def own_token(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[TokenNamed]:
    assert account is ACCOUNT
    return UseCaseAnswer(NAMED)


async def test_an_operation_has_the_types_and_the_name_of_its_handler() -> None:
    made = page_operation(name_token, counts="never")
    assert (made.name, made.params, made.answer, made.counts) == (
        "name_token",
        CheckParams,
        TokenNamed,
        "never",
    )
    assert not made.on_mcp
    assert made.path is None
    assert (await made.handler(HandlerCall(CTX, CheckParams("0x1")))).answer == NAMED
    assert page_operation(name_token, "other").name == "other"


async def test_an_operation_of_an_account_needs_one() -> None:
    made = own_operation(own_token)
    assert made.key
    assert (await made.handler(HandlerCall(CTX, Nothing(), ACCOUNT))).answer == NAMED


async def test_a_variant_has_the_limits_of_its_row() -> None:
    row = find_operation("check_token", CheckParams, Check)
    made = page_variant(row, name_token)
    assert (made.lane, made.counts, made.bad_params) == (row.lane, row.counts, row.bad_params)
    assert (made.name, made.answer, made.path, made.on_mcp) == ("name_token", TokenNamed, None, False)
    assert (await made.handler(HandlerCall(CTX, CheckParams("0x1")))).answer == NAMED
    own = own_variant(own_operation(own_token, counts="minute"), own_token, "mine")
    assert (own.name, own.counts, own.key) == ("mine", "minute", True)


def test_a_row_of_other_types_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="check_token has other types than CheckParams and WalletHistory"):
        find_operation("check_token", CheckParams, WalletHistory)
