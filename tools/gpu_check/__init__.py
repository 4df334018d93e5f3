"""What tools/gpu-check is made of: one subject a file."""
