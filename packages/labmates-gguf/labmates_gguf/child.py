"""Serves one GGUF file on loopback until the process that started it ends: FILE NAME CONTEXT SLOTS THREADS PARENT.

The process runs this file alone, without the package.
"""

import os
import sys
import time


def main() -> None:
    """Load the file, print the address of the server, and wait for the end of the parent."""
    import xllamacpp

    path, name, *rest = sys.argv[1:]
    context, slots, threads, parent = map(int, rest)
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = path, {name}
    params.port = 0  # any free one
    params.n_ctx, params.n_parallel = context * slots, slots
    params.cache_ram_mib = 2048  # prompts of other conversations, which give way to one another in a slot
    params.fit_params = False  # or it loads the file twice, to change what is set here
    params.use_jinja = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:  # its reasons are in the log, which is written to its end at an ordinary exit only
        sys.exit(1)
    sys.stdout.write(f"listening {server.listening_address}\n")
    sys.stdout.flush()
    while os.getppid() == parent:  # also after a kill, which leaves the parent no time to end its children
        time.sleep(0.5)
    os._exit(0)


if __name__ == "__main__":
    main()
