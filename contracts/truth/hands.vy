# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Does for others what they ask
@notice Several deeds in one transaction: it buys for many, buys and passes on,
        launches for somebody else, makes contracts. Put where an entry point of
        account abstraction is, it also speaks as one does.
"""

struct Deed:
    to: address
    amount: uint256
    data: Bytes[2048]

MOST: constant(uint256) = 40


@internal
def _act(deeds: DynArray[Deed, MOST]):
    for deed: Deed in deeds:
        raw_call(deed.to, deed.data, value=deed.amount)


@external
@payable
def act(deeds: DynArray[Deed, MOST]):
    self._act(deeds)


@external
@payable
def handle(deeds: DynArray[Deed, MOST], accounts: DynArray[address, MOST]):
    """
    @notice The deeds as operations of these accounts.
    """
    raw_log([keccak256("BeforeExecution()")], b"")
    self._act(deeds)
    for account: address in accounts:
        raw_log(
            [
                keccak256("UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)"),
                empty(bytes32),
                convert(account, bytes32),
                empty(bytes32),
            ],
            abi_encode(empty(uint256), True, empty(uint256), empty(uint256)),
        )


@external
def make(code: Bytes[24576], deed: Bytes[2048]) -> address:
    """
    @notice Deploys a contract, and calls it.
    """
    made: address = raw_create(code)
    raw_call(made, deed)
    return made


@external
@payable
def __default__():
    # A router gives back what it did not need.
    pass
