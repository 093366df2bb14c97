"""Known functions of token owners, most hostile first, grouped by how the first hostile call is made.

Answers take function names from this table only, so that a contract's author cannot choose them.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from roundtrip.venues.abi import selector

Manner = Literal["bare", "code", "off", "on", "each", "up", "last", "down", "zero"]
"""How a function is called. bare: without arguments. code: with a contract that has none of a token's
functions. off, on: with false, with true. each: with the buyer, and with the contracts it trades through. up,
down: with rising or falling numbers, so that the largest or smallest accepted one remains. last: as up, with
zeros before the last number. zero: with zero."""

_STOPPING: tuple[tuple[Manner, str], ...] = (
    (
        "off",
        """
        setTrading(bool) setTradingEnabled(bool) setTradingOpen(bool) setTradingActive(bool)
        setTradingStatus(bool) setTradingState(bool) setIsTradingEnabled(bool) setIsTradingOpen(bool)
        enableTrading(bool) toggleTrading(bool) switchTrading(bool) tradingStatus(bool) setTrade(bool)
        setSelling(bool) setSellEnabled(bool) setSellingEnabled(bool) setSellOpen(bool) setCanSell(bool)
        enableSelling(bool) setTransferEnabled(bool) setTransfersEnabled(bool) enableTransfers(bool)
        setSwapEnabled(bool) setOpen(bool) setWhitelist(address,bool) setWhitelisted(address,bool)
        whitelist(address,bool) updateWhitelist(address,bool) setAllowed(address,bool)
        """,
    ),
    (
        "bare",
        """
        pause() closeTrading() stopTrading() disableTrading() pauseTrading() haltTrading() blockTrading()
        disableSelling() closeSelling() stopSelling() disableTransfers() freeze() lock() stop() halt()
        emergencyStop() toggleTrading() switchTrading() togglePause()
        """,
    ),
    (
        "on",
        """
        setPaused(bool) setPause(bool) pause(bool) setFrozen(bool) setLocked(bool) setBlacklistEnabled(bool)
        setWhitelistEnabled(bool) setWhitelistOnly(bool) setRestricted(bool) setLimitsEnabled(bool)
        setBlacklist(address,bool) setBlackList(address,bool) setBlacklisted(address,bool)
        setBlacklistStatus(address,bool) updateBlacklist(address,bool) blacklist(address,bool)
        blacklistAddress(address,bool) blacklistAccount(address,bool) blackList(address,bool)
        manageBlacklist(address,bool) setIsBlacklisted(address,bool) addToBlacklist(address,bool)
        setBot(address,bool) setIsBot(address,bool) setBots(address,bool) setBots(address[],bool)
        manageBots(address[],bool) manage_bots(address[],bool) setBlacklist(address[],bool)
        setBlacklists(address[],bool) blacklistMultiple(address[],bool) multiBlacklist(address[],bool)
        blacklistAddresses(address[],bool) setMultiBlacklist(address[],bool) setFrozen(address,bool)
        freezeAccount(address,bool) setFreeze(address,bool) setLocked(address,bool) setBlocked(address,bool)
        setRestricted(address,bool) setSniper(address,bool) rule(bool,address,uint256,uint256)
        setBlocklist(address,bool) setBlocklisted(address,bool)
        """,
    ),
    (
        "each",
        """
        blacklist(address) blackList(address) addBlacklist(address) addBlackList(address)
        addToBlacklist(address) addToBlackList(address) blacklistAddress(address) blacklistAccount(address)
        blacklistWallet(address) setBlacklist(address) blacklist(address[]) addBlacklist(address[])
        addToBlacklist(address[]) addBot(address) addBots(address[]) addBots(address) setBot(address)
        setBots(address[]) blockBots(address[]) blockBot(address) markBot(address) ban(address) block(address)
        freeze(address) freezeAccount(address) lock(address) lockAddress(address) blockAddress(address)
        blockAccount(address) blockAccounts(address[]) blocklist(address) blockList(address)
        addToBlocklist(address) addToBlockList(address) removeFromWhitelist(address)
        removeWhitelist(address) wipe(address) destroyBlackFunds(address) wipeFrozenAddress(address)
        """,
    ),
    ("code", "upgradeTo(address) upgradeToAndCall(address,bytes) upgrade(address)"),
    ("code", "setImplementation(address) changeImplementation(address)"),
    (
        "up",
        """
        setFee(uint256) setFees(uint256) setFees(uint256,uint256) setFees(uint256,uint256,uint256)
        setTax(uint256) setTaxes(uint256,uint256) setTaxes(uint256,uint256,uint256) setTaxRate(uint256)
        setSellFee(uint256) setSellTax(uint256) setSellFees(uint256,uint256) updateSellFee(uint256)
        setSellFees(uint256,uint256,uint256) setSellTaxes(uint256,uint256,uint256) updateSellTax(uint256)
        updateSellFees(uint256,uint256) updateSellFees(uint256,uint256,uint256)
        updateSellFees(uint256,uint256,uint256,uint256) setSellTaxPercent(uint256) setFeePercent(uint256)
        setBuyTax(uint256) setBuyFee(uint256) setTransferFee(uint256) setTransferTax(uint256)
        setFeeRate(uint256) setFeeBps(uint256) setTaxBps(uint256) updateFee(uint256) updateFees(uint256)
        updateFees(uint256,uint256) updateTaxes(uint256,uint256) changeFee(uint256) changeTax(uint256)
        setTaxFee(uint256) setTaxFeePercent(uint256) setLiquidityFee(uint256) setMarketingFee(uint256)
        setLiquidityFeePercent(uint256) setMarketingFeePercent(uint256) setBurnFee(uint256) setDevFee(uint256)
        setParams(uint256,uint256) setCooldown(uint256) setCooldownTime(uint256) setSellCooldown(uint256)
        setCooldownPeriod(uint256) setCooldownTimerInterval(uint8) setLockTime(uint256) setDelay(uint256)
        setTradingStart(uint256) setTradingStartTime(uint256) setLaunchTime(uint256) setStartTime(uint256)
        setLaunchBlock(uint256)
        """,
    ),
    (
        "down",
        """
        setMaxTx(uint256) setMaxTxAmount(uint256) setMaxTxPercent(uint256) setMaxTxBps(uint256)
        setMaxTxnAmount(uint256) updateMaxTxnAmount(uint256) updateMaxTx(uint256) setMaxTransaction(uint256)
        setMaxTransactionAmount(uint256) updateMaxTransactionAmount(uint256) setTxLimit(uint256)
        setMaxSell(uint256) setMaxSellAmount(uint256) setMaxSellLimit(uint256) setSellLimit(uint256)
        setMaxSellTransactionAmount(uint256) setMaxTransfer(uint256) setMaxTransferAmount(uint256)
        setLimits(uint256,uint256) setMaxWallet(uint256) setMaxWalletSize(uint256) setMaxWalletAmount(uint256)
        updateMaxWalletAmount(uint256) setMaxWalletPercent(uint256) setMaxHolding(uint256)
        """,
    ),
    ("each", "seize(address,uint256) confiscate(address,uint256) burnFrom(address,uint256)"),
    ("each", "burn(address,uint256) adminBurn(address,uint256)"),
    ("each", "forceTransfer(address,address,uint256) adminTransfer(address,address,uint256)"),
)  # fmt: skip

_OTHER: tuple[tuple[Manner, str], ...] = (
    (
        "each",
        """
        mint(address,uint256) mintTo(address,uint256) setMarketingWallet(address) setTaxWallet(address)
        setFeeWallet(address) setDevWallet(address) setTreasury(address) updateMarketingWallet(address)
        setRouter(address) setPair(address) excludeFromFee(address) includeInFee(address)
        excludeFromReward(address) includeInReward(address) unblacklist(address) removeBlacklist(address)
        removeFromBlacklist(address) delBot(address) unfreeze(address) rescueTokens(address)
        withdrawToken(address) changeAdmin(address)
        """,
    ),
    (
        "on",
        """
        excludeFromFees(address,bool) setExcludedFromFee(address,bool) setIsExcludedFromFees(address,bool)
        excludeFromMaxTransaction(address,bool) setAutomatedMarketMakerPair(address,bool)
        setSwapAndLiquifyEnabled(bool)
        """,
    ),
    ("up", "mint(uint256) burn(uint256) setSwapThreshold(uint256) updateSwapTokensAtAmount(uint256)"),
    ("bare", "removeLimits() openTrading() enableTrading() unpause() launch() manualSwap() withdraw()"),
    ("each", "transferOwnership(address) setOwner(address)"),
    ("bare", "acceptOwnership() claimOwnership() renounceOwnership()"),
)

_NOT_THE_OWNERS = """
    approve(address,uint256) transfer(address,uint256) transferFrom(address,address,uint256)
    increaseAllowance(address,uint256) decreaseAllowance(address,uint256)
    permit(address,address,uint256,uint256,uint8,bytes32,bytes32)
    permit(address,address,uint256,uint256,bytes)
    transferAndCall(address,uint256) transferAndCall(address,uint256,bytes) approveAndCall(address,uint256)
    approveAndCall(address,uint256,bytes) transferFromAndCall(address,address,uint256)
    transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)
    receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)
    cancelAuthorization(address,bytes32,uint8,bytes32,bytes32) multicall(bytes[]) delegate(address)
    delegateBySig(address,uint256,uint256,uint8,bytes32,bytes32)
