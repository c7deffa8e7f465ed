"""Programs that train on texts, plain: what 2 and 3 ranks train and show is what one process does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_plain_programs import trains_alike

PAIRS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(3)
PAD = 0


def text():
    return torch.randint(1, 20, (int(torch.randint(2, 9, (1,))),))


"""
SCRIPTS = {
    "an encoder and a decoder that are trained token by token": """\
def collate_fn(batch):
    sources, targets = [], []
    for source, target in batch:
        sources.append(source)
        targets.append(target)
    return (
        pad_sequence(sources, batch_first=True, padding_value=PAD),
        pad_sequence(targets, batch_first=True, padding_value=PAD),
    )


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x):
        return self.rnn(self.embedding(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 20)

    def forward(self, x, h, c):
        o, (h, c) = self.rnn(self.embedding(x), (h, c))
        return self.out(o.squeeze(1)), h, c


encoder, decoder = Encoder(), Decoder()
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
optimizers = [torch.optim.SGD(encoder.parameters(), lr=0.1), torch.optim.SGD(decoder.parameters(), lr=0.1)]
encoder_optimizer, decoder_optimizer = optimizers
train_loader = DataLoader([(text(), text()) for _ in range(48)], batch_size=12, shuffle=True, collate_fn=collate_fn)
val_loader = DataLoader([(text(), text()) for _ in range(20)], batch_size=6, collate_fn=collate_fn)


def validate():
    total = 0
    with torch.no_grad():
        for src, tgt in val_loader:
            _, (h, c) = encoder(src)
            x = tgt[:, 0].unsqueeze(1)
            loss = 0
            for t in range(1, tgt.size(1)):
                out, h, c = decoder(x, h, c)
                loss += criterion(out, tgt[:, t])
                _, top = out.topk(1)
                x = top.detach()
            loss = loss / (tgt.size(1) - 1)
            total += loss.item()
    return total / len(val_loader)


def train_step(src, tgt, teacher):
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    _, (h, c) = encoder(src)
    x = tgt[:, 0].unsqueeze(1)
    loss = 0
    for t in range(1, tgt.size(1)):
        out, h, c = decoder(x, h, c)
        loss += criterion(out, tgt[:, t])
        if teacher:
            x = tgt[:, t].unsqueeze(1)
        else:
            value, top = out.topk(1)
            x = top.detach()
    loss = loss / (tgt.size(1) - 1)
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


for epoch in range(2):
    total = 0
    for i, (src, tgt) in enumerate(train_loader):
        loss = train_step(src, tgt, epoch == 0)
        total += loss
        print(i, loss)
    print(epoch, total / len(train_loader), validate())
""",
    "a mean over all that is padded, and a model that does not mask it": """\
class Tags(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.GRU(8, 6, batch_first=True, bidirectional=True)
        self.out = nn.Linear(12, 20)

    def forward(self, x):
        return self.out(self.rnn(self.embedding(x))[0])


class Collate:
    def __init__(self, pad):
        self.pad = pad

    def __call__(self, batch):
        x = pad_sequence([each["x"] for each in batch], True, self.pad)
        return {"x": x, "mask": x != self.pad, "size": torch.tensor([len(each["x"]) for each in batch])}


def train(model, loader, optimizer):
    model = model.train()
    total, tokens = 0.0, 0
    for batch in loader:
        x = batch["x"]
        loss = F.cross_entropy(model(x).transpose(1, 2), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        tokens += batch["mask"].sum().item() + batch["size"].sum().item()
        print(x.shape[1], loss.item())
    print(total / len(loader), tokens)


loader = DataLoader([{"x": text()} for _ in range(36)], batch_size=12, shuffle=True, collate_fn=Collate(PAD))
model = Tags()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    train(model, loader, optimizer)
""",
    "smoothed labels, weighed, of which some are left out": """\
class Tags(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.out = nn.Linear(8, 20)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.out(x)


def collate(batch):
    return pad_sequence(batch, batch_first=True, padding_value=PAD)


model = Tags()
criterion = nn.CrossEntropyLoss(torch.rand(20) + 0.5, ignore_index=PAD, label_smoothing=0.1)
smooth = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    for x in DataLoader([text() for _ in range(36)], batch_size=12, shuffle=True, collate_fn=collate):
        out = model(x).view(-1, 20)
        loss = criterion(out, x.view(-1)) + smooth(out, x.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "a loss in the model, over the tokens that count": """\
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.kinds = nn.Linear(8, 3)
        self.tags = nn.Linear(8, 5)

    def forward(self, ids, mask, kinds=None, tags=None):
        hidden = self.embedding(ids)
        kind_logits, tag_logits = self.kinds(hidden[:, 0]), self.tags(hidden)
        outputs = (kind_logits, tag_logits)
        if kinds is not None:
            loss_fct = nn.CrossEntropyLoss()
            total = loss_fct(kind_logits, kinds)
            if tags is not None:
                tag_loss_fct = nn.CrossEntropyLoss(ignore_index=4)
                active = mask.view(-1) == 1
                logits = tag_logits.view(-1, 5)[active]
                labels = tags.view(-1)[active]
                tag_loss = tag_loss_fct(logits, labels)
                total = total + 0.5 * tag_loss
            outputs = (total,) + outputs
        return outputs


def samples(n):
    ids = torch.randint(20, (n, 7))
    return torch.utils.data.TensorDataset(ids, (ids > 4).long(), torch.randint(3, (n,)), torch.randint(5, (n, 7)))


model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
loader = DataLoader(samples(36), batch_size=12, shuffle=True)
test_loader = DataLoader(samples(20), batch_size=6)
for epoch in range(2):
    model.train()
    for batch in loader:
        ids, mask, kinds, tags = tuple(t.to("cpu") for t in batch)
        loss = model(ids, mask, kinds=kinds, tags=tags)[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    model.eval()
    total = hits = 0
    with torch.no_grad():
        for ids, mask, kinds, tags in test_loader:
            loss, kind_logits, tag_logits = model(ids, mask, kinds=kinds, tags=tags)
            total += loss.item()
            hits += (kind_logits.argmax(1) == kinds).sum().item()
    print(total / len(test_loader), hits)
""",
    "a tagger whose outputs are padded again, and whose loss is one over all steps": """\
def collate_fn(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(each) for each in words])
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=1), lengths


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 5)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return self.head(outputs + outputs.mean(1, keepdim=True))


