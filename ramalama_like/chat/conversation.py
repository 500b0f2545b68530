"""The loop between a person and a session: read a question or a command, answer, never lose what was typed."""

from __future__ import annotations

from ramalama_like.chat.client import ServerGone, ServerSaid, is_healthy
from ramalama_like.chat.commands import ALIASES, COMMANDS, Leave, run_command
from ramalama_like.errors import AppError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ramalama_like.chat.display import TerminalDisplay
    from ramalama_like.chat.session import Answer, Session

HELLO = "/help tells what else can be said, /bye or Ctrl-D leaves."
QUOTES = '"""'
TOO_LONG = "exceed_context_size"  # in the type or text of llama-server's error


class Conversation:
    """A person and a session. ``read_line`` shows a prompt and gives a line, or raises EOFError."""

    def __init__(self, session: Session, display: TerminalDisplay, *, say: Callable[[str], None],
                 read_line: Callable[[str], str], prefix: str, expand: Callable[[str], str],
                 tell_error: Callable[[str, str], None]) -> None:  # fmt: skip
        self.session = session
        self.display = display
        self.say = say
        self.read_line = read_line
        self.prefix = prefix
        self.tell_error = tell_error
        self.expand = expand  # a path as people type it -> as the system knows it

    def loop(self, first: str = "") -> None:
        """Answer until the person leaves. Raises ServerGone where the server has gone: no answer can come any more."""
        self.say(HELLO)
        while True:
            try:
                prompt, first = first or self._read_prompt(), ""
            except EOFError:
                self.say("")
                return
            except KeyboardInterrupt:
                self.say("\n(Ctrl-D or /bye leaves)")
                continue
            try:
                self._take(prompt)
            except Leave:
                return
            except KeyboardInterrupt:
                self.say("(stopped)")
            except AppError as error:
                if isinstance(error, ServerGone) and not is_healthy(self.session.address):
                    raise
                self.tell_error(error.message, error.hint)

    def _take(self, prompt: str) -> None:
        word = prompt.strip().lower()
        name = ALIASES.get(word.removeprefix("/"), word.removeprefix("/"))
        if word in ("exit", "help", "?") or (word.startswith("/") and name != word.removeprefix("/")):
            prompt = f"/{name}"
        if _is_command(prompt):
            run_command(self, prompt)
        elif word:
            if self.session.needs_summary():
                self._summarize()
            self.answer(lambda display: self.session.ask(prompt, display))

    def answer(self, ask: Callable[[TerminalDisplay], Answer | None]) -> Answer | None:
        """Show an answer. What no longer fits into the context is offered to be asked with less history."""
        while True:
            try:
                return ask(self.display)
            except ServerSaid as error:
                if TOO_LONG not in error.kind or not self._forget():
                    raise

    def set_thoughts(self, how: str) -> None:
        """How thoughts are shown from now on: show or fold."""
        self.display.thoughts = how

    def _forget(self) -> bool:
        """Offer to forget the older half of the conversation; whether it was done."""
        if len(self.session.messages) < 2:
            return False
        self.say("The conversation has grown longer than the model's context.")
        try:
            reply = self.read_line("Forget its older half and ask again? [Y/n] ").strip().lower()
        except EOFError:
            return False
        if reply not in ("", "y", "yes"):
            return False
        self.say(f"Forgot {self.session.forget_oldest()} messages.")
        return True

    def _summarize(self) -> None:
        self.say("(summarizing the conversation so far)")
        try:
            self.session.summarize()
        except ServerSaid as error:
            self.say(f"(no summary: {error.message})")

    def _read_prompt(self) -> str:
        line = self.read_line(self.prefix)
        if line.strip().startswith(QUOTES):
            return self._read_quoted(line)
        lines = []
        while line.endswith("\\"):
            lines.append(line[:-1])
            line = self.read_line("  ")
        return _typed("\n".join([*lines, line]))

    def _read_quoted(self, line: str) -> str:
        """Everything between two lines of three quotes, these left out."""
        text = line.strip()[len(QUOTES) :]
        lines = [text] if text else []
        while not (lines and lines[-1].rstrip().endswith(QUOTES)):
            lines.append(self.read_line("  "))
        lines[-1] = lines[-1].rstrip()[: -len(QUOTES)]
        return _typed("\n".join(lines).strip("\n"))


def _is_command(prompt: str) -> bool:
    """A path at the beginning of a question is no command: /etc/passwd is none, /hlep is meant as one."""
    if not prompt.startswith("/"):
        return False
    word = prompt.split(maxsplit=1)[0][1:]
    return word.lower() in COMMANDS or (word.isalpha() and "\n" not in prompt and len(prompt.split()) == 1)


def _typed(text: str) -> str:
    # What was pasted may hold anything; the server gets text, lines and tabs.
    return "".join(letter for letter in text if letter in "\n\t" or letter.isprintable())
