"""The DataLoader drop-in."""

from torch.utils.data import DataLoader as DataLoader