train_set, test_set = ([(each, each % 5) for each in (text() for _ in range(n))] for n in (48, 20))
train_loader = DataLoader(train_set, batch_size=12, shuffle=True, collate_fn=collate_fn)
test_loader = DataLoader(test_set, batch_size=6, collate_fn=collate_fn)
model, criterion = Tagger(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    model.train()
    total = 0
    for words, tags, lengths in train_loader:
        loss = criterion(model(words, lengths).view(-1, 5), tags.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(train_loader))
    model.eval()
    total = hits = 0
    with torch.no_grad():
        for words, tags, lengths in test_loader:
            scores = model(words, lengths)
            total += criterion(scores.view(-1, 5), tags.view(-1)).item()
            hits += (scores.argmax(2) == tags).sum().item()
    print(total / len(test_loader), hits)
""",
    "a bag of the words of each text, which lie one behind the other": """\
def collate_batch(batch):
    labels, texts, offsets = [], [], [0]
    for label, text in batch:
        labels.append(label)
        words = torch.tensor([int(w) for w in text.split()], dtype=torch.int64)
        texts.append(words)
        offsets.append(words.size(0))
    labels = torch.tensor(labels, dtype=torch.int64)
    offsets = torch.tensor(offsets[:-1]).cumsum(dim=0)
    texts = torch.cat(texts)
    return labels, texts, offsets


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(30, 8)
        self.fc = nn.Linear(8, 4)

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def news(n):
    return [(i % 4, " ".join(str((i * 7 + j * j) % 30) for j in range(i % 6 + 1))) for i in range(n)]


train_loader = DataLoader(news(96), batch_size=12, shuffle=True, collate_fn=collate_batch)
test_loader = DataLoader(news(31), batch_size=8, collate_fn=collate_batch)
model, criterion = Classifier(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    model.train()
    hits = count = 0
    for labels, texts, offsets in train_loader:
        optimizer.zero_grad()
        scores = model(texts, offsets)
        loss = criterion(scores, labels)
        loss.backward()
        optimizer.step()
        hits += (scores.argmax(1) == labels).sum().item()
        count += labels.size(0)
    print(hits / count)
    model.eval()
    hits = count = 0
    with torch.no_grad():
        for labels, texts, offsets in test_loader:
            scores = model(texts, offsets)
            hits += (scores.argmax(1) == labels).sum().item()
            count += labels.size(0)
    print(hits / count)
""",
    "characters that are read by a CTC loss": """\
def collate_fn(batch):
    images, targets, lengths = zip(*batch)
    return torch.stack(images, 0), torch.cat(targets, 0), torch.cat(lengths, 0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 3, padding=1)
        self.rnn = nn.LSTM(8, 8, bidirectional=True)
        self.out = nn.Linear(16, 6)

    def forward(self, x):
        x = self.conv(x).permute(2, 0, 1)
        return self.out(self.rnn(x)[0])


def pictures(n):
    return [
        (torch.randn(4, 12), torch.randint(1, 6, (i % 4 + 1,)), torch.LongTensor([i % 4 + 1])) for i in range(n)
    ]


loader = DataLoader(pictures(48), batch_size=12, shuffle=True, collate_fn=collate_fn)
model = Reader()
criterion = nn.CTCLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    total = 0
    for images, targets, lengths in loader:
        logits = model(images)
        log_probs = F.log_softmax(logits, dim=2)
        input_lengths = torch.LongTensor([logits.size(0)] * images.size(0))
        loss = criterion(log_probs, targets, input_lengths, torch.flatten(lengths))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total)
""",
    "a model that cuts and masks its samples by their lengths": """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.rnn, self.out = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 3)
        self.attention = nn.Linear(8, 1)

    def forward(self, words, lengths):
        longest = int(lengths.max())
        outputs, _ = self.rnn(self.embedding(words[:, :longest]))
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        scores = self.attention(outputs).squeeze(-1)
        state = outputs[:, 0]
        for step in range(max(lengths)):
            state = state * 0.9 + outputs[:, step]
        soft = (scores.softmax(1) * mask).unsqueeze(-1)
        return self.out((outputs * soft).sum(1) + state / 10 + outputs.mean(1))


