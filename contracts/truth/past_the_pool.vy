# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The two moves of a round trip, without the swaps
@notice Takes a token from a wallet into the v4 pool manager, as a sale does, and
        has all that arrived paid out again, as a purchase is; no pool is traded in.
"""

interface IPoolManager:
    def unlock(data: Bytes[160]) -> Bytes[32]: nonpayable
    def sync(currency: address): nonpayable
    def settle() -> uint256: payable
    def take(currency: address, to: address, amount: uint256): nonpayable

MANAGER: public(immutable(address))


@deploy
def __init__(manager: address):
    MANAGER = manager


@external
def carry(token: address, to: address, amount: uint256):
    extcall IPoolManager(MANAGER).unlock(abi_encode(token, msg.sender, to, amount))


@external
def unlockCallback(data: Bytes[160]) -> Bytes[32]:
    assert msg.sender == MANAGER, "not the pool manager"
    token: address = empty(address)
    source: address = empty(address)
    to: address = empty(address)
    amount: uint256 = 0
    token, source, to, amount = abi_decode(data, (address, address, address, uint256))
    extcall IPoolManager(MANAGER).sync(token)
    # What it answers is left unread: some tokens answer nothing.
    raw_call(token, abi_encode(source, MANAGER, amount, method_id=method_id("transferFrom(address,address,uint256)")))
    arrived: uint256 = extcall IPoolManager(MANAGER).settle()
    extcall IPoolManager(MANAGER).take(token, to, arrived)
    return b""
