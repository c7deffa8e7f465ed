"""The option of a command line without which a script stays on the CPU."""

import pytest
from ddpify_codemods.facts.gpu_option import gpu_option

HEAD = "import argparse\nimport torch\np = argparse.ArgumentParser()\n"
ACCELERATOR = "if args.accel:\n    device = torch.accelerator.current_accelerator()\nelse:\n    device = 'cpu'\n"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ('"--cuda", action="store_true", help="use CUDA"', "--cuda"),
        ('"-g", "--use-gpu", action="store_true"', "--use-gpu"),
        ('"--cuda", action="store_true", default=False', "--cuda"),
        ('"-gpu", action="store_true", default=False', "-gpu"),
        ('"--no-cuda", action="store_true"', ""),
        ('"--cuda", action="store_false"', ""),
        ('"--cuda", action="store_true", default=True', ""),
        ('"--cuda", action="store_true", default=torch.cuda.is_available()', ""),
        ('"--gpu", type=int', ""),
        ('"--cuda-deterministic", action="store_true"', ""),
    ],
)
def test_what_asks_for_gpus(arguments: str, option: str) -> None:
    assert gpu_option([f"{HEAD}p.add_argument({arguments})\n"], "cuda") == option


@pytest.mark.parametrize(
    ("arguments", "use", "option"),
    [
        ('"--accel", action="store_true"', ACCELERATOR, "--accel"),
        (
            '"--accel", action="store_true"',
            "on = args.accel and torch.accelerator.is_available()\ndevice = torch.device('cuda' if on else 'cpu')",
            "--accel",
        ),
        (
            '"--fast", action="store_true"',
            "if not args.fast:\n    pass\nelse:\n    model = model.cuda()\n    x = x.to('cuda:{}'.format(0))",
            "--fast",
        ),
        ('"--fast", dest="quick", action="store_true"', "if args.quick:\n    model.cuda()", "--fast"),
        ('"--fast", action="store_true"', "if args.fast:\n    x.cuda()\nmodel.cuda()", ""),
        ('"--half", action="store_true"', "if args.half:\n    s = torch.amp.GradScaler('cuda')", ""),
        ('"--cpu", action="store_true"', "device = 'cpu' if args.cpu else 'cuda'", ""),
        ('"--no-accel", action="store_true"', "on = not args.no_accel\nif on:\n    model.cuda()", ""),
        ('"--many", action="store_true"', "model = DataParallel(model).cuda() if args.many else model.cuda()", ""),
    ],
)
def test_a_switch_that_decides_whether_the_device_is_a_gpu(arguments: str, use: str, option: str) -> None:
    assert gpu_option([f"{HEAD}p.add_argument({arguments})\nargs = p.parse_args()\n{use}\n"], "cuda") == option


@pytest.mark.parametrize(
    ("arguments", "use", "option"),
    [
        ('"--device", type=str, default="cpu"', "model.to(args.device)", "--device xpu"),
        ('"-d", "--run-on", default="cpu"', "device = torch.device(args.run_on if ok else 'cpu')", "--run-on xpu"),
        ('"--device", default="cpu"', "if args.device == 'cuda':\n    x.cuda()\nd = args.device", "--device xpu"),
        ('"--device", default="cuda"', "model.to(args.device)", ""),
        ('"--load-to", default="cpu"', "model.cuda()\nstate = torch.load(path, map_location=args.load_to)", ""),
        ('"--eval-on", default="cpu"', "model.cuda()\ntest(model.to(args.eval_on))", ""),
    ],
)
def test_the_name_of_a_device(arguments: str, use: str, option: str) -> None:
    assert gpu_option([f"{HEAD}p.add_argument({arguments})\nargs = p.parse_args()\n{use}\n"], "xpu") == option


def test_options_of_another_file() -> None:
    entry = f"import options\nargs = options.parser().parse_args()\n{ACCELERATOR}"
    options = f"{HEAD}p.add_argument('--accel', action='store_true')\n"
    assert gpu_option([entry, options], "cuda") == "--accel"
    assert gpu_option([f"{HEAD}p.add_argument('--size')\n{entry}", options], "cuda") == ""
