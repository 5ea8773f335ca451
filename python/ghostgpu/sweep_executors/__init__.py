"""Runs the command lines of a sweep with an engine that people have, and tells how each ended.

`ghostgpu sweep` starts `python -m` this package. One task a line comes in on standard input, one
result a line goes out on standard output, in whatever order they end (`protocol.py`). Each engine
is one file. What an engine is given is `subprocess.run` itself, so that its workers need nothing of
ours but the `ghostgpu` command, at the same path and with the same files.
"""
