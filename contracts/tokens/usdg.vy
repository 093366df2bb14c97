# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Global Dollar, a sample stablecoin
@notice An honest six-decimal dollar. Its holder can also pay or approve by
        signing a message (EIP-3009 and EIP-2612) that anybody may submit.
        The owner can mint more.
"""

from .lib import erc20
from .lib import owned

initializes: erc20
initializes: owned
exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    erc20.transfer,
    erc20.transferFrom,
    owned.owner,
)

event AuthorizationUsed:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

event AuthorizationCanceled:
    authorizer: indexed(address)
    nonce: indexed(bytes32)

version: public(constant(String[1])) = "1"
DOMAIN_TYPEHASH: constant(bytes32) = keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
PERMIT_TYPEHASH: public(constant(bytes32)) = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)")
TRANSFER_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
RECEIVE_WITH_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
CANCEL_AUTHORIZATION_TYPEHASH: public(constant(bytes32)) = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)")
# Half the order of secp256k1: a signature with a larger s has a twin and is refused.
HALF_ORDER: constant(bytes32) = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0

nonces: public(HashMap[address, uint256])
# True once a nonce was used or canceled.
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])


@deploy
def __init__(supply: uint256):
    erc20.__init__("Global Dollar", "USDG", 6, supply)
    owned.__init__()


@external
def mint(to: address, amount: uint256) -> bool:
    owned._only_owner()
    erc20._mint(to, amount)
    return True


@internal
@view
def _domain() -> bytes32:
    return keccak256(abi_encode(DOMAIN_TYPEHASH, keccak256("Global Dollar"), keccak256(version), chain.id, self))


@external
@view
def DOMAIN_SEPARATOR() -> bytes32:
    return self._domain()


@internal
@view
def _check_signer(signer: address, content: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert convert(s, uint256) <= convert(HALF_ORDER, uint256) and v in [27, 28], "invalid signature"
    digest: bytes32 = keccak256(concat(x"1901", self._domain(), content))
    found: address = ecrecover(digest, v, r, s)
    assert found != empty(address) and found == signer, "invalid signature"


@internal
def _pay(typehash: bytes32, source: address, to: address, amount: uint256, valid_after: uint256, valid_before: uint256, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert block.timestamp > valid_after, "authorization is not yet valid"
    assert block.timestamp < valid_before, "authorization is expired"
    assert not self.authorizationState[source][nonce], "authorization is used or canceled"
    self._check_signer(source, keccak256(abi_encode(typehash, source, to, amount, valid_after, valid_before, nonce)), v, r, s)
    self.authorizationState[source][nonce] = True
    log AuthorizationUsed(authorizer=source, nonce=nonce)
    erc20._move(source, to, amount)


@external
def transferWithAuthorization(source: address, to: address, amount: uint256, valid_after: uint256, valid_before: uint256, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    self._pay(TRANSFER_WITH_AUTHORIZATION_TYPEHASH, source, to, amount, valid_after, valid_before, nonce, v, r, s)


@external
def receiveWithAuthorization(source: address, to: address, amount: uint256, valid_after: uint256, valid_before: uint256, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert to == msg.sender, "caller must be the payee"
    self._pay(RECEIVE_WITH_AUTHORIZATION_TYPEHASH, source, to, amount, valid_after, valid_before, nonce, v, r, s)


@external
def cancelAuthorization(authorizer: address, nonce: bytes32, v: uint8, r: bytes32, s: bytes32):
    assert not self.authorizationState[authorizer][nonce], "authorization is used or canceled"
    self._check_signer(authorizer, keccak256(abi_encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), v, r, s)
    self.authorizationState[authorizer][nonce] = True
    log AuthorizationCanceled(authorizer=authorizer, nonce=nonce)


@external
def permit(holder: address, spender: address, amount: uint256, deadline: uint256, v: uint8, r: bytes32, s: bytes32):
    assert block.timestamp <= deadline, "permit is expired"
    nonce: uint256 = self.nonces[holder]
    self._check_signer(holder, keccak256(abi_encode(PERMIT_TYPEHASH, holder, spender, amount, nonce, deadline)), v, r, s)
    self.nonces[holder] = nonce + 1
    erc20._approve(holder, spender, amount)
