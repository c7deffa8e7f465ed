from . import torchvision_operators  # before anything imports torchvision

__all__ = ["torchvision_operators"]