"""
"""Functions that every holder may call for their own tokens."""


@dataclass(frozen=True, slots=True)
class KnownSetter:
    """A known function. ``place``: its rank, the most hostile first. ``first``: how it is called first.
    ``stopping``: it usually stops or taxes sells."""

    signature: str
    place: int
    first: Manner
    stopping: bool

    def types(self) -> tuple[str, ...]:
        """The types of its arguments."""
        inner = self.signature[self.signature.index("(") + 1 : -1]
        return tuple(inner.split(",")) if inner else ()


def _table() -> dict[str, KnownSetter]:
    setters: dict[str, KnownSetter] = {}
    for stopping, table in ((True, _STOPPING), (False, _OTHER)):
        for manner, signatures in table:
            for signature in signatures.split():
                setter = KnownSetter(signature, len(setters), manner, stopping)
                setters.setdefault(selector(signature), setter)
    return setters


KNOWN: MappingProxyType[str, KnownSetter] = MappingProxyType(_table())
"""By selector, ``0x`` and eight hex digits."""

HOLDERS: frozenset[str] = frozenset(map(selector, _NOT_THE_OWNERS.split()))
"""Selectors of functions that are not tried."""

UPGRADES: frozenset[str] = frozenset(s for s, known in KNOWN.items() if known.first == "code")
"""Selectors of functions that replace a contract's code."""
