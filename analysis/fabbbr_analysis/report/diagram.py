"""The emulated path as an inline drawing: hosts, switches with their queues, wires with delay and loss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from markupsafe import Markup

from fabbbr.counts import counted
from fabbbr.model import Bottleneck, Cell, CellLink, LinkWay, Loss, Reordering
from fabbbr.physics import loses, loss_in_words, mean_burst, stationary_loss
from fabbbr_analysis.wording import distinct, listing

_COLUMN, _ROW, _TOP, _LEFT = 250, 76, 34, 46
_NODE_WIDTH, _NODE_HEIGHT = 64, 38
_ARROW = 9
_MOST_IN_A_COLUMN = 6
_LISTED = 4


def spread(texts: Sequence[str]) -> str:
    """Write what a setting was across cells: one value, a few, or the ends of many.

    >>> spread(["1 %"]), spread(["0.001 %", "0.01 %", "0.1 %", "1 %", "5 %"])
    ('1 %', '0.001 % … 5 % (5 values)')
    """
    values = distinct(texts)
    if len(values) <= _LISTED:
        return listing(values)
    return f"{values[0]} … {values[-1]} ({len(values)} values)"


@dataclass(frozen=True, kw_only=True)
class _Spot:
    name: str
    kind: str
    x: int
    y: int


def drawing(cells: Sequence[Cell]) -> Markup:
    """Draw the path of these cells of one experiment, left to right as the data flows."""
    spots, left_out = _layout(cells[0])
    width = max(spot.x for spot in spots.values()) + _LEFT + _NODE_WIDTH // 2
    height = max(spot.y for spot in spots.values()) + _TOP + 44
    parts = [
        _link(link, cells, spots[link.a], spots[link.b])
        for link in cells[0].links
        if link.a in spots and link.b in spots
    ]
    parts += [_node(spot) for spot in spots.values()]
    parts += [_more(left_out, height)] if left_out else []
    return Markup(
        '<svg class="path" role="img" aria-label="{label}" viewBox="0 0 {w} {h}" '
        'style="min-width:{m}px;max-width:{w}px">'
        "{parts}</svg>"
    ).format(label=in_words(cells), w=width, h=height, m=min(width, 520), parts=Markup("").join(parts))


def in_words(cells: Sequence[Cell]) -> str:
    """Say what the drawing shows."""
    first = cells[0]
    links = [
        f"{link.a} to {link.b}: {', '.join(labels)}"
        for link in first.links
        if (labels := _labels(link.name, cells))
    ]
    hosts = (
        f"{counted(len(first.hosts), 'host')} and "
        f"{counted(len(first.switches), 'switch').replace('switchs', 'switches')}"
    )
    return f"Path with {hosts}. {'. '.join(links)}."


def _layout(cell: Cell) -> tuple[dict[str, _Spot], int]:
    """Place each node in the column of its distance from the senders; long columns keep their ends."""
    hosts = {host.name for host in cell.hosts}
    depth = dict.fromkeys(
        [*(host.name for host in cell.hosts), *(switch.name for switch in cell.switches)], 0
    )
    for _ in depth:
        for link in cell.links:
            depth[link.b] = max(depth[link.b], depth[link.a] + 1)
    columns: dict[int, list[str]] = {}
    for name, column in depth.items():
        columns.setdefault(column, []).append(name)
    left_out = sum(max(0, len(names) - _MOST_IN_A_COLUMN) for names in columns.values())
    kept = {column: names[:_MOST_IN_A_COLUMN] for column, names in columns.items()}
    tallest = max(len(names) for names in kept.values())
    spots = {}
    for column, names in kept.items():
        offset = (tallest - len(names)) * _ROW // 2
        for row, name in enumerate(names):
            spots[name] = _Spot(
                name=name,
                kind="host" if name in hosts else "switch",
                x=_LEFT + _COLUMN * column,
                y=_TOP + offset + _ROW * row,
            )
    return spots, left_out


def _node(spot: _Spot) -> Markup:
    return Markup(
        '<g class="node {kind}"><rect x="{x}" y="{y}" width="{w}" height="{h}" rx="{r}"/>'
        '<text x="{cx}" y="{cy}">{name}</text></g>'
    ).format(
        kind=spot.kind,
        x=spot.x - _NODE_WIDTH // 2,
        y=spot.y - _NODE_HEIGHT // 2,
        w=_NODE_WIDTH,
        h=_NODE_HEIGHT,
        r=_NODE_HEIGHT // 2 if spot.kind == "host" else 4,
        cx=spot.x,
        cy=spot.y + 5,
        name=spot.name,
    )


def _link(link: CellLink, cells: Sequence[Cell], a: _Spot, b: _Spot) -> Markup:
    start, end = a.x + _NODE_WIDTH // 2, b.x - _NODE_WIDTH // 2
    parts = [
        Markup('<path class="link" d="M{0} {1}L{2} {3}"/>').format(start, a.y, end - _ARROW, b.y),
        Markup('<path class="arrow" d="M{0} {1}l-{2} -5v10z"/>').format(end, b.y, _ARROW),
    ]
    if link.bottleneck is not None:
        parts.append(_queue(start + 10, a.y))
    middle, slope = (start + end) // 2, (b.y - a.y) // 2
    for line, label in enumerate(_labels(link.name, cells)):
        parts.append(
            Markup('<text class="label" x="{0}" y="{1}">{2}</text>').format(
                middle, a.y + slope + 26 + 17 * line, label
            )
        )
    return Markup("").join(parts)


def _queue(x: int, y: int) -> Markup:
    """Draw packets that stand in a queue."""
    bars = Markup("").join(
        Markup('<rect x="{0}" y="{1}" width="5" height="16"/>').format(x + 9 * place, y - 8)
        for place in range(3)
    )
    return Markup(
        '<g class="queue"><rect class="back" x="{0}" y="{1}" width="33" height="24" rx="3"/>{2}</g>'
    ).format(x - 5, y - 12, bars)


def _more(left_out: int, height: int) -> Markup:
    return Markup('<text class="label" x="{0}" y="{1}">and {2} more</text>').format(
        _LEFT, height - 8, left_out
    )


def _labels(name: str, cells: Sequence[Cell]) -> list[str]:
    links = [link for cell in cells for link in cell.links if link.name == name]
    labels = []
    queues = [link.bottleneck for link in links if link.bottleneck is not None]
    if rates := sorted({queue.rate for queue in queues}):
        labels.append(spread([str(rate) for rate in rates]))
    if queues:
        labels.append(queues_in_words(queues))
    if backs := list(filter(None, (queue.own_way_back for queue in queues))):
        rates = sorted({back.rate for back in backs})
        labels.append(f"back {spread([str(rate) for rate in rates])}, {queues_in_words(backs)}")
    if delays := sorted({link.delay for link in links if link.delay is not None}):
        labels.append(f"{spread([str(delay) for delay in delays])} each way")
    if losses := losses_in_words(link.loss for link in links):
        labels.append(f"loss {spread(losses)}")
    if late := reordered_in_words(link.reordering for link in links):
        labels.append(spread(late))
    if held := sorted({link.ack_aggregation.most for link in links if link.ack_aggregation is not None}):
        labels.append(f"ACKs held up to {spread([str(most) for most in held])}")
    return labels


def losses_in_words(losses: Iterable[Loss | None]) -> list[str]:
    """The distinct losses, the least first, and of one share the shortest bursts first."""
    found = {loss for loss in losses if loss is not None and loses(loss)}
    return distinct(
        loss_in_words(loss)
        for loss in sorted(found, key=lambda loss: (stationary_loss(loss), mean_burst(loss) or 0.0))
    )


def reordered_in_words(kinds: Iterable[Reordering | None]) -> list[str]:
    """The distinct shares, the smallest first, each with how late they come."""
    found = sorted({(each.rate, each.late) for each in kinds if each is not None})
    return [
        f"{rate} of the data {spread([str(late) for _, late in alike])} late"
        for rate, alike in groupby(found, key=itemgetter(0))
    ]


def queues_in_words(queues: Sequence[Bottleneck]) -> str:
    """Their buffers, and the token buckets that were asked for."""
    asked = bursts(queues)
    return f"buffer {spread(buffers(queues))}" + (f", token bucket {spread(asked)}" if asked else "")


def buffers(queues: Sequence[Bottleneck]) -> list[str]:
    """Return the buffers as asked, smallest first: those in BDP by their multiple, others by their bytes."""
    return _by_size((queue, queue.buffer_asked, queue.buffer_bytes) for queue in queues)


def bursts(queues: Sequence[LinkWay]) -> list[str]:
    """The same of the token buckets that were asked for."""
    return _by_size((queue, queue.burst_asked, queue.burst_bytes) for queue in queues)


def _by_size(asked: Iterable[tuple[LinkWay, str | None, int | None]]) -> list[str]:
    sizes: dict[str, float] = {}
    for queue, text, size in asked:
        if text is not None and size is not None:
            unit = queue.bdp_bytes if text.endswith("BDP") and queue.bdp_bytes else 1
            sizes[text] = size / unit
    return sorted(sizes, key=lambda text: sizes[text])
