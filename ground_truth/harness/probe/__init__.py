"""Direct questions to a CUDA card, below PyTorch: one module per subject."""
