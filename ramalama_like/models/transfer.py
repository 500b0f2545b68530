"""One attempt to get one state of a file: workers fetch its ranges, one thread hashes what has grown together.

Python's locks are let go while bytes are received, written and hashed, so the three happen at once. The bytes go
through one small buffer for each worker; the hash reads them back from the page cache, in order.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Condition, Event, RLock, Thread

from ramalama_like.errors import AppError
from ramalama_like.models import failures
from ramalama_like.models.client import FIRST_WAIT_S, split_url
from ramalama_like.models.failures import Passing
from ramalama_like.models.pauses import MOST_WAIT_S
from ramalama_like.models.ranges import LEAST_SHARE, Ranges, Span, piece_size
from ramalama_like.models.resume import Version, validator_of, write_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Semaphore

    from ramalama_like.models.client import Client, Stream

BUFFER_BYTES = 1 << 18  # for each worker
HASH_BYTES = 1 << 20
SAVE_S = 1.0  # between two notes of how far it came
PROGRESS_S = 0.1
PATIENCE_S = 3.0  # before one who is slower than the others is taken for slow
WINDOW_S = 20.0  # a connection that brings less than LEAST_RATE for so long is given up
LEAST_RATE = 1024  # bytes a second
GATHER_S = 0.05  # how long small pieces are gathered before they are written
PROGRESS_BYTES = 1 << 16  # more than this since the last failure: the next is the first again
MOST_WRONG = 2  # answers to ranges that are no such ranges, before the file is asked for as a whole
ANSWERS = (200, 206, 401, 403, 404, 410, 416)  # that are understood here
UNKNOWN = 1 << 62  # stands for the size of a file that the server does not tell


class ChangedError(Exception):
    """The file at the hub is no longer the one that this attempt is about."""


class DamagedError(Exception):
    """What came is not what was wanted. ``failure`` is for people."""

    def __init__(self, failure: AppError) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NoRangesError(Exception):
    """The server cannot be trusted to send the ranges that it is asked for."""


class Transfer:
    """One attempt. ``descriptor`` is that of the data; it is not closed here.

    ``allocate`` takes the space for all of it, while the first bytes are already coming: on file systems that fill it
    with zeros that takes as long as writing. ``check`` looks at the first bytes; False where these are too few.
    """

    def __init__(self, client: Client, url: str, authorization: str, version: Version, ranges: Ranges, descriptor: int,
                 state_path: str, check: Callable[[bytes, int], bool],
                 allocate: Callable[[], None]) -> None:  # fmt: skip
        self._client = client
        self._first_url = url
        self._url = url  # after redirections: asking each time anew would cost a second request
        self._authorization = authorization
        self._version = version
        self._ranges = ranges
        self._descriptor = descriptor
        self._state_path = state_path
        self._check = check
        self._allocate = allocate
        self._checked = False
        lock = RLock()
        self._changed = Condition(lock)
        self._grown = Condition(lock)
        self._stop = Event()
        self._error: BaseException | None = None
        self._busy: dict[Span, _Worker] = {}
        self._workers = 0
        self._wrong = 0
        self._hashed = 0

    def run(self, stream: Stream, begin: int, end: int, connections: int, progress: Callable[[int], None]) -> str:
        """Get what is missing, beginning with ``stream``, which holds bytes ``begin`` to ``end``.

        Returns the SHA-256 of the whole. Raises AppError, ChangedError, NoRangesError.
        """
        from hashlib import sha256

        self._url = stream.url
        self._sum = sha256()
        whole = stream.status == 200
        span = self._ranges.take(end - begin if not whole else UNKNOWN)
        if span is None or span.begin != begin:
            raise ChangedError
        threads = [Thread(target=self._hash, daemon=True), Thread(target=self._make_room, daemon=True)]
        wanted = 1 if whole else min(connections, 1 + -(-self._ranges.unclaimed_bytes // LEAST_SHARE))
        workers = [_Worker(self._descriptor) for _ in range(wanted)]
        self._workers = wanted
        fetching = [Thread(target=self._work, args=(worker, span if not number else None, stream, whole), daemon=True)
                    for number, worker in enumerate(workers)]  # fmt: skip
        threads += fetching
        if self._version.is_certain and not whole:
            threads.append(Thread(target=self._save, daemon=True))
        try:
            self._early_check()
            for thread in threads:
                thread.start()
            self._watch(progress)
        finally:
            self._halt()
            for thread in threads:
                # A worker may be looking up a name, which nothing can interrupt; it writes nothing any more.
                if thread.ident is not None:
                    thread.join(5 if thread in fetching else None)
            stream.close()
        if self._error is not None:
            raise self._error
        return self._sum.hexdigest()

    @property
    def size_bytes(self) -> int:
        """Bytes of the file, as far as they are known now."""
        return self._ranges.size

    def save(self) -> None:
        """Note how far it came, after making sure that so much is on the disk. Raises OSError."""
        with self._changed:
            done = self._ranges.done()
        os.fsync(self._descriptor)
        write_state(self._state_path, self._version, done)

    # The thread that called.

    def _watch(self, progress: Callable[[int], None]) -> None:
        told = -1
        while True:
            with self._changed:
                if not self._is_over():
                    self._changed.wait(PROGRESS_S)
                done, over = self._ranges.done_bytes, self._is_over()
            if done != told:
                progress(done)
                told = done
            if over:
                return

    def _is_over(self) -> bool:
        return self._error is not None or self._hashed == self._ranges.size

    def _halt(self) -> None:
        with self._changed:
            self._stop.set()
            self._changed.notify_all()
            streams = [worker.stream for worker in self._busy.values() if worker.stream is not None]
            self._grown.notify_all()
        for stream in streams:
            stream.cut()

    def _abort(self, error: BaseException) -> None:
        with self._changed:
            if self._error is None:
                self._error = error
            self._stop.set()
            self._changed.notify_all()
            self._grown.notify_all()

    # The thread that hashes.

    def _hash(self) -> None:
        buffer = memoryview(bytearray(HASH_BYTES))
        try:
            while True:
                with self._grown:
                    while not self._stop.is_set() and not self._may_hash():
                        self._grown.wait()
                    end = self._ranges.frontier
                if self._stop.is_set():
                    return
                while self._hashed < end and not self._stop.is_set():
                    count = os.preadv(self._descriptor, [buffer[: end - self._hashed]], self._hashed)
                    if not count:
                        raise failures.vanished(self._first_url)
                    self._sum.update(buffer[:count])
                    self._hashed += count
                if self._hashed == self._ranges.size:
                    with self._changed:
                        self._changed.notify_all()
                    return
        except OSError as error:
            self._abort(failures.disk(error, os.path.dirname(self._state_path)))
        except BaseException as error:
            self._abort(error)
            raise

    def _may_hash(self) -> bool:
        frontier = self._ranges.frontier
        return frontier - self._hashed >= HASH_BYTES or frontier == self._ranges.size

    # The thread that takes the space.

    def _make_room(self) -> None:
        try:
            self._allocate()
        except OSError as error:
            self._abort(failures.disk(error, os.path.dirname(self._state_path)))
        except BaseException as error:
            self._abort(error)
            raise

    # The thread that notes how far it came.

    def _save(self) -> None:
        saved = self._ranges.done_bytes
        while not self._stop.wait(SAVE_S):
            if self._ranges.done_bytes == saved:
                continue
            saved = self._ranges.done_bytes
            try:
                self.save()
            except OSError:
                continue  # only the note is lost; a full disk is noticed where the data is written

    # The threads that fetch.

    def _work(self, worker: _Worker, span: Span | None, stream: Stream, whole: bool) -> None:
        given = stream if span is not None else None
        slot = None
        try:
            if span is None:
                slot = self._slot(worker)
                if slot is None:
                    return
                span = self._next_span(worker)
            while span is not None and self._fetch(worker, span, given, whole):
                given, span = None, self._next_span(worker)
        except OSError as error:
            self._abort(failures.disk(error, os.path.dirname(self._state_path)))
        except (ChangedError, NoRangesError, DamagedError, AppError) as error:
            self._abort(error)
        except BaseException as error:
            self._abort(error)
            raise
        finally:
            worker.close()
            if slot is not None:
                slot.release()
            self._leave(worker)

    def _slot(self, worker: _Worker) -> Semaphore | None:
        """Leave to open one more connection to the host; None where nothing is left to do when it comes."""
        slot = self._client.slots(split_url(self._url)[0].host)
        while not slot.acquire(timeout=0.25):
            with self._changed:
                if self._stop.is_set() or not self._ranges.unclaimed_bytes:
                    self._leave(worker)
                    return None
        return slot

    def _leave(self, worker: _Worker, *, unless_last: bool = False) -> bool:
        """Count a worker out. Whoever decides to go does so in the moment of deciding: one has to stay."""
        with self._changed:
            if worker.gone or (unless_last and self._workers == 1):
                return worker.gone
            worker.gone = True
            self._workers -= 1
            self._changed.notify_all()
        return True

    def _next_span(self, worker: _Worker) -> Span | None:
        """What to fetch next; None when there is nothing left for this worker."""
        ranges = self._ranges
        with self._changed:
            while not self._stop.is_set():
                if ranges.unclaimed_bytes:
                    most = piece_size(ranges.unclaimed_bytes, self._workers, worker.rate, worker.answer_s)
                    span = ranges.take(most)
                else:
                    span = self._share(worker)
                if span is not None:
                    self._busy[span] = worker
                    worker.began = self._client.clock()
                    return span
                if not any(each.left for each in ranges.active):
                    self._leave(worker)
                    return None
                self._changed.wait(0.25)
            return None

    def _share(self, worker: _Worker) -> Span | None:
        """Help one who will take longer than the others."""
        now = self._client.clock()
        best, most_s = None, 0.5
        for span, other in self._busy.items():
            elapsed = now - other.began
            if not span.left or elapsed <= 0:
                continue
            rate = (span.position - span.begin) / elapsed
            if elapsed > PATIENCE_S and rate * 4 < worker.rate:
                if other.stream is not None:
                    other.stream.cut()
                return self._ranges.take_over(span)
            if span.left >= 2 * LEAST_SHARE and rate and span.left / rate > most_s:
                best, most_s = span, span.left / rate
        return self._ranges.split(best) if best is not None else None

    def _fetch(self, worker: _Worker, span: Span, stream: Stream | None, whole: bool) -> bool:
        """Fetch a span, as far as it goes; False when this worker had better end."""
        before = span.position
        with self._changed:
            self._busy[span] = worker
            worker.began = self._client.clock()
        failure: Passing | None = None
        try:
            while span.left and not self._stop.is_set():
                with stream or self._ask(worker, span) as answer:
                    self._receive(worker, span, answer)
                stream = None
        except Passing as error:
            failure = error
        finally:
            with self._changed:
                worker.stream = None
                del self._busy[span]
                taken = not span.left
                self._ranges.give_back(span)
                self._changed.notify_all()
        if failure is None:
            worker.fails = 0
            return True
        if self._stop.is_set():
            return False
        if taken:  # somebody faster goes on with it
            return not self._leave(worker, unless_last=True)
        if whole:
            raise failure  # no server that cannot send ranges could go on in the middle
        brought = span.position - before
        if brought >= min(PROGRESS_BYTES, self._ranges.size // 50 or 1):
            worker.fails = 0
            return True
        return self._try_again(worker, failure)

    def _try_again(self, worker: _Worker, failure: Passing) -> bool:
        worker.fails += 1
        if failure.wait_s > MOST_WAIT_S:
            raise failure
        too_many = failure.status in (429, 503) and not failure.wait_s  # perhaps of us
        if (too_many or worker.fails > self._client.retries) and self._leave(worker, unless_last=True):
            return False
        if worker.fails > self._client.retries:
            raise failure
        host = split_url(self._url)[0].host
        if failure.wait_s:
            self._client.leave_alone(host, failure.wait_s)
        else:
            self._client.rest(FIRST_WAIT_S * 2 ** (worker.fails - 1), host, self._stop)
        return True

    def _ask(self, worker: _Worker, span: Span) -> Stream:
        url = self._url
        headers = range_headers(span.position, span.end, self._version.validator)
        asked = self._client.clock()
        stream = self._client.stream(url, headers=headers, authorization=self._authorization_for(url), allow=ANSWERS,
                                     retries=0, stop=self._stop)  # fmt: skip
        worker.answer_s = self._client.clock() - asked
        try:
            self._examine(stream, span, url)
        except BaseException:
            stream.close()
            raise
        return stream

    def _authorization_for(self, url: str) -> str:
        same = split_url(url)[0] == split_url(self._first_url)[0]
        return self._authorization if same else ""

    def _examine(self, stream: Stream, span: Span, url: str) -> None:
        """Whether an answer is the part of the file that was asked for."""
        status = stream.status
        if status in (401, 403, 404, 410):
            if url != self._first_url:
                self._url = self._first_url  # addresses that hubs redirect to hold for a while only
                raise failures.cut(url)
            raise failures.refused(status, url, stream.headers, authorized=bool(self._authorization))
        if status == 416:
            raise ChangedError
        published = bool(self._version.sha256)
        validator = validator_of(stream.headers, published=published)
        if validator and self._version.validator and validator != self._version.validator:
            raise ChangedError
        self._url = stream.url
        if status == 206:
            begin, end, size = content_range(stream.headers)
            length = stream.left
            if begin == span.position and size in (-1, self._ranges.size) and length in (-1, end - begin):
                return
            if begin == span.position and size not in (-1, self._ranges.size):
                raise ChangedError
        self._wrong += 1
        if self._wrong >= MOST_WRONG:
            raise NoRangesError
        raise failures.other_part(url)

    def _receive(self, worker: _Worker, span: Span, stream: Stream) -> None:
        clock = self._client.clock
        view = worker.view
        with self._changed:
            worker.stream = stream
            if self._stop.is_set():
                return
        window, in_window = clock(), 0
        began, before = window, span.position
        while True:
            count = stream.readinto(view)
            start = now = clock()
            while 0 < count < BUFFER_BYTES // 2 and not stream.ended and now - start < GATHER_S:
                more = stream.readinto(view[count:])
                if not more:
                    break
                count += more
                now = clock()
            if self._stop.is_set():
                return
            if not count:
                if self._ranges.size == UNKNOWN:
                    self._end_at(span)
                elif span.left and span.position == before:
                    raise failures.cut(stream.url)
                return
            self._write(worker, view[:count], span.position)
            if self._advance(span, count):
                break
            in_window += count
            if now - window >= WINDOW_S:
                if in_window < LEAST_RATE * (now - window):
                    raise failures.slow(stream.url)
                window, in_window = now, 0
        elapsed = clock() - began
        if elapsed > 0:
            worker.rate = (span.position - before) / elapsed

    def _write(self, worker: _Worker, view: memoryview, at: int) -> None:
        while view:
            count = os.pwrite(worker.descriptor, view, at)
            view, at = view[count:], at + count

    def _advance(self, span: Span, count: int) -> bool:
        with self._changed:
            over = self._ranges.advance(span, count)
            if self._may_hash():
                self._grown.notify()
            if self._ranges.done_bytes == self._ranges.size:
                self._changed.notify_all()
        if not self._checked:
            self._early_check()
        return over

    def _end_at(self, span: Span) -> None:
        with self._changed:
            self._ranges.end_at(span.position)
            self._grown.notify_all()
            self._changed.notify_all()
        self._early_check()

    def _early_check(self) -> None:
        """Look at the first bytes as soon as they are there. Raises ValueProblem."""
        with self._changed:
            there = self._ranges.frontier
        if there and not self._checked:
            first = os.pread(self._descriptor, min(there, 64), 0)
            self._checked = self._check(first, self._ranges.size)


class _Worker:
    """What one thread that fetches has for itself."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = os.dup(descriptor)  # so that nobody closes it while this one writes
        self.view = memoryview(bytearray(BUFFER_BYTES))
        self.stream: Stream | None = None
        self.began = 0.0  # with its span
        self.rate = 0.0  # bytes a second of its last span
        self.answer_s = 0.0  # that the last answer took to begin
        self.gone = False
        self.fails = 0  # in succession, without bringing anything

    def close(self) -> None:
        with suppress(OSError):
            os.close(self.descriptor)


def range_headers(begin: int, end: int, validator: str = "") -> dict[str, str]:
    """Headers that ask for bytes ``begin`` to ``end`` (the byte after the last), of this version only."""
    headers = {"Range": f"bytes={begin}-{end - 1}"}
    if validator.startswith('"'):  # only a strong ETag is allowed there
        headers["If-Range"] = validator
    return headers


def content_range(headers: Mapping[str, str]) -> tuple[int, int, int]:
    """First byte, byte after the last, and size (-1: not told) of ``bytes 0-99/1000``; first byte -1: nonsense."""
    unit, _, rest = headers.get("content-range", "").strip().partition(" ")
    span, _, size = rest.strip().partition("/")
    begin, _, last = span.partition("-")
    numbers = [begin, last] if size == "*" else [begin, last, size]
    if unit.lower() != "bytes" or not all(each.isascii() and each.isdigit() and len(each) < 18 for each in numbers):
        return -1, -1, -1
    total = -1 if size == "*" else int(size)
    if int(begin) > int(last) or (total >= 0 and int(last) >= total):
        return -1, -1, -1
    return int(begin), int(last) + 1, total
