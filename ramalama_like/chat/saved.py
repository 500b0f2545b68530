"""Conversations in files: JSON with the messages as the API has them, so that other programs can read them too."""

from __future__ import annotations

import os

from ramalama_like.errors import AppError, ValueProblem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.chat.session import Session

VERSION = 1
LARGEST = 256 << 20  # bytes


def save_conversation(path: str, session: Session) -> None:
    """Write the conversation; nobody else may read it. Raises AppError where the file cannot be written."""
    import json

    plain = {"version": VERSION, "model": session.model, "system": session.system, "messages": session.messages}
    text = json.dumps(plain, ensure_ascii=False, indent=1)
    target = os.path.realpath(path)
    temporary = f"{target}.{os.getpid()}"
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            raise ValueProblem(f"{path}: is there already, and no file", "choose another name")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(f"{text}\n")
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "is no path"
        raise AppError(f"{path}: {why}", "choose another name", exit_code=5) from None


def load_conversation(path: str, session: Session) -> None:
    """Go on with the conversation in a file; what was said so far is forgotten. Raises ValueProblem, with nothing
    changed, where the file holds none."""
    import json

    try:
        # Without blocking, since a pipe would otherwise wait for somebody to write into it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            if not os.path.isfile(file.fileno()):
                raise ValueProblem(f"{path}: not a file")
            plain = json.loads(file.read(LARGEST))
    except OSError as error:
        raise ValueProblem(f"{path}: {error.strerror}", "check the path") from None
    except (ValueError, RecursionError):
        plain = None
    messages = plain.get("messages") if isinstance(plain, dict) else None
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise ValueProblem(f"{path}: holds no conversation", "/save makes such files")
    system = plain.get("system")
    session.clear()
    session.messages = messages
    session.system = system if isinstance(system, str) else ""


def _is_message(message: object) -> bool:
    return (isinstance(message, dict) and message.get("role") in ("user", "assistant", "system", "tool")
            and isinstance(message.get("content"), str | list | None))  # fmt: skip
