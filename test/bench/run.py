"""How fast the program is, as ratios to the bare thing, both measured in turn within one run.

    python test/bench/run.py [--rounds N] [--json FILE] [NAME…]

Absolute times depend on the machine and on what else it does; a ratio or a difference within one run hardly does.
Each row has a limit; one that is over it makes the exit code 1. Rows that need podman and the image are left out,
by name, where these are not there. These are measurements, not tests: nothing in the test suite depends on time.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from big_host import write_big_host
from many_models import write_big_header, write_many_models
from pulls import pulls

PROMPT = "What is ramalama-like?"
PROGRAM = Path(sys.executable).with_name("ramalama-like")
IMAGE = "quay.io/ramalama/ramalama:0.25"
SCRATCH = Path(tempfile.mkdtemp(prefix="bench-"))
BIG_HOSTS = SCRATCH / "hosts"
atexit.register(shutil.rmtree, SCRATCH)
# A variable that forbids compiled files would measure the compiler.
ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(work: Callable[[], None]) -> float:
    """Milliseconds that ``work`` takes."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def command(*argv: str) -> Callable[[], None]:
    """A program that runs to its end, without output."""
    return lambda: quiet_run(argv)


def quiet_run(argv: tuple[str, ...]) -> None:
    """Run a program; its failure is an error of the measurement."""
    done = subprocess.run(argv, env=ENVIRONMENT, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"{shlex.join(argv)} failed with {done.returncode}: {done.stderr.decode()[-500:]}")


def get(address: str | tuple[str, int], request: bytes) -> bytes:
    """One bare HTTP exchange; empty where nobody answers."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        if request is HEALTH:  # podman's place-holder on a published port never answers
            connection.settimeout(0.05)
        try:
            connection.connect(address)
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer
        except OSError:
            return b""


HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def wait_healthy(address: str | tuple[str, int], process: subprocess.Popen[bytes]) -> None:
    """Poll every 2 ms."""
    while b" 200 " not in get(address, HEALTH)[:20]:
        if process.poll() is not None:
            raise SystemExit(f"{shlex.join(map(str, process.args))} ended before it was healthy")
        time.sleep(0.002)


def dry_run(*argv: str) -> list[list[str]]:
    """The argument lists that a dry run shows."""
    done = subprocess.run((PROGRAM, "--dryrun", *argv), env=ENVIRONMENT, capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    return [shlex.split(line) for line in done.stdout.splitlines()]


def serve_to_healthy(argv: list[str], port: int) -> float:
    """Milliseconds from the start of ``argv`` until the API is healthy; it is ended afterwards."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)  # fmt: skip
    wait_healthy(("127.0.0.1", port), process)
    took = (time.perf_counter() - began) * 1000
    process.send_signal(signal.SIGTERM)
    process.wait()
    return took


def bare_run(argv: list[str], socket_path: str) -> None:
    """What ``run`` does, by hand: start the container, ask once, end it."""
    folder = Path(socket_path).parent
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(argv, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL)  # fmt: skip
    wait_healthy(socket_path, process)
    body = json.dumps({"messages": [{"role": "user", "content": PROMPT}], "temperature": 0.0}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}"
    answer = get(socket_path, f"{head}\r\nContent-Type: application/json\r\n\r\n".encode() + body)
    if b" 200 " not in answer[:20]:
        raise SystemExit(f"the bare container did not answer: {answer[:200]!r}")
    process.send_signal(signal.SIGTERM)
    process.wait()
    Path(socket_path).unlink(missing_ok=True)
    folder.rmdir()


def probe_once(root: str) -> float:
    """Milliseconds that a fresh process takes to probe a recorded machine, what it imports on the way included."""
    code = ("import sys, time; from ramalama_like.probe import probe; began = time.perf_counter(); "
            "probe(sys.argv[1]); print((time.perf_counter() - began) * 1000)")  # fmt: skip
    done = subprocess.run((sys.executable, "-c", code, root), env=ENVIRONMENT, capture_output=True, text=True,
                          check=True, stdin=subprocess.DEVNULL)  # fmt: skip
    return float(done.stdout)


class Api:
    """A server of the Python API, asked through the API and by hand."""

    def __init__(self) -> None:
        from ramalama_like import Model

        self.model = Model("demo", engine="none", port=0, threads=1).start()
        atexit.register(self.model.close)
        self.address = ("127.0.0.1", int(self.model.base_url.rpartition(":")[2].partition("/")[0]))

    def bare(self, tokens: int) -> tuple[float, float]:
        """Milliseconds until the first event and until the end of an answer, by one socket."""
        asked = {"messages": [{"role": "user", "content": PROMPT}], "stream": True, "max_tokens": tokens,
                 "temperature": 0, "ignore_eos": True, "model": "demo", "cache_prompt": True,
                 "stream_options": {"include_usage": True}}  # fmt: skip
        body = json.dumps(asked).encode()
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        began, first, answer = time.perf_counter(), 0.0, b""
        with socket.create_connection(self.address) as connection:
            connection.sendall(
                f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )
            while piece := connection.recv(65536):
                answer += piece
                if not first and b'"content":"' in answer:
                    first = (time.perf_counter() - began) * 1000
        return first, (time.perf_counter() - began) * 1000

    def ours(self, tokens: int) -> tuple[float, float]:
        """The same through ``Model.chat``."""
        began, first = time.perf_counter(), 0.0
        stream = self.model.chat(PROMPT, stream=True, max_tokens=tokens, temperature=0, cache_prompt=True,
                                 extra={"ignore_eos": True})  # fmt: skip
        for _ in stream:
            first = first or (time.perf_counter() - began) * 1000
        return first, (time.perf_counter() - began) * 1000


