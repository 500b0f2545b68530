"""What people can say to a conversation beside asking: ``/help`` lists it. One function for each word."""

from __future__ import annotations

from ramalama_like.chat.attachments import read_attachment
from ramalama_like.chat.display import FOLD, SHOW, printable
from ramalama_like.errors import ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ramalama_like.chat.conversation import Conversation

MORE_LINES = 'A line that ends with \\ goes on, and so does everything between two lines of """.'
KEYS = "Ctrl-C stops the answer, Ctrl-D leaves, Ctrl-R searches what was asked before."


class Leave(Exception):
    """The user wants to go."""


# What /set takes: the name in the API, and how its text is read.
_NUMBERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "temperature": ("temperature", float), "temp": ("temperature", float), "top_p": ("top_p", float),
    "top_k": ("top_k", int), "min_p": ("min_p", float), "seed": ("seed", int), "max_tokens": ("max_tokens", int),
    "repeat_penalty": ("repeat_penalty", float), "presence_penalty": ("presence_penalty", float),
    "frequency_penalty": ("frequency_penalty", float),
}  # fmt: skip


def run_command(talk: Conversation, line: str) -> None:
    """Do what a line that begins with a slash says. Raises AppError, and Leave for /bye."""
    word, _, rest = line.strip().partition(" ")
    name = word[1:].lower()
    entry = COMMANDS.get(name)
    if entry is None:
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, 1, 0.6)
        raise ValueProblem(f"{word} is no command", f"did you mean /{near[0]}?" if near else "/help lists them")
    entry[0](talk, rest.strip())


def help_text() -> str:
    """Every command with what it does, and the keys."""
    width = max(len(usage) for _, usage, _ in COMMANDS.values())
    lines = [f"{usage:<{width}}  {told}" for _, usage, told in COMMANDS.values()]
    return "\n".join([*lines, MORE_LINES, KEYS])


def _help(talk: Conversation, _: str) -> None:
    talk.say(help_text())


def _bye(_: Conversation, __: str) -> None:
    raise Leave


def _clear(talk: Conversation, _: str) -> None:
    talk.session.clear()
    talk.say("The conversation is forgotten.")


def _retry(talk: Conversation, _: str) -> None:
    if talk.answer(talk.session.again) is None:
        talk.say("Nothing was asked yet.")


def _system(talk: Conversation, text: str) -> None:
    session = talk.session
    if text:
        session.system = "" if text in ("-", '""') else text
    talk.say(f"System prompt: {session.system}" if session.system else "There is no system prompt.")


def _set(talk: Conversation, text: str) -> None:
    session = talk.session
    name, _, number = text.partition(" ")
    if not name:
        shown = [f"{key} = {each}" for key, each in session.parameters.items() if key not in _HIDDEN]
        talk.say("\n".join(shown) or f"Nothing is set. /set takes {', '.join(_NUMBERS)}, stop.")
        return
    if name == "stop":
        session.parameters["stop"] = [number.strip().encode().decode("unicode_escape", "replace")]
    elif name not in _NUMBERS:
        raise ValueProblem(f"/set {name}: is no setting", f"there are {', '.join(_NUMBERS)}, stop")
    elif number.strip() in ("", "-"):
        session.parameters.pop(_NUMBERS[name][0], None)
        talk.say(f"{_NUMBERS[name][0]} is the server's own again.")
        return
    else:
        key, kind = _NUMBERS[name]
        session.parameters[key] = _number(name, number.strip(), kind)
    key = _NUMBERS[name][0] if name in _NUMBERS else name
    talk.say(f"{key} = {session.parameters[key]}")


_HIDDEN = ("response_format", "grammar", "tools")


