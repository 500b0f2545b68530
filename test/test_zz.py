import os, time
from harness import *
def test_x(fake_engine, tiny_gguf):
    for w in ENGINES:
        r = fake_engine(w)
        t=time.time()
        d = run_cli("run", str(tiny_gguf), "--dryrun", "hi there")
        print(d, time.time()-t)
        t=time.time()
        print(r.shell(d.out), time.time()-t)
        t=time.time()
        print(run_cli("run", str(tiny_gguf), "hi there"), time.time()-t)
        print(r.take())
        t=time.time()
        print(run_cli("bench", str(tiny_gguf)), time.time()-t)
        print(r.take())
