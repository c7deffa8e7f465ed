"""Whether models may get layers behind their wrappers."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped
from tests.codemods.facts.flow.test_given_to_callers import CALL, CREATE, FIT
from tests.codemods.facts.flow.test_held_attributes import BARE, TRAINER, TRAINING

SEQUENTIAL = CREATE.replace("nn.Linear(4, width)", "nn.Sequential(nn.Linear(4, 5), nn.Sequential(nn.Linear(5, 3)))")
GROW = "def grow(m):\n    m[1].head = nn.Linear(3, 3)\n\n\n"
METHOD = """\
class Net(nn.Sequential):
    def grow(self):
        self.append(nn.Linear(3, 3))


"""


def test_a_model_that_stays_what_it_is_keeps_its_wrapper() -> None:
    assert not wrapped(SEQUENTIAL + CALL + FIT, BARE).problems


@pytest.mark.parametrize(
    "puts",
    [
        "model[1] = nn.Linear(5, 3)",
        "model.head = nn.Linear(5, 3)",
        "model[1].head = nn.Linear(5, 3)",
        "model.scale: nn.Parameter = nn.Parameter(torch.ones(1))",
        "del model[1]",
        "setattr(model, 'head', nn.Linear(5, 3))",
        "model.append(nn.Linear(3, 3))",
        "model[1].insert(0, nn.Linear(3, 3))",
        "model.get_submodule('1').add_module('head', nn.Linear(3, 3))",
        "getattr(model, '1').extend([nn.Linear(3, 3)])",
        "model.register_parameter('scale', nn.Parameter(torch.ones(1)))",
        "model._modules['head'] = nn.Linear(3, 3)",
        "model._modules.update({'head': nn.Linear(3, 3)})",
        "model.__dict__['_modules']['head'] = nn.Linear(3, 3)",
        "vars(model)['_modules']['head'] = nn.Linear(3, 3)",
        "model.__setattr__('head', nn.Linear(3, 3))",
        "nn.Module.__setattr__(model, 'head', nn.Linear(3, 3))",
        "net = model\nnet.head = nn.Linear(3, 3)",
        "for layer in model.children():\n    layer.head = nn.Linear(3, 3)",
        "for at, layer in enumerate(model.children()):\n    layer.head = nn.Linear(3, 3)",
        "grow(model)",
        "grow(m=model)",
        "model.apply(grow)",
        "models = [model]\nmodels[0].head = nn.Linear(3, 3)",
        "class Box:\n    pass\n\n\nbox = Box()\nbox.net = model\nbox.net.head = nn.Linear(3, 3)",
        "optimizer.add_param_group({'params': model.parameters(), 'lr': 0.2})",
    ],
)
def test_layers_of_a_model_that_a_function_gave_back(puts: str) -> None:
    assert wrapped(f"{GROW}{SEQUENTIAL}{CALL}{puts}\n{FIT}", BARE).problems


def test_a_method_of_the_model_gives_it_layers() -> None:
    create = METHOD + SEQUENTIAL.replace("nn.Sequential(nn.Linear(4", "Net(nn.Linear(4")
    assert not wrapped(create + CALL + FIT, BARE).problems
    assert wrapped(f"{create}{CALL}model.grow()\n{FIT}", BARE).problems


@pytest.mark.parametrize(
    "keeps",
    [
        "model.best = 0.0",
        "model.names = ['a', -1]",
        "model.class_to_idx = train_set.class_to_idx",
        "model[0].weight.data[0] = torch.ones(4)",
        "state = model.state_dict()\nstate['x'] = state.pop('0.weight')",
        "models = []\nmodels.append(model)",
        "print(model._get_name())",
        "optimizer.param_groups[0]['lr'] = total",
    ],
)
def test_what_is_no_layer(keeps: str) -> None:
    assert not wrapped(f"{SEQUENTIAL}{CALL}{keeps}\n{FIT}", BARE).problems


def test_layers_and_parameters_in_the_function_that_gives_the_model_back() -> None:
    grows = "    model.head = nn.Linear(3, 3)\n    optimizer.add_param_group({'params': model.head.parameters()})\n"
    create = CREATE.replace("    return model", grows + "    return model")
    assert not wrapped(create + CALL + FIT, BARE).problems


@pytest.mark.parametrize("trains", ["trainer.fit()\n", TRAINING])
@pytest.mark.parametrize(
    "puts", ["trainer.model.head = nn.Linear(3, 3)", "trainer.optimizer.add_param_group({'params': []})"]
)
def test_layers_of_a_model_that_an_object_holds(puts: str, trains: str) -> None:
    for behind in ("", f"{puts}\n"):
        assert bool(
            wrapped(f"{TRAINER}trainer = Trainer()\n{behind}{trains}", HEAD.partition("model =")[0]).problems
        ) is bool(behind)
