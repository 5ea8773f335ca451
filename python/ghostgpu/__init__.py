"""GhostGPU: run a PyTorch training on a GPU that isn't there.

This package is a thin shell around the `ghostgpu` command. Importing it never imports torch, and
the code that works inside a rehearsed script (`ghostgpu.agent`) is loaded only there.
"""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
