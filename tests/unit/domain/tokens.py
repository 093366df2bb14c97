"""Wallets, places and transactions of a made-up token."""

from hypothesis import strategies as st

from roundtrip.domain.base.types import BURN_ADDRESS, ZERO_ADDRESS, Address, TxHash
from roundtrip.domain.holders.book import BookStart, HolderBook
from roundtrip.domain.holders.token_flows import Move, NonWallets, TokenTx, VenueFill


def address(number: int) -> Address:
    return Address(f"0x{number:040x}")


TOKEN, CURVE, MANAGER, HOOK, ROUTER, LOCKER = (address(0xF0 + number) for number in range(6))
ANN, BOB, CAT, DAN = (address(0xA0 + number) for number in range(4))
WALLETS = (ANN, BOB, CAT, DAN)
ETH = ZERO_ADDRESS
PLACES = NonWallets(frozenset({CURVE, MANAGER, HOOK}), frozenset({ROUTER, LOCKER}))
NOBODY = {ZERO_ADDRESS, BURN_ADDRESS}
EVERYONE = (*WALLETS, TOKEN, CURVE, MANAGER, ROUTER, LOCKER, ZERO_ADDRESS, BURN_ADDRESS)

POOL_ID = "0x" + "4d" * 32
"""A v4 pool's; its tokens lie in the manager."""

AT_S = 1_760_000_040
"""The beginning of a minute."""


def tx(
    *moves: tuple[Address, Address, int],
    buys: int = 0,
    sells: int = 0,
    block: int = 1,
    at_s: int = AT_S,
    number: int = 0,
    quote_raw: int = 0,
) -> TokenTx:
    """One transaction, with at most one fill to each side: in a v4 pool where nothing leaves the curve."""
    at = CURVE if any(sender == CURVE for sender, _, _ in moves) else POOL_ID
    fills = [VenueFill(at, True, buys, ETH, quote_raw)] if buys else []
    fills += [VenueFill(CURVE, False, sells, ETH, quote_raw)] if sells else []
    tx_hash = TxHash(f"0x{number:064x}")
    return TokenTx(tx_hash, block, at_s, [Move(*move) for move in moves], fills)


amounts = st.one_of(st.integers(0, 6), st.integers(0, 2**256 - 1))
fills = st.lists(
    st.builds(VenueFill, st.sampled_from([CURVE, POOL_ID]), st.booleans(), amounts, st.just(ETH), amounts),
    max_size=3,
)


def moves(
    amount: st.SearchStrategy[int] = amounts, most: int = 12, least: int = 0
) -> st.SearchStrategy[list[Move]]:
    """Any transfers between anybody: lying ones, too."""
    anyone = st.sampled_from(EVERYONE)
    return st.lists(st.builds(Move, anyone, anyone, amount), min_size=least, max_size=most)


ALL = 100_000
BEGINNING = BookStart(TOKEN, PLACES, frozenset({CURVE}), 1, None, frozenset({ANN}))
USDG = address(0x77)


def worth(quote: Address, quote_raw: int, block_number: int) -> int | None:
    """Two dollars each; what is no eth, or after block 1000, has no price."""
    return None if quote != ETH or block_number > 1000 else 2 * quote_raw


def folded(*txs: TokenTx, beginning: BookStart = BEGINNING) -> HolderBook:
    """The book of these."""
    book = HolderBook(beginning)
    for one in txs:
        book.fold(one, worth)
    return book


def hashed(number: int) -> TxHash:
    return TxHash(f"0x{number:064x}")


def minted(to: Address = ANN) -> TokenTx:
    """All there is, in the first block."""
    return tx((ZERO_ADDRESS, to, ALL))
