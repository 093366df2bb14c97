"""Signatures of known custom errors, and a table of them by selector."""

from typing import NamedTuple

from roundtrip.venues.abi import selector

SIGNATURES: tuple[str, ...] = (
    # The launchpad's own (contracts/launchpad/lib/errors.vy).
    "CurveGraduated()",
    "ZeroAmount()",
    "NativeValueMismatch()",
    "UnexpectedNativeValue()",
    "SlippageExceeded(uint256,uint256)",
    # Tokens after ERC-6093, as OpenZeppelin 5 writes them: ERC-20.
    "ERC20InsufficientBalance(address,uint256,uint256)",
    "ERC20InvalidSender(address)",
    "ERC20InvalidReceiver(address)",
    "ERC20InsufficientAllowance(address,uint256,uint256)",
    "ERC20InvalidApprover(address)",
    "ERC20InvalidSpender(address)",
    # ... ERC-721.
    "ERC721InvalidOwner(address)",
    "ERC721NonexistentToken(uint256)",
    "ERC721IncorrectOwner(address,uint256,address)",
    "ERC721InvalidSender(address)",
    "ERC721InvalidReceiver(address)",
    "ERC721InsufficientApproval(address,uint256)",
    "ERC721InvalidApprover(address)",
    "ERC721InvalidOperator(address)",
    # ... ERC-1155.
    "ERC1155InsufficientBalance(address,uint256,uint256,uint256)",
    "ERC1155InvalidSender(address)",
    "ERC1155InvalidReceiver(address)",
    "ERC1155MissingApprovalForAll(address,address)",
    "ERC1155InvalidApprover(address)",
    "ERC1155InvalidOperator(address)",
    "ERC1155InvalidArrayLength(uint256,uint256)",
    # What OpenZeppelin 5 builds tokens from: owners and roles, a pause, a lock, a cap, permits.
    "OwnableUnauthorizedAccount(address)",
    "OwnableInvalidOwner(address)",
    "AccessControlUnauthorizedAccount(address,bytes32)",
    "AccessControlBadConfirmation()",
    "EnforcedPause()",
    "ExpectedPause()",
    "ReentrancyGuardReentrantCall()",
    "ERC20ExceededCap(uint256,uint256)",
    "ERC2612ExpiredSignature(uint256)",
    "ERC2612InvalidSigner(address,address)",
    "InvalidAccountNonce(address,uint256)",
    "InvalidInitialization()",
    "NotInitializing()",
    # ... and its calls to others; some changed their names within version 5.
    "SafeERC20FailedOperation(address)",
    "SafeERC20FailedDecreaseAllowance(address,uint256,uint256)",
    "AddressEmptyCode(address)",
    "AddressInsufficientBalance(address)",
    "InsufficientBalance(uint256,uint256)",
    "FailedInnerCall()",
    "FailedCall()",
    # Permit2.
    "AllowanceExpired(uint256)",
    "InsufficientAllowance(uint256)",
    "ExcessiveInvalidation()",
    "SignatureExpired(uint256)",
    "InvalidNonce()",
    "InvalidAmount(uint256)",
    "LengthMismatch()",
    "InvalidSignature()",
    "InvalidSignatureLength()",
    "InvalidSigner()",
    "InvalidContractSignature()",
    # Universal Router: a command of it (the reason of the failed one inside), payments.
    "ExecutionFailed(uint256,bytes)",
    "TransactionDeadlinePassed()",
    "InvalidCommandType(uint256)",
    "ETHNotAccepted()",
    "InvalidEthSender()",
    "ContractLocked()",
    "InsufficientETH()",
    "InsufficientToken()",
    "BalanceTooLow()",
    "InvalidBips()",
    "FromAddressIsNotOwner()",
    "SliceOutOfBounds()",
    "UnsafeCast()",
    # ... its swaps on v2 and v3.
    "V2TooLittleReceived()",
    "V2TooMuchRequested()",
    "V2InvalidPath()",
    "InvalidPath()",
    "InvalidReserves()",
    "V3TooLittleReceived()",
    "V3TooMuchRequested()",
    "V3InvalidSwap()",
    "V3InvalidAmountOut()",
    "V3InvalidCaller()",
    # ... and its actions on v4, most of which the position manager shares.
    "V4TooLittleReceived(uint256,uint256)",
    "V4TooMuchRequested(uint256,uint256)",
    "V4TooLittleReceivedPerHop(uint256,uint256,uint256)",
    "V4TooMuchRequestedPerHop(uint256,uint256,uint256)",
    "InvalidHopSlippageLength()",
    "DeltaNotPositive(address)",
    "DeltaNotNegative(address)",
    "InsufficientBalance()",
    "InputLengthMismatch()",
    "UnsupportedAction(uint256)",
    "NotPoolManager()",
    # v4's pool manager: who may call it, and when.
    "ManagerLocked()",
    "AlreadyUnlocked()",
    "CurrencyNotSettled()",
    "MustClearExactPositiveDelta()",
    "NonzeroNativeValue()",
    "ProtocolFeeCurrencySynced()",
    "DelegateCallNotAllowed()",
    "InvalidCaller()",
    "UnauthorizedDynamicLPFeeUpdate()",
    # ... its pools.
    "PoolNotInitialized()",
    "PoolAlreadyInitialized()",
    "CurrenciesOutOfOrderOrEqual(address,address)",
    "TickSpacingTooLarge(int24)",
    "TickSpacingTooSmall(int24)",
    "InvalidTick(int24)",
    "InvalidSqrtPrice(uint160)",
    "LPFeeTooLarge(uint24)",
    "ProtocolFeeTooLarge(uint24)",
    "NoLiquidityToReceiveFees()",
    # ... a swap in one of them.
    "SwapAmountCannotBeZero()",
    "PriceLimitAlreadyExceeded(uint160,uint160)",
    "PriceLimitOutOfBounds(uint160)",
    "InvalidFeeForExactOut()",
    "NotEnoughLiquidity()",
    "InvalidPrice()",
    "InvalidPriceOrLiquidity()",
    "PriceOverflow()",
    "SafeCastOverflow()",
    # ... what it calls: hooks and tokens. WrappedError (ERC-7751) carries their revert data.
    "WrappedError(address,bytes4,bytes,bytes)",
    "HookAddressNotValid(address)",
    "HookCallFailed()",
    "HookNotImplemented()",
    "InvalidHookResponse()",
    "HookDeltaExceedsSwapAmount()",
    "ERC20TransferFailed()",
    "NativeTransferFailed()",
    # v4's quoter.
    "QuoteSwap(uint256)",
    "NotEnoughLiquidity(bytes32)",
    "UnexpectedRevertBytes(bytes)",
    "UnexpectedCallSuccess()",
    "NotSelf()",
)
"""As contracts declare them: a name and types without spaces, no structs."""


class KnownError(NamedTuple):
    """An error's name and the types of its parameters."""

    name: str
    types: tuple[str, ...]


def _parse_signature(signature: str) -> KnownError:
    name, types = signature.removesuffix(")").split("(")
    return KnownError(name, tuple(types.split(",")) if types else ())


KNOWN: dict[bytes, KnownError] = {
    bytes.fromhex(selector(signature)[2:]): _parse_signature(signature) for signature in SIGNATURES
}
"""By selector, the first four bytes of the revert data."""
