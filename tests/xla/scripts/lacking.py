"""Asks for what XLA devices do not have: `sparse`, `packed` or `cuda`."""

import sys

import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime import destroy_process_group, init_process_group

if __name__ == "__main__":
    init_process_group("xla", init_method="xla://")
    x = torch.rand(5, 3, 4, device=torch_xla.device())
    if sys.argv[1] == "sparse":
        torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,)).to(x.device)
    elif sys.argv[1] == "packed":
        rnn = torch.nn.LSTM(4, 2).to(x.device)
        rnn(torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2])))
    else:
        x.cuda()
    destroy_process_group()
