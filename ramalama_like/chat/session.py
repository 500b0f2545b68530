"""A conversation: prompts in, answers out, in a plain loop. It prints through what it is given."""

from __future__ import annotations

from ramalama_like.chat.client import Address, ServerSaid, stream_chat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HELP = "/clear forgets, /bye or Ctrl-D leaves, Ctrl-C stops, \\ continues a line."
YELLOW, PLAIN = "\x1b[33m", "\x1b[0m"


class Session:
    """The history of one conversation with one server."""

    def __init__(
        self,
        address: Address,
        *,
        write: Callable[[str], None],
        say: Callable[[str], None],
        model: str = "",
        temperature: float | None = None,
        max_tokens: int = 0,
        api_key: str = "",
        colored: bool = False,
    ) -> None:
        self.address = address
        self.write = write
        self.say = say
        self.model = model
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.api_key = api_key
        self.colored = colored
        self.messages: list[dict[str, str]] = []

    def ask(self, prompt: str) -> None:
        """Put one prompt and print the answer as it comes. An answer that was stopped or failed is forgotten."""
        self.messages.append({"role": "user", "content": prompt})
        pieces: list[str] = []
        try:
            for piece in stream_chat(self.address, self.messages, model=self.model, temperature=self.temperature,
                                     max_tokens=self.max_tokens, api_key=self.api_key):  # fmt: skip
                if self.colored and not pieces:
                    self.write(YELLOW)
                pieces.append(piece)
                self.write(printable(piece))
        except BaseException:
            self.messages.pop()
            raise
        finally:
            if pieces:
                self.write((PLAIN if self.colored else "") + ("" if pieces[-1].endswith("\n") else "\n"))
        if not pieces:
            self.messages.pop()
            raise ServerSaid("the server gave an empty answer", "ask again, or in other words")
        self.messages.append({"role": "assistant", "content": "".join(pieces)})

    def loop(self, read_line: Callable[[str], str], prefix: str) -> None:
        """Ask until the user leaves. ``read_line`` shows a prompt and gives a line, or raises EOFError."""
        self.say(HELP)
        while True:
            try:
                prompt = _read_prompt(read_line, prefix)
            except EOFError:
                self.say("")
                return
            except KeyboardInterrupt:
                self.say("\n(Ctrl-D or /bye leaves)")
                continue
            word = prompt.strip().lower()
            if word in ("/bye", "exit"):
                return
            if word in ("/help", "help", "?"):
                self.say(HELP)
            elif word == "/clear":
                self.messages.clear()
                self.say("The conversation is forgotten.")
            elif word.startswith("/") and " " not in word and "/" not in word[1:]:
                self.say(f"{word} is no command.\n{HELP}")
            elif word:
                try:
                    self.ask(prompt)
                except KeyboardInterrupt:
                    self.say("(stopped)")


def _read_prompt(read_line: Callable[[str], str], prefix: str) -> str:
    line = read_line(prefix)
    lines = []
    while line.endswith("\\"):
        lines.append(line[:-1])
        line = read_line("  ")
    return "\n".join([*lines, line])


def printable(text: str) -> str:
    """A model's text without control characters: no model may move the cursor or rename the terminal."""
    return "".join(
        "\ufffd" if "\ud800" <= letter <= "\udfff" else letter
        for letter in text
        if letter in "\n\t" or not (ord(letter) < 32 or 127 <= ord(letter) < 160)
    )
