"""Runs a notebook's code cells: `python -c THIS NOTEBOOK_FILE NOTEBOOK [ARGUMENTS]`.

The cells run one after the other in `__main__`, in the notebook's folder, as Jupyter runs them.
Lines that are IPython's and not Python's (`%matplotlib inline`, `!pip install`) are left out. A
traceback names the cell and the line in it.
"""


def _run() -> None:
    import json
    import linecache
    import os
    import re
    import sys
    import traceback

    # Cells of these magics are Python all the same; cells of others are another language or a file.
    harmless_magics = ("%%time", "%%timeit", "%%capture", "%%prun", "%%python", "%%python3")
    assigned_magic = re.compile(r"(\s*[\w.\[\], ]+?)\s*=\s*[%!]")
    left_out = []

    def looks_like_ipython(line):
        code = line.strip()
        is_magic = code[:1] in ("%", "!", "?") or code.endswith("?")
        return is_magic or assigned_magic.match(line) is not None

    def without_magics(source, number):
        """The cell's text, in which every line stands where it stood."""
        lines = source.split("\n")
        first = next((at for at, line in enumerate(lines) if line.strip()), 0)
        if lines[first].startswith("%%"):
            left_out.append((number, lines[first]))
            is_python = lines[first].split()[0] in harmless_magics
            lines = [""] * (first + 1) + (lines[first + 1 :] if is_python else [])
        while True:
            text = "\n".join(lines) + "\n"
            try:
                compile(text, "<cell>", "exec", dont_inherit=True)
                return text
            except SyntaxError as error:
                at = (error.lineno or 0) - 1
                if not (0 <= at < len(lines) and looks_like_ipython(lines[at])):
                    return text  # the error is the notebook's own, and will be told with its cell
            left_out.append((number, lines[at].strip()))
            is_continued = lines[at].rstrip().endswith("\\")
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            target = assigned_magic.match(lines[at])
            lines[at] = f"{target[1]} = []" if target else indent + "pass"
            # A shell command may go on in the next lines.
            while is_continued and at + 1 < len(lines):
                at += 1
                is_continued = lines[at].rstrip().endswith("\\")
                lines[at] = ""

    def show(kind, error, trace):
        """As Python does, with the lines of cells, which are in no file, and without our own."""
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        traceback.print_exception(kind, error, trace)

    notebook_file, notebook = sys.argv[1], sys.argv[2]
    path = os.path.abspath(notebook)
    try:
        with open(notebook_file, encoding="utf-8-sig") as file:
            document = json.load(file)
        found = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
        cells = [
            (number, "".join(cell.get("source", cell.get("input", ""))))
            for number, cell in enumerate(found, start=1)
            if cell["cell_type"] == "code"
        ]
        metadata = document.get("metadata") or {}
        language = (metadata.get("kernelspec") or {}).get("language", "python")
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        sys.exit(f"ghostgpu: {notebook} is not a Jupyter notebook")
    if str(language).lower() not in ("python", "python3"):
        sys.exit(f"ghostgpu: {notebook} is a notebook for {language}, not for Python")
    texts = [(number, without_magics(source, number)) for number, source in cells]
    if left_out:
        number, line = left_out[0]
        count = f"{len(left_out)} lines" if len(left_out) > 1 else "a line"
        sys.stderr.write(
            f"ghostgpu: left out {count} of {os.path.basename(path)} that only IPython knows "
            f"(cell {number}: `{line}`)\n"
        )
    del sys.argv[:2]
    folder = os.path.dirname(os.path.realpath(path))
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    os.chdir(folder)
    names = sys.modules["__main__"].__dict__
    names.pop("_run", None)
    names.update(__doc__=None, __spec__=None)
    names.setdefault("display", print)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = show
    for number, text in texts:
        name = f"{path} (cell {number})"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec", dont_inherit=True), names)


_run()
