"""What names mean that a file gets by `from torch.nn import *`: of the modules that scripts import that way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# What scripts use of their public names (torch 2.13, tqdm 4.67).
_NAMES = {
    "torch.utils.data": """
        BatchSampler ChainDataset ConcatDataset DataLoader Dataset IterableDataset RandomSampler Sampler
        SequentialSampler StackDataset Subset SubsetRandomSampler TensorDataset WeightedRandomSampler default_collate
        random_split
    """,
    "torch.optim": """
        ASGD Adadelta Adagrad Adam AdamW Adamax LBFGS NAdam Optimizer RAdam RMSprop Rprop SGD SparseAdam lr_scheduler
    """,
    "torch.optim.lr_scheduler": """
        ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR LinearLR MultiStepLR
        OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR
    """,
    "torch.nn": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool2d AvgPool1d AvgPool2d BCELoss BCEWithLogitsLoss BatchNorm1d
        BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
        CosineEmbeddingLoss CrossEntropyLoss DataParallel Dropout Dropout1d Dropout2d ELU Embedding EmbeddingBag Flatten
        GELU GRU GroupNorm HuberLoss Identity InstanceNorm1d InstanceNorm2d KLDivLoss L1Loss LSTM LSTMCell LayerNorm
        LeakyReLU Linear LogSoftmax MSELoss MaxPool1d MaxPool2d MaxPool3d Module ModuleDict ModuleList
        MultiheadAttention NLLLoss PReLU Parameter ParameterDict ParameterList ReLU ReLU6 RNN RNNCell SELU Sequential
        SiLU Sigmoid SmoothL1Loss Softmax Softplus Tanh Transformer TransformerDecoder TransformerDecoderLayer
        TransformerEncoder TransformerEncoderLayer TripletMarginLoss Unflatten Upsample functional init
    """,
    "tqdm": "tqdm tqdm_notebook trange",
}


def star_names(modules: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The names that a file gets from modules of which it imports everything, and what they mean.

    Args: the modules, in the order in which they are imported.
    """
    for module in modules:
        for name in _NAMES.get(module, "").split():
            yield name, f"{module}.{name}"
