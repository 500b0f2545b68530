"""Signals become exceptions, so that whatever was started is cleaned up."""

from __future__ import annotations

from ramalama_like.errors import Interrupted


class SignalGuard:
    """What SIGTERM, SIGHUP and Ctrl-C do while something is running that must be cleaned up."""

    def __init__(self) -> None:
        self._before: dict[int, object] = {}

    def catch(self) -> None:
        """SIGTERM and a closed terminal become exceptions, as Ctrl-C is one already."""
        import signal

        def stop(number: int, _: object) -> None:
            raise Interrupted(f"stopped by {signal.Signals(number).name}", exit_code=128 + number)

        self._set(signal.SIGTERM, stop)
        self._set(signal.SIGHUP, stop)

    def ignore(self) -> None:
        """While cleaning up, another signal must not stop that. It takes a bounded time."""
        import signal

        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGALRM):
            self._set(number, signal.SIG_IGN)

    def restore(self) -> None:
        """As it was before."""
        import signal

        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._before.clear()

    def _set(self, number: int, handler: object) -> None:
        import signal

        # A `nohup` that was wished for is kept; handlers that did not come from Python read as None.
        before = signal.getsignal(number)
        if number == signal.SIGHUP and before == signal.SIG_IGN:
            return
        signal.signal(number, handler)  # type: ignore[arg-type]
        self._before.setdefault(number, signal.SIG_DFL if before is None else before)


class NoGuard(SignalGuard):
    """For a program that uses this one as a library: its signals are its own affair."""

    def _set(self, number: int, handler: object) -> None:
        """Leave the signal as it is."""