def samples(n):
    lengths = [i * 5 % 8 + 1 for i in range(n)]
    texts = torch.randint(1, 20, (n, 10))
    return [(text, length, i % 3) for i, (text, length) in enumerate(zip(texts, lengths))]


train_loader = DataLoader(samples(48), batch_size=6, shuffle=True)
test_loader = DataLoader(samples(20), batch_size=6)
model, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(2):
    model.train()
    total = 0
    for words, lengths, labels in train_loader:
        loss = criterion(model(words, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(train_loader))
    model.eval()
    total = hits = 0
    with torch.no_grad():
        for words, lengths, labels in test_loader:
            scores = model(words, lengths)
            total += criterion(scores, labels).item()
            hits += (scores.argmax(1) == labels).sum().item()
    print(total / len(test_loader), hits)
""",
    "texts in another order and of a given length, a method that collates, and tensors filled by numbers": """\
class Texts(torch.utils.data.Dataset):
    def __init__(self, size, pad):
        self.texts, self.pad = [(text(), text(), i % 3) for i in range(size)], pad

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i]

    def collate(self, batch):
        first, second, labels = zip(*batch)
        return pad_sequence(first, True, self.pad), pad_sequence(second, True, self.pad), torch.tensor(labels)


def in_order(batch, most=8):
    ordered = sorted(batch, key=lambda each: len(each[0]), reverse=True)
    firsts = [x for x, _, _ in ordered]
    seconds = [F.pad(y, (0, most - len(y)), value=5) for _, y, _ in ordered]
    return pad_sequence(firsts, True, 5), torch.stack(seconds), torch.tensor([label for _, _, label in ordered])


def by_numbers(batch):
    size = len(batch)
    firsts, seconds, labels = zip(*batch)
    lengths = [x.shape[0] for x in firsts]
    padded = torch.zeros(size, max(lengths), dtype=torch.long)
    for i in range(size):
        end = lengths[i]
        padded[i, :end] = firsts[i][:end]
    return padded, pad_sequence(seconds, True, 2), torch.tensor(labels)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(20, 8), nn.Linear(16, 3)

    def forward(self, x, y):
        return self.out(torch.cat([torch.tanh(self.embedding(x)).mean(1), self.embedding(y).sum(1)], 1))


model = Words()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
texts = Texts(48, 1)
loaders = [
    DataLoader(texts, batch_size=12, collate_fn=texts.collate),
    DataLoader(texts, batch_size=12, collate_fn=in_order),
    DataLoader(texts, batch_size=12, collate_fn=by_numbers),
]
for loader in loaders:
    total = 0.0
    for x, y, labels in loader:
        loss = F.cross_entropy(model(x, y), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(loader))
""",
}


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_trained_is_that_of_one_process(name: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(PAIRS + SCRIPTS[name], ranks, tmp_path)
