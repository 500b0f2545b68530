"""``run``: start a model and talk to it, in a container that is gone afterwards."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.chat.client import ServerGone, preload
from ramalama_like.errors import AppError, ValueProblem
from ramalama_like.execute import RunningServer, with_free_name
from ramalama_like.launch import prepare
from ramalama_like.log_sinks import show_log, show_progress_of_pull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.options import Settings
    from ramalama_like.request import Request


class SessionOver(AppError):
    """The time that --keepalive gave is over: a good end."""

    exit_code = 0


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError."""
    return with_free_name(request, _run_once)


def _run_once(request: Request) -> int:
    decided = prepare(request)
    if decided is None:
        return 0
    settings = decided.loaded.settings
    _check_wishes(settings)
    try:
        log_sink = show_log if settings.debug.value else show_progress_of_pull
        with RunningServer(decided.plan, log_sink=log_sink) as server:
            # These are loaded while the engine starts, not afterwards.
            preload()
            import ramalama_like.proof  # noqa: F401

            server.wait_ready()
            server.prove(settings.require_gpu)
            if settings.keepalive.value:
                _limit_session(settings.keepalive.value)
            from ramalama_like.main import run_line

            try:
                return run_line(decided.plan.chat)
            except ServerGone:
                server.check_alive()  # if it died, that is the reason
                raise
    except SessionOver as over:
        ui.say(over.message)
        return 0


def _check_wishes(asked: Settings) -> None:
    """What only the conversation needs is looked at before a server is started for it. Raises ValueProblem."""
    if asked.answer_json.value and asked.interactive.value:
        raise ValueProblem("--json is for one answer, not for a conversation", "leave --interactive out")
    if not (asked.schema.value or asked.grammar.value or asked.files.value):
        return
    from ramalama_like.chat.wishes import attachments_of, parameters_of
    from ramalama_like.checks import with_home
    from ramalama_like.settings import home_dir

    parameters_of(asked)
    attachments_of(asked, lambda path: with_home(path, home_dir()))


def _limit_session(duration: str) -> None:
    import signal

    from ramalama_like.checks import duration_seconds

    def end(*_: object) -> None:
        raise SessionOver(f"The session ended after {duration}, as --keepalive asked")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, duration_seconds(duration))