def has_image() -> bool:
    """Whether podman is here and holds the image."""
    try:
        return not subprocess.run(("podman", "image", "exists", IMAGE), env=ENVIRONMENT, check=False).returncode
    except OSError:
        return False


class Row:
    """One comparison: ours against the bare thing, by a factor or by a difference in milliseconds."""

    def __init__(self, name: str, bare: Callable[[], float], ours: Callable[[], float], *, factor: float = 0,
                 added_ms: float = 0, most_rounds: int = 1000) -> None:  # fmt: skip
        self.name = name
        self.bare = bare
        self.ours = ours
        self.factor = factor
        self.added_ms = added_ms
        self.most_rounds = most_rounds

    def measure(self, rounds: int) -> dict[str, object]:
        """Medians of ``rounds`` measurements, the two taking turns, after one round that warms the caches."""
        rounds = min(rounds, self.most_rounds)
        self.bare(), self.ours()
        pairs = [(self.bare(), self.ours()) for _ in range(rounds)]
        bare, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
        figure = ours / bare if self.factor else ours - bare
        limit = self.factor or self.added_ms
        return {"name": self.name, "bare_ms": round(bare, 1), "ours_ms": round(ours, 1), "rounds": rounds,
                "figure": round(figure, 2), "limit": limit, "unit": "x" if self.factor else "ms more",
                "ok": figure <= limit}  # fmt: skip


def model_rows(program: str) -> list[Row]:
    """What looks at models: many of them, and one with a long header."""
    none, many = SCRATCH / "none", write_many_models(SCRATCH / "many", 5000)
    header = write_big_header(SCRATCH / "big.gguf", tokens=150_000, tensors=400)

    def listed(store: Path) -> Callable[[], None]:
        return command(program, "--store", str(store), "list")

    return [
        Row("list of 5,000 models", lambda: timed(listed(none)), lambda: timed(listed(many)), factor=2),
        Row("inspect a long header", lambda: timed(command(program, "version")),
            lambda: timed(command(program, "inspect", str(header))), factor=2),
    ]  # fmt: skip


def rows() -> list[Row]:
    """Everything that can be measured here; what cannot is said."""
    program = str(PROGRAM)
    python = command(sys.executable, "-c", "pass")

    def started(name: str, limit: float, *argv: str) -> Row:
        return Row(name, lambda: timed(python), lambda: timed(command(program, *argv)), factor=limit)

    def probed(kind: str) -> Row:
        root = str(write_big_host(BIG_HOSTS / kind, kind))
        return Row(f"probe, 8 cards of {kind}", lambda: timed(python), lambda: probe_once(root), factor=1.05)

    found = [
        started("version", 4, "version"),
        started("help", 9, "--help"),
        started("dry run of serve", 10, "--dryrun", *(() if has_image() else ("--nocontainer",)), "serve", "demo"),
        # At most 15 ms, on a machine that starts Python in 14.
        *(probed(kind) for kind in ("amd", "nvidia")),
        *model_rows(program),
        *(Row(name, theirs, ours, factor=limit, most_rounds=5) for name, theirs, ours, limit in pulls()),
    ]
    api = Api()
    found += [
        Row("Python: first token", lambda: api.bare(2)[0], lambda: api.ours(2)[0], added_ms=5),
        Row("Python: 400 tokens", lambda: api.bare(400)[1], lambda: api.ours(400)[1], factor=1.05),
    ]
    if not has_image():
        print(f"left out, since podman or {IMAGE} is not here: serve to healthy, run", file=sys.stderr)
        return found
    quiet_run((program, "bench", "demo"))  # teaches it the engine's version
    serve = dry_run("serve", "demo", "--port", "18080", "--temp", "0")
    run = dry_run("run", "demo", "--temp", "0", PROMPT)
    socket_path = run[1][run[1].index("--url") + 1].removeprefix("unix://")
    ours_serve = [program, "serve", "demo", "--port", "18080", "--temp", "0"]
    return [
        *found,
        Row("serve to healthy", lambda: serve_to_healthy(serve[0], 18080), lambda: serve_to_healthy(ours_serve, 18080),
            added_ms=60),
        Row("run with a prompt", lambda: timed(lambda: bare_run(run[0], socket_path)),
            lambda: timed(command(program, "run", "demo", "--temp", "0", PROMPT)), added_ms=150),
    ]  # fmt: skip


def main() -> int:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "last.json")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if not PROGRAM.exists():
        raise SystemExit(f"{PROGRAM} is not installed: make bench does that")
    results = []
    print(f"{'':24}{'bare ms':>10}{'ours ms':>10}{'':>4}figure and limit")
    for row in rows():
        if asked.names and row.name not in asked.names:
            continue
        result = row.measure(asked.rounds)
        results.append(result)
        print(f"{result['name']:24}{result['bare_ms']:>10}{result['ours_ms']:>10}{'':>4}"
              f"{result['figure']} of at most {result['limit']} {result['unit']}{'' if result['ok'] else '  OVER'}",
              flush=True)  # fmt: skip
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
    return 0 if all(result["ok"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
