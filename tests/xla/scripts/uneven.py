"""Ranks that do not take the same steps: one fails, or ends, while the others wait for it."""

import sys

import torch
import torch_xla
import torch_xla.core.xla_model as xm


def main(rank, how):
    for step in range(5):
        value = xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device=torch_xla.device()))
        torch_xla.sync()
        if rank == 1 and step == 2:
            if how == "fails":
                raise ValueError("rank 1 has had enough")
            return
    print(value)


if __name__ == "__main__":
    torch_xla.launch(main, args=(sys.argv[1],))
