"""The training script behind `ghostgpu estimate`: builds a named model and trains it.

It is a plain training loop, rehearsed by the same engine as any other script: nothing here knows
how much memory anything takes. It runs in the user's Python, with the user's torch, transformers,
torchvision or timm.
"""
