"""Which bytes of a file are here, which are being fetched, and which come next. Pure; the caller locks.

Pieces are handed out in order, so that the file can be hashed while it grows. When nothing is left to hand out, who is
idle takes over part of what another is still busy with.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_SHARE = 1 << 20  # bytes that are worth a request of their own
FIRST_PIECE = 8 << 20
LARGEST_PIECE = 64 << 20
WORTH = 20  # times that fetching a piece should take as long as asking for it


class Span:
    """Bytes ``position`` to ``end`` of a file, which one worker is fetching."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin = begin
        self.position = begin
        self.end = end

    @property
    def left(self) -> int:
        """Bytes that are still to come."""
        return self.end - self.position


class Ranges:
    """A file of ``size`` bytes of which ``done`` are here already: pairs of first byte and byte after the last."""

    def __init__(self, size: int, done: Iterable[tuple[int, int]] = ()) -> None:
        self.size = size
        self.active: list[Span] = []
        self._gaps: list[tuple[int, int]] = []  # that nobody is busy with, in order
        self._left = 0  # bytes that are not here
        reached = 0
        for begin, end in sorted(done):
            if begin > reached:
                self._gaps.append((reached, begin))
            reached = max(reached, end)
        if reached < size:
            self._gaps.append((reached, size))
        self._left = sum(end - begin for begin, end in self._gaps)

    @property
    def done_bytes(self) -> int:
        """How many bytes are here."""
        return self.size - self._left

    @property
    def unclaimed_bytes(self) -> int:
        """How many bytes are neither here nor being fetched."""
        return sum(end - begin for begin, end in self._gaps)

    @property
    def frontier(self) -> int:
        """How many bytes are here from the file's start without a gap."""
        starts = [span.position for span in self.active if span.left]
        if self._gaps:
            starts.append(self._gaps[0][0])
        return min(starts, default=self.size)

    def done(self) -> list[tuple[int, int]]:
        """All that is here, in order."""
        missing = sorted([*self._gaps, *((span.position, span.end) for span in self.active if span.left)])
        found, reached = [], 0
        for begin, end in missing:
            if begin > reached:
                found.append((reached, begin))
            reached = end
        if reached < self.size:
            found.append((reached, self.size))
        return found

    def take(self, most: int) -> Span | None:
        """The next bytes that nobody is busy with, at most so many; None where there are none."""
        if not self._gaps:
            return None
        begin, end = self._gaps.pop(0)
        # Not so that a crumb remains: it would cost a request of its own.
        if end - begin >= most + min(most, LEAST_SHARE):
            self._gaps.insert(0, (begin + most, end))
            end = begin + most
        span = Span(begin, end)
        self.active.append(span)
        return span

    def advance(self, span: Span, count: int) -> bool:
        """Note that ``count`` more bytes of a span are here; True where that was its end."""
        count = min(count, span.left)  # its end may have been taken over meanwhile
        span.position += count
        self._left -= count
        return not span.left

    def give_back(self, span: Span) -> None:
        """Be done with a span; what is left of it is for others."""
        self.active.remove(span)
        if span.left:
            self._gaps.append((span.position, span.end))
            self._gaps.sort()

    def end_at(self, size: int) -> None:
        """The file turned out to end where its only span has come to."""
        for span in self.active:
            span.end = span.position
        self.size, self._left = size, 0

    def split(self, span: Span) -> Span:
        """Take over the second half of what somebody is still fetching."""
        middle = span.end - span.left // 2
        return self._cut(span, middle)

    def take_over(self, span: Span) -> Span:
        """Take over all that somebody has not fetched yet."""
        return self._cut(span, span.position)

    def _cut(self, span: Span, at: int) -> Span:
        other = Span(at, span.end)
        span.end = at
        self.active.append(other)
        return other


def piece_size(unclaimed_bytes: int, workers: int, bytes_per_s: float, answer_s: float) -> int:
    """How many bytes to ask for at once.

    So many that waiting for the answer (``answer_s``) hardly counts at this speed; fewer where all workers would not
    have something to do until the end; small enough that the file grows nearly in order.
    """
    wanted = min(max(FIRST_PIECE, int(WORTH * answer_s * bytes_per_s)), LARGEST_PIECE)
    fair = -(-unclaimed_bytes // (2 * workers))
    fair = -(-fair // LEAST_SHARE) * LEAST_SHARE
    return max(LEAST_SHARE, min(wanted, fair))
