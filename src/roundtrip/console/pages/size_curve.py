"""The losses of a token at eight sizes: a piece of its page, with a slider and a curve."""

from collections.abc import Sequence

from starlette.responses import Response

from roundtrip.console.support.page_operations import page_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import draw_line
from roundtrip.domain.verdicts.risks import rate_loss
from roundtrip.services.check.size_curve import SizePoint, size_curve
from roundtrip.services.support.answer_fields import TokenParams

_SIZES = page_operation(
    size_curve, shared_by=lambda params: params.address.lower(), lane="checks", bad_params="bad_address",
    errors=("upstream", "busy"),
)  # fmt: skip
WIDTH, HEIGHT = 400, 100
_LEAST_TOP_BPS = 1_000
"""The curve is drawn from no loss to at least so much, so that small losses look small."""


async def show_sizes(visit: Visit) -> Response:
    """GET /token/{address}/sizes: what each size loses."""
    found = await visit.ask(_SIZES, TokenParams(visit.address))
    template = "sizes_piece.html" if visit.is_piece() else "sizes.html"
    line = draw_losses(found.points)
    return visit.show(template, address=visit.address, found=found, line=line, loss_colour=rate_loss)


def draw_losses(points: Sequence[SizePoint]) -> list[str]:
    """The losses as pieces of a line in an SVG of WIDTH by HEIGHT, the sizes side by side; a gap where a size
    did not sell."""
    losses = [point.lost_bps() for point in points]
    top = max([_LEAST_TOP_BPS, *(loss for loss in losses if loss is not None)])
    kept = (None if loss is None else 100 - 100 * max(0, loss) // top for loss in losses)
    return draw_line(kept, WIDTH, HEIGHT)
