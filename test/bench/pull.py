"""One download into a store, for measurements: python test/bench/pull.py URL STORE [SHA256]. Prints the peak in MB."""

import resource
import sys

from ramalama_like.listing import RemoteFile
from ramalama_like.models.client import Client
from ramalama_like.models.download import fetch
from ramalama_like.models.store import Store

with Client() as client:
    sha256 = sys.argv[3] if len(sys.argv) > 3 else ""
    fetch(client, RemoteFile("model.gguf", sys.argv[1], sha256=sha256), Store(sys.argv[2]), verify_gguf=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
