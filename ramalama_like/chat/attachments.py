"""Files that go with a question: texts become part of it, images go along as data (OpenAI's ``image_url``)."""

from __future__ import annotations

import os
from stat import S_ISREG

from ramalama_like.errors import ValueProblem
from ramalama_like.value import value

LARGEST_TEXT = 4 << 20  # bytes; more is more than any context holds
LARGEST_IMAGE = 64 << 20
# What a file begins with -> its media type. The ending of a name says less.
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"),
           (b"GIF89a", "image/gif"), (b"BM", "image/bmp"))  # fmt: skip


@value
class Attachment:
    """A file that was read: a text, or an image as the address that the API takes."""

    name: str
    text: str = ""
    image_url: str = ""


def read_attachment(path: str, *, image: bool = False) -> Attachment:
    """Read a file. Raises ValueProblem where it cannot be read, or is neither a text nor an image (``image``: the
    latter is demanded)."""
    data = _read(path)
    name = os.path.basename(path)
    if image or _image_type(data):
        return Attachment(name, image_url=image_url(data, path))
    if len(data) > LARGEST_TEXT:
        raise ValueProblem(f"{path}: is larger than {LARGEST_TEXT >> 20} MiB", "give the part of it that matters")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueProblem(f"{path}: is neither a text in UTF-8 nor an image", "convert it first")
    if not text.strip():
        raise ValueProblem(f"{path}: is empty")
    return Attachment(name, text)


def image_url(data: bytes, name: str) -> str:
    """An image as the address that the API takes. Raises ValueProblem, naming it, where it is none."""
    kind = _image_type(data)
    if not kind:
        raise ValueProblem(f"{name}: is no image of a kind that is known", "give a PNG, JPEG, GIF, WebP or BMP file")
    from base64 import b64encode

    return f"data:{kind};base64,{b64encode(data).decode()}"


def with_attachments(prompt: str, attachments: tuple[Attachment, ...]) -> str | list[dict[str, object]]:
    """The content of a message: the texts in front of the question, the images beside it."""
    texts = [f"File {each.name}:\n{_fenced(each.text)}\n\n" for each in attachments if each.text]
    text = "".join([*texts, prompt])
    images = [each.image_url for each in attachments if each.image_url]
    if not images:
        return text
    parts: list[dict[str, object]] = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return [*parts, {"type": "text", "text": text}]


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _read(path: str) -> bytes:
    try:
        # Without blocking, since a pipe would otherwise wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ValueProblem(f"{path}: {error.strerror}", "check the path") from None
    except ValueError:
        raise ValueProblem(f"{path}: is no path", "check the path") from None
    try:
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            raise ValueProblem(f"{path}: not a file", "give a text or an image")
        if status.st_size > LARGEST_IMAGE:
            raise ValueProblem(f"{path}: is larger than {LARGEST_IMAGE >> 20} MiB", "give a smaller file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_IMAGE + 1)
    except OSError as error:
        raise ValueProblem(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)


def _image_type(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _IMAGES if data.startswith(beginning)), "")
