# pragma version 0.4.3
"""
@title The launchpad's data
@notice What a launch asks for, what it was granted, and v4's own structures.
        Amounts are raw, shares are hundredths of a percent.
"""

MAX_EXEMPT: constant(uint256) = 32
# The list plus the launcher and the fee recipient.
MAX_UNTAXED: constant(uint256) = MAX_EXEMPT + 2

struct Socials:
    twitter: String[256]
    telegram: String[256]
    discord: String[256]
    website: String[256]
    farcaster: String[256]

# What a launcher asks for.
struct Wish:
    name: String[64]
    symbol: String[32]
    logo: String[512]
    description: String[2048]
    socials: Socials
    creatorFeeRecipient: address
    creatorTaxBps: uint16
    buybackEnabled: bool
    expectedEconomics: bytes32
    salt: bytes32

# What a curve is built with, for good.
struct Terms:
    token: address
    deployer: address
    creatorFeeRecipient: address
    pairToken: address
    escrow: address
    locker: address
    supply: uint256
    feeBps: uint256
    creatorTaxBps: uint256
    snipeStartBps: uint256
    snipeSeconds: uint256
    phantomQuote: uint256
    graduationThreshold: uint256
    protocolShareBps: uint256
    buybackShareBps: uint256
    buybackEnabled: bool

# What the hook knows of a pool.
struct HookLaunch:
    memecoin: address
    quote: address
    creator: address
    creatorTaxBps: uint256
    buybackEnabled: bool

# Terms of a launch that do not depend on its quote.
struct LaunchConfig:
    supply: uint256
    curveFeeBps: uint256
    poolFee: uint24
    tickSpacing: int24
    open: bool

# Terms that do.
struct QuoteTerms:
    approved: bool
    phantomQuote: uint256
    graduationThreshold: uint256

# What the factory knows of a token, in the order in which it tells.
struct LaunchedToken:
    token: address
    curve: address
    deployer: address
    creatorFeeRecipient: address
    pairToken: address
    graduationThreshold: uint256
    poolFee: uint24
    tickSpacing: int24
    creatorTaxBps: uint16
    buybackEnabled: bool
    phase: uint8
    sweptQuote: uint256
    sweptTokens: uint256
    sweptAt: uint256
    exists: bool

# v4's name of a pool. Currencies are sorted; zero is native eth.
struct PoolKey:
    currency0: address
    currency1: address
    fee: uint24
    tickSpacing: int24
    hooks: address

struct SwapParams:
    zeroForOne: bool
    amountSpecified: int256
    sqrtPriceLimitX96: uint160


@internal
@pure
def _pool_id(key: PoolKey) -> bytes32:
    return keccak256(abi_encode(key))
