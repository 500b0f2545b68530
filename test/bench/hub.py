"""A fast web server for measurements: ranges of one file by sendfile, perhaps at a fixed rate for each connection.

    python test/bench/hub.py FILE [BYTES_PER_SECOND]

It prints its port, serves the file under any path, and ends when its input does.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time

STEP_S = 0.005  # a paced connection gets its share this often


def serve(link: socket.socket, descriptor: int, size: int, rate: int) -> None:
    """Answer the requests of one connection."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    waiting = b""
    try:
        while True:
            while b"\r\n\r\n" not in waiting:
                piece = link.recv(65536)
                if not piece:
                    return
                waiting += piece
            head, _, waiting = waiting.partition(b"\r\n\r\n")
            answer(link, head.decode("latin-1"), descriptor, size, rate)
    except OSError:
        return  # the other side has gone
    finally:
        link.close()


def answer(link: socket.socket, head: str, descriptor: int, size: int, rate: int) -> None:
    """Send what one request wants."""
    lines = head.split("\r\n")
    headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines[1:])}
    begin, end, status, extra = 0, size, "200 OK", ""
    wanted = headers.get("range", "")
    if wanted.startswith("bytes="):
        first, _, last = wanted[6:].partition("-")
        begin, end = int(first), min(size, int(last) + 1) if last else size
        status, extra = "206 Partial Content", f"Content-Range: bytes {begin}-{end - 1}/{size}\r\n"
    link.sendall(f'HTTP/1.1 {status}\r\nETag: "one"\r\nAccept-Ranges: bytes\r\n{extra}'
                 f"Content-Length: {end - begin}\r\n\r\n".encode())  # fmt: skip
    if head.startswith("HEAD "):
        return
    began, sent = time.perf_counter(), 0
    while sent < end - begin:
        most = min(end - begin - sent, int(rate * STEP_S) if rate else 1 << 22)
        sent += os.sendfile(link.fileno(), descriptor, begin + sent, most)
        if rate:
            time.sleep(max(0.0, began + sent / rate - time.perf_counter()))


def main() -> None:
    """Serve until the input ends."""
    descriptor = os.open(sys.argv[1], os.O_RDONLY)
    size = os.fstat(descriptor).st_size
    rate = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            link, _ = listener.accept()
            threading.Thread(target=serve, args=(link, descriptor, size, rate), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
