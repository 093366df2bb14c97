"""Every threshold of a verdict, frozen and versioned. All stored evidence has the version."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Policy:
    """What is probed, and the thresholds of verdicts. ``_bps`` are hundredths of a percent."""

    version: str = "2026-11-30.2"

    probe_wei: int = 10**17
    """The buy that judges every venue: 0.1 eth, an ordinary trade on this chain."""
    large_wei: int = 10**18
    """The larger round trip: only the level and the text depend on it, no code."""
    fee_divisor: int = 1000
    """Fees are measured on the probe divided by this, where price impact vanishes."""
    smaller_divisors: tuple[int, ...] = (10, 100)
    """Divisors of the probe, tried in this order when the probe is refused."""
    gas_float_wei: int = 5 * 10**16
    """What a sender holds beyond the trade, to pay for gas."""

    later_s: int = 13
    hour_s: int = 3600
    day_s: int = 86_400
    """How long after the buy the first, the second and the third sells come."""
    half_bps: int = 5000
    sliver_bps: int = 100
    """The shares of the sells of a part."""
    most_bps: int = 9800
    """The share that a round trip sells after others in the same simulation: they change what its buy brings,
    and its sell is planned before."""
    nearly_kept_raw: int = 10
    nearly_bps: tuple[int, ...] = (9900, 9800, 9500, 9000)
    """Where a sale of all is refused: all but so many base units is tried, then these shares and half of it.
    The first that sells counts. Some tokens want a rest kept, some take a tax on top, and some arrive a unit
    short."""
    nearly_rounds: int = 5
    """How often these are tried. Another wallet buys a little between: whether an amount arrives short by a
    unit depends on what the pool holds."""
    nearly_gas_limit: int = 1_000_000
    """For each of these sales: together they stay below the gas that nodes allow one simulation."""
    pieces: int = 10
    """Where no single sale sells enough, so many equal sales, spread over the day, are tried; and one sale at
    each of so many moments. Texts say "ten"."""
    small_pieces: int = 50
    """So many equal sales are tried there, too: a cap on one sale may be below a tenth. Texts say "fifty"."""

    side_buy_gas_limit: int = 3_000_000
    """For the small and the large buy, which share a simulation with the token's facts."""
    buy_gas_limit: int = 2**24
    """EIP-7825's cap on one transaction."""
    sell_gas_ladder: tuple[int, ...] = (400_000, 1_200_000, 3_000_000, 2**24)
    """A sell is tried under each limit in turn, as a wallet that estimates gas would: a token that behaves
    only when much gas is left is judged at the lowest limit under which its sell goes through."""
    hook_gas_limit: int = 3_000_000
    """The most gas of a swap in a pool with a stranger's hook: no trader pays more, and no hook can slow a
    check down by burning gas."""
    most_tried: int = 24
    most_hooked: int = 8
    """The most pools without, and with, a stranger's hook that are tried in full: of more, those on which one
    buy brings most."""
    most_scouted: int = 64
    """The most pools of either sort that get one buy each to find those."""
    part_gas_ladder: tuple[int, ...] = (3_000_000, 2**24)
    """As ``sell_gas_ladder``, for sells of a part, which are the exception."""
    piece_gas_limit: int = 3_000_000
    """For each of the ``pieces``: together they stay below the gas that nodes allow one simulation."""
    small_piece_gas_limit: int = 700_000
    """For each of the ``small_pieces``."""
    company_gas_limit: int = 3_000_000
    """For buys of other wallets between a buy and its sell."""
    named_gas: int = 3_000_000
    """The text names a buy or a sell that uses more."""
    approve_gas_limit: int = 300_000
    read_gas_limit: int = 300_000
    """Limits what a hostile token can return: memory for about 370 KB costs this much gas."""
    transfer_gas_limit: int = 1_200_000
    hand_on_gas_limit: int = 3_000_000
    """For the transfer to a wallet that then sells: as much as a sale may use."""

    crowd_sizes_wei: tuple[tuple[int, int], ...] = (
        (10**16, 2 * 10**16),
        (2 * 10**16, 6 * 10**16),
        (6 * 10**16, 3 * 10**17),
        (3 * 10**17, 10**18),
        (10**18, 3 * 10**18),
    )
    """The crowd's buys are drawn between these bounds, smallest first."""
    crowd_largest_wei: int = 3 * 10**18
    """One more wallet trades alone, for 90 to 100 % of this; at most for all that the crowd may buy for."""
    crowd_counts: tuple[int, ...] = (13, 6, 4, 2, 1)
    """How many are drawn between each pair of bounds. Where the venue is too thin, all sizes shrink."""
    crowd_purse_wei: tuple[int, int] = (5 * 10**15, 30 * 10**18)
    """The least and the most eth that a wallet of the crowd holds beyond its buys."""
    crowd_most_tip_wei: int = 3 * 10**9
    """The highest tip of a wallet of the crowd, for a unit of gas."""
    crowd_buy_blocks: int = 4
    """The blocks of the crowd's first buys; a wallet that buys twice does so a block later."""
    crowd_gaps_s: tuple[int, int] = (1, 60)
    """The bounds of the drawn times before each block of the crowd's buys."""
    crowd_depth_divisor: int = 10
    """Together the crowd buys for at most this part of the venue's depth."""
    most_crowded: int = 2
    """On so many of the best venues all of the crowd trades. On each further one that bought, every
    ``few_step``-th wallet and the largest do, until one of these decides: then all do on every venue."""
    few_step: int = 4
    crowd_gas_limit: int = 3_000_000
    """The most gas of one of the crowd's buys or sells."""
    crowd_gas: int = 48_000_000
    """The most gas that the crowd's buys and sells may use together. Nodes allow one simulation 50 M."""
    crowd_margin_bps: int = 500
    """A wallet of the crowd that loses this much more than the main one met something else."""
    most_isolated: int = 3
    """Wallets of one venue that are tried alone."""
    most_recalled: int = 4
    """Wallets of earlier checks that trade again on a venue."""
    recalled_s: int = 86_400
    """How long a wallet that met something else is recalled."""

    warn_loss_bps: int = 1500
    danger_loss_bps: int = 5000
    toll_warn_bps: int = 1000
    """A pool that keeps this share of a round trip is at least a warning."""
    sellable_share_bps: int = 5000
    """A token of which less can be sold within a day cannot be sold."""
    whole_tolerance_bps: int = 1
    """A sell that leaves at most this share of the planned amount counts as a sell of all of it."""
    rival_hook_margin_bps: int = 100
    """A pool with a stranger's hook is chosen only where it brings this much more than another."""
    thin_quote_wei: int = 10**17
    """Flag no_liquidity: the best venue's quote side is worth less than this."""
    price_disagreement_bps: int = 300
    """No dollar price is given where the pool's and the price feed's differ by more."""

    high_creator_tax_bps: int = 500
    serial_launches: int = 5
    serial_graduated_divisor: int = 5
    """A deployer of at least ``serial_launches`` is serial when fewer than 1/``serial_graduated_divisor`` of
    them graduated."""
    closed_long_s: int = 3600
    """The text mentions a launch that is closed for longer without a pool."""

    trade_gas_budget: int = 30_000_000
    """Gas of the caller's own calls in all simulations of one request together. The more they use, the fewer
    venues and gas limits are tried; what does not fit is unproven."""
    most_received: int = 4
    """Received tokens that are tried; a trade that brings more is unproven."""

    most_owner_calls: int = 24
    """Simulations that try what an owner could change."""
    owner_call_gas_limit: int = 1_200_000

    drawn_holders: int = 48
    """Known holders of which balances are read: by their trades a third hold most, a third traded last, and a
    third are drawn at random. Who paid less than ``sliver_bps`` of ``probe_wei`` is not drawn."""
    most_holders: int = 12
    """Of them, those for which sells are tried: the first that hold enough."""
    least_caught: int = 2
    """Fewer caught holders only give a warning: one may be barred for a good reason."""
    caught_share_bps: int = 5000
    """The token cannot be sold where at least this share of the holders cannot sell, or loses
    ``danger_loss_bps``: no lasting holder can."""

    most_venues: int = 8
    most_alone: tuple[int, int] = (1, 4)
    """On so many of the best venues each of the main wallet's sells has a simulation of its own; on so many
    its first sell has. Further venues have one simulation for all of them."""
    node_fault_ttl_ms: int = 2000
    answer_ttl_ms: int = 15_000
    deep_ttl_ms: int = 60_000
    """How long an answer is shared: one that a node error left unproven, another one, and a deep check's."""

    def at_size(self, probe_wei: int) -> "Policy":
        """The same thresholds with another usual buy, and a larger round trip of ten times as much. The
        crowd's sizes stay."""
        version = f"{self.version} at {probe_wei} wei"
        return replace(self, version=version, probe_wei=probe_wei, large_wei=10 * probe_wei)


POLICY = Policy()
