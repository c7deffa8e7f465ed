"""Calls the tensor types of XLA devices in every way that torch knows, and holds them against those of the host."""

import ddpify_runtime.xla
import numpy as np
import torch
import torch_xla

device = torch_xla.device()
FloatTensor, LongTensor = ddpify_runtime.xla.FloatTensor, ddpify_runtime.xla.LongTensor
ones = torch.ones(2)
made = [
    (FloatTensor(2, 3), torch.FloatTensor(2, 3)),
    (FloatTensor(torch.Size([3])), torch.FloatTensor(torch.Size([3]))),
    (FloatTensor((2, 3)), torch.FloatTensor((2, 3))),
    (FloatTensor([[1, 2]]), torch.FloatTensor([[1, 2]])),
    (FloatTensor(np.eye(2)), torch.FloatTensor(np.eye(2))),
    (FloatTensor(np.int64(3)), torch.FloatTensor(np.int64(3))),
    (FloatTensor(), torch.FloatTensor()),
    (FloatTensor(ones), torch.FloatTensor(ones)),
    (FloatTensor(ones.to(device)), ones),
    (ones.type("torch.xla.FloatTensor"), ones),
    (ones.long().type(dtype=FloatTensor), ones),
]
for tensor, expected in made:
    assert isinstance(tensor, FloatTensor) and not isinstance(tensor, LongTensor), tensor.type()
    assert (tensor.shape, tensor.dtype, tensor.type()) == (expected.shape, torch.float32, "torch.xla.FloatTensor")
for tensor, expected in [made[index] for index in (2, 3, 4, 7, 8, 9, 10)]:
    assert torch.equal(tensor.cpu(), expected)
assert not isinstance(ones, FloatTensor) and ones.type() == "torch.FloatTensor"
assert ones.type(torch.LongTensor).device.type == "cpu" and ones.type(torch.int32).dtype == torch.int32
module = torch.nn.Linear(2, 2)
before = list(module.parameters())
module.type(FloatTensor)
assert all(one is other for one, other in zip(before, module.parameters())) and module.weight.device == device
for wrong in (lambda: FloatTensor(ones.long()), lambda: ddpify_runtime.xla.NoTensor):
    try:
        wrong()
    except (TypeError, AttributeError) as error:
        print(error)
torch.set_default_tensor_type("torch.xla.FloatTensor")
assert torch.nn.Linear(2, 2).weight.device == torch.tensor([1.0]).device == device
torch.set_default_tensor_type(torch.DoubleTensor)
assert (torch.tensor([1.0]).device.type, torch.tensor([1.0]).dtype) == ("cpu", torch.float64)
