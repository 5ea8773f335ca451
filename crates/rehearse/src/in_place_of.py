"""Runs a text in place of a script: `python -c THIS TEXT_FILE SCRIPT [ARGUMENTS]`.

The text sees what the script would have seen: its own path as `__file__`, its folder first on
`sys.path`, its arguments, the current folder, and `__name__ == "__main__"`.
"""


def _run() -> None:
    import importlib.machinery
    import linecache
    import os
    import sys

    text_file, script = sys.argv[1], sys.argv[2]
    with open(text_file, "rb") as file:
        text = file.read()
    path = os.path.abspath(script)
    del sys.argv[:2]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    # What a traceback shows is the line that ran, not the one in the file.
    lines = text.decode("utf-8-sig", "replace").splitlines(keepends=True)
    linecache.cache[path] = (len(text), None, lines, path)
    names = sys.modules["__main__"].__dict__
    names.pop("_run", None)
    names.update(
        __doc__=None,
        __file__=path,
        __cached__=None,
        __spec__=None,
        __loader__=importlib.machinery.SourceFileLoader("__main__", path),
    )
    exec(compile(text, path, "exec", dont_inherit=True), names)


_run()
