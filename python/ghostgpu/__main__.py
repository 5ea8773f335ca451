"""Lets `python -m ghostgpu` do what the `ghostgpu` command does."""

from __future__ import annotations

from ghostgpu._launcher import main

if __name__ == "__main__":
    main()