def _number(name: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        number = kind(text)
        fine = abs(number) < 1e18  # not NaN either
    except (ValueError, OverflowError):
        fine = False
    if not fine:
        raise ValueProblem(f"/set {name}: {text} is no {'whole ' if kind is int else ''}number")
    return number


def _model(talk: Conversation, name: str) -> None:
    from ramalama_like.chat.client import list_models

    session = talk.session
    if name:
        session.model = name
        talk.say(f"Asking {name} from now on.")
        return
    names = [printable(each).replace("\n", " ") for each in list_models(session.address, session.api_key)]
    talk.say("\n".join(f"{'*' if each == session.model else ' '} {each}" for each in names) or "The server tells none.")


def _file(talk: Conversation, path: str) -> None:
    _attach(talk, path, image=False)


def _image(talk: Conversation, path: str) -> None:
    _attach(talk, path, image=True)


def _attach(talk: Conversation, path: str, *, image: bool) -> None:
    if not path:
        talk.session.waiting = ()
        talk.say("No file goes with the next question.")
        return
    found = read_attachment(talk.expand(_unquoted(path)), image=image)
    talk.session.waiting = (*talk.session.waiting, found)
    talk.say(f"{found.name} goes with the next question.")


def _unquoted(path: str) -> str:
    # Terminals put quotes around what is dropped on them.
    return path[1:-1] if len(path) > 1 and path[0] == path[-1] and path[0] in "'\"" else path


def _save(talk: Conversation, path: str) -> None:
    from ramalama_like.chat.saved import save_conversation

    if not path:
        raise ValueProblem("/save needs the name of a file", "write /save FILE")
    save_conversation(talk.expand(_unquoted(path)), talk.session)
    talk.say(f"Saved {len(talk.session.messages)} messages.")


def _load(talk: Conversation, path: str) -> None:
    from ramalama_like.chat.saved import load_conversation

    if not path:
        raise ValueProblem("/load needs the name of a file", "write /load FILE")
    load_conversation(talk.expand(_unquoted(path)), talk.session)
    talk.say(f"Loaded {len(talk.session.messages)} messages.")


def _stats(talk: Conversation, _: str) -> None:
    talk.say(stats_text(talk))


def stats_text(talk: Conversation) -> str:
    """How long the last answer was and how fast it came."""
    answer = talk.session.last
    if answer is None:
        return "Nothing was answered yet."
    ending, timings = answer.ending, answer.ending.timings
    lines = []
    for title, count, speed in (("question", ending.prompt_tokens, timings.get("prompt_per_second")),
                                ("answer", ending.tokens, timings.get("predicted_per_second"))):  # fmt: skip
        if count is not None:
            fast = f", {speed:.1f} tokens a second" if _is_sane(speed) else ""
            lines.append(f"{title}: {count} tokens{fast}")
    if answer.first_s is not None:
        lines.append(f"first piece after {answer.first_s:.2f} s, all of it after {answer.seconds:.2f} s")
    lines.append(f"{len(talk.session.messages)} messages in the history")
    return "\n".join(lines)


def _is_sane(speed: object) -> bool:
    return isinstance(speed, int | float) and 0 <= speed < 1e12  # what a server says may be anything


def _think(talk: Conversation, word: str) -> None:
    if word in ("show", "on"):
        talk.set_thoughts(SHOW)
    elif word in ("fold", "hide", "off"):
        talk.set_thoughts(FOLD)
    elif word:
        raise ValueProblem(f"/think {word}: is neither show nor fold")
    else:
        thoughts = talk.session.last.reasoning.strip() if talk.session.last else ""
        talk.say(printable(thoughts) if thoughts else "The last answer came without thoughts.")
        return
    talk.say("Thoughts are shown." if word in ("show", "on") else "Thoughts are folded; /think shows the last ones.")


COMMANDS: dict[str, tuple[Callable[[Conversation, str], None], str, str]] = {
    "help": (_help, "/help", "this list"),
    "clear": (_clear, "/clear", "forget the conversation"),
    "retry": (_retry, "/retry", "answer the last question again"),
    "file": (_file, "/file PATH", "send a text or image with the next question"),
    "image": (_image, "/image PATH", "send an image with the next question"),
    "system": (_system, "/system TEXT", "set the system prompt (- for none)"),
    "set": (_set, "/set NAME VALUE", "set temperature, top_p, seed, max_tokens …"),
    "model": (_model, "/model [NAME]", "list the server's models, or change to one"),
    "think": (_think, "/think [show|fold]", "the last thoughts, or how they are shown"),
    "stats": (_stats, "/stats", "tokens and speed of the last answer"),
    "save": (_save, "/save FILE", "keep the conversation in a file"),
    "load": (_load, "/load FILE", "go on with one that was kept"),
    "bye": (_bye, "/bye", "leave"),
}
ALIASES = {"?": "help", "exit": "bye", "quit": "bye"}
