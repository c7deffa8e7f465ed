"""Tensors as public GANs make them: legacy types, chosen by a question for a GPU. For one process; to be converted."""

import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

cuda = True if torch.cuda.is_available() else False
torch.manual_seed(0)
np.random.seed(0)
G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
D = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid())
loss = torch.nn.BCELoss()
if cuda:
    G.cuda()
    D.cuda()
    loss.cuda()
loader = DataLoader(TensorDataset(torch.rand(24, 6)), batch_size=8, shuffle=True)
g_optimizer = torch.optim.SGD(G.parameters(), lr=0.1)
d_optimizer = torch.optim.SGD(D.parameters(), lr=0.1)
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
LongTensor = torch.cuda.LongTensor if cuda else torch.LongTensor
T = torch.cuda if cuda else torch
for epoch in range(2):
    for (imgs,) in loader:
        valid = Variable(Tensor(imgs.shape[0], 1).fill_(1.0), requires_grad=False)
        fake = Variable(T.FloatTensor(imgs.size(0), 1).fill_(0.0), requires_grad=False)
        real = Variable(imgs.type(Tensor))
        labels = Variable(LongTensor(np.random.randint(0, 10, 8)))
        z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], 4))))
        assert isinstance(z, Tensor) and isinstance(labels, LongTensor) and not isinstance(z, LongTensor)
        g_optimizer.zero_grad()
        made = G(z)
        g_loss = loss(D(made), valid) + labels.type(Tensor).mean() * made.mean()
        g_loss.backward()
        g_optimizer.step()
        d_optimizer.zero_grad()
        d_loss = (loss(D(real), valid) + loss(D(made.detach()), fake)) / 2
        d_loss.backward()
        d_optimizer.step()
        for parameter in [*G.parameters(), *D.parameters()]:
            print(f"{parameter.double().norm().item():.9g}")
