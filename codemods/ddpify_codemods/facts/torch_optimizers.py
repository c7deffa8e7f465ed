"""The optimizers of torch.optim that step each parameter by itself, with their arguments behind the parameters."""

from __future__ import annotations

from collections.abc import Mapping

# torch 2.13; all but LBFGS. tests/codemods/facts/test_torch_optimizers.py holds them against torch.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "ASGD": ("lr", "lambd", "alpha", "t0", "weight_decay"),
    "Adadelta": ("lr", "rho", "eps", "weight_decay"),
    "Adafactor": ("lr",),
    "Adagrad": ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"),
    "Adam": ("lr", "betas", "eps", "weight_decay", "amsgrad"),
    "AdamW": ("lr", "betas", "eps", "weight_decay", "amsgrad"),
    "Adamax": ("lr", "betas", "eps", "weight_decay"),
    "Muon": ("lr", "weight_decay", "momentum", "nesterov"),
    "NAdam": ("lr", "betas", "eps", "weight_decay", "momentum_decay"),
    "RAdam": ("lr", "betas", "eps", "weight_decay"),
    "RMSprop": ("lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
    "Rprop": ("lr", "etas", "step_sizes"),
    "SGD": ("lr", "momentum", "dampening", "weight_decay", "nesterov"),
    "SparseAdam": ("lr", "betas", "eps"),
}
