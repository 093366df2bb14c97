"""Wallets that pay usdg on the real local chain, and what counting their payments comes to."""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import asyncpg
import msgspec

from roundtrip.api.dispatch import read_params
from roundtrip.api.operations.catalog import OPERATIONS
from roundtrip.api.operations.operation import HandlerCall
from roundtrip.domain.accounts.account import Account, Payments
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context
from roundtrip.store.accounts import accounts
from roundtrip_development.devnet.deploy import ContractDeployer
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from support.keys import Clock, Person, key_for, random_context
from support.wallet import calldata

USDG = 10**6
BEHIND = 64
"""So many blocks behind the newest is the local chain's final one."""
NOBODY = Account(0, "mite-2345", Address("0x" + "ab" * 20))


def some_address() -> Address:
    """Of nobody, and new for every test: accounts of several share one database."""
    return Address("0x" + secrets.token_hex(20))


def with_payments(ctx: Context, pay_to: Address | None = None, calls_per_usdg: int = 1000) -> Context:
    """The same, taking payments."""
    return replace(ctx, payments=Payments(pay_to or some_address(), calls_per_usdg))


async def account_of(ctx: Context, wallet: Address) -> Account:
    """The wallet's account, made where it had none."""
    name, now = f"mite-{secrets.token_hex(6)}", datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection, connection.transaction():
        return (await accounts.lock_account(connection, wallet, [name], now)).account


async def answer_of(ctx: Context, name: str, account: Account, /, **given: Any) -> dict[str, Any]:
    """The answer of an operation that needs a key. Raises as it does."""
    operation = next(one for one in OPERATIONS if one.name == name)
    answered = await operation.handler(HandlerCall(ctx, read_params(operation, given), account))
    body = msgspec.json.encode(answered.answer)
    msgspec.json.decode(body, type=operation.answer)
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


async def refusal(ctx: Context, account: Account, tx: str) -> tuple[str, str]:
    """Code and message of a payment that is not counted."""
    try:
        counted = await answer_of(ctx, "redeem_payment", account, tx=tx)
    except RoundtripError as error:
        return error.code, error.message
    raise AssertionError(f"it was counted: {counted}")


@dataclass
class Payer:
    """Sends in wallets' names on the local chain, which needs no key for that."""

    rpc: SyncRpc
    built: Built

    @property
    def usdg(self) -> str:
        """The token to pay in."""
        return self.built.contracts["usdg"]

    def wallet(self, address: Address, usdg_raw: int = 1_000 * USDG) -> ContractDeployer:
        """Somebody with eth and usdg."""
        self.rpc.call("anvil_setBalance", address, hex(10**19))
        self.rpc.call("anvil_impersonateAccount", address)
        bank = ContractDeployer(self.rpc, self.built.accounts[0])
        if usdg_raw:
            bank.receipt(bank.send(self.usdg, calldata("transfer(address,uint256)", address, usdg_raw)))
        return ContractDeployer(self.rpc, address, 500_000)

    def pay(self, payer: ContractDeployer, to: str, amount_raw: int, token: str | None = None) -> str:
        """The hash of a plain transfer, which is in a block."""
        return payer.send(token or self.usdg, calldata("transfer(address,uint256)", to, amount_raw))

    def mine(self, blocks: int) -> None:
        """So many empty blocks more."""
        self.rpc.call("anvil_mine", hex(blocks))

    def finalize(self) -> None:
        """What is in a block now is final."""
        self.mine(BEHIND)


@dataclass
class Shop:
    """A service that takes payments, an account of it, and the account's wallet."""

    ctx: Context
    payer: Payer
    account: Account
    wallet: ContractDeployer

    @property
    def pay_to(self) -> Address:
        assert self.ctx.payments is not None
        return self.ctx.payments.pay_to

    def pay(self, amount_raw: int = 5 * USDG) -> str:
        return self.payer.pay(self.wallet, self.pay_to, amount_raw)

    async def refused(self, tx: str, account: Account | None = None) -> tuple[str, str]:
        before = await self.counted()
        found = await refusal(self.ctx, account or self.account, tx)
        assert await self.counted() == before, "nothing is used up"
        return found

    async def counted(self) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self.ctx.pool.fetch(
            "SELECT tx_hash, account_id, amount_raw, credited FROM accounts.payment ORDER BY tx_hash, "
            "account_id"
        )
        return rows

    async def balance(self) -> int:
        return int((await answer_of(self.ctx, "credits", self.account))["balance"])


async def a_shop(ctx: Context, rpc: SyncRpc, built: Built) -> Shop:
    """Open already, over this context; its account has a key, and its wallet a thousand usdg."""
    taking = with_payments(random_context(ctx, Clock()))
    person, payer = Person(), Payer(rpc, built)
    await key_for(taking, person)
    account = await account_of(taking, person.address)
    await answer_of(taking, "credits", account)
    return Shop(taking, payer, account, payer.wallet(person.address))
