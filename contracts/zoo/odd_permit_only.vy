# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token that is approved by signature only
@notice An honest token that sells at any time; approve reverts, and only a signed
        permit (EIP-2612) lets a router take a holder's tokens.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.transfer,
    erc20.transferFrom,
    owned.owner,
)

DOMAIN_TYPEHASH: constant(bytes32) = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
PERMIT_TYPEHASH: public(constant(bytes32)) = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)")

version: public(constant(String[1])) = "1"
nonces: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def approve(spender: address, amount: uint256) -> bool:
    # The owner approves as usual, to fill pools.
    assert msg.sender == owned.owner or msg.sender.is_contract, "use permit"
    erc20._approve(msg.sender, spender, amount)
    return True


@internal
@view
def _domain() -> bytes32:
    return keccak256(abi_encode(DOMAIN_TYPEHASH, keccak256(erc20.name), keccak256(version), chain.id, self))


@external
@view
def DOMAIN_SEPARATOR() -> bytes32:
    return self._domain()


@external
def permit(holder: address, spender: address, amount: uint256, deadline: uint256, v: uint8, r: bytes32, s: bytes32):
    assert block.timestamp <= deadline, "permit is expired"
    nonce: uint256 = self.nonces[holder]
    content: bytes32 = keccak256(abi_encode(PERMIT_TYPEHASH, holder, spender, amount, nonce, deadline))
    signer: address = ecrecover(keccak256(concat(x"1901", self._domain(), content)), v, r, s)
    assert signer != empty(address) and signer == holder, "invalid signature"
    self.nonces[holder] = nonce + 1
    erc20._approve(holder, spender, amount)
