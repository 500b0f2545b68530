"""One download into a store, for measurements: python test/bench/pull.py URL STORE [SHA256]. Prints its peak in MB."""

import sys

from ramalama_like.listing import RemoteFile
from ramalama_like.models.client import Client
from ramalama_like.models.download import fetch
from ramalama_like.models.store import Store

with Client() as client:
    sha256 = sys.argv[3] if len(sys.argv) > 3 else ""
    fetch(client, RemoteFile("model.gguf", sys.argv[1], sha256=sha256), Store(sys.argv[2]), verify_gguf=False)
# Not getrusage: its peak is also that of the process which this one was forked from.
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM:")))
