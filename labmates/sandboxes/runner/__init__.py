"""Inside the sandbox: set the limits, load the data set, and fork the session's Jupyter kernels.

Stands alone: this folder is all of ours that a sandbox can see. Used as ``python FOLDER/__main__.py SETTINGS``, where
SETTINGS is a JSON file (see `nursery.main`). What is limited here is limited out of politeness, so that a clumsy cell
does not cost its session; against hostile code the limits of the other side of the sockets count.

The process that starts is no kernel: it imports what every kernel needs, and then takes orders on its control socket.
Each kernel is a fork of it, so that a kernel that was lost is replaced in a fraction of a second. While no kernel was
asked for, it imports what agents' code is most likely to need, which takes seconds that nobody waits for.

Orders and answers are JSON objects, one a packet:

- ``{"do": "load"}``: read the data set. Answer: ``{"is": "loaded", "text": TEXT}``; TEXT says what is wrong with it.
- ``{"do": "start", "number": N, "key": KEY}`` with the listening sockets of the channels: end all other processes and
  fork kernel N. Answered when it has ended: ``{"is": "exited", "number": N, "code": C, "oom": BOOL, "text": TEXT}``,
  where TEXT says why it could not start.
- ``{"do": "spent"}``: ``{"is": "spent", "seconds": S}``, the processor time of all kernels and their processes so far.
- ``{"do": "sweep", "above": N}``: end all processes but the kernel if there are more than N. Answer: ``{"is": "swept",
  "ended": BOOL}``.
- ``{"do": "list"}``: ``{"is": "listed", "files": [[NAME, SIZE, VERSION], ...], "left_out": N}``, the files in ``out/``.
- ``{"do": "open", "name": NAME}``: ``{"is": "opened", "found": BOOL}``; the content of a found file goes to a socket
  beside the control socket.
"""
