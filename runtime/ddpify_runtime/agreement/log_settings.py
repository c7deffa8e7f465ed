"""What other ranks do where rank 0 says where its log goes: they take the same messages and write them nowhere.

A message is put together by a handler that takes it, and the values in it may be those of all ranks, as in
`log.info("loss %s", loss)`. A rank without such a handler would not be there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from functools import partial
from typing import Any

# Of loguru's `add`: what is not of files and processes.
_OF_MESSAGES = ("level", "format", "filter", "colorize", "serialize", "backtrace", "diagnose", "catch")
# Of handlers in logging.config: what is not of one class of them.
_OF_HANDLERS = ("level", "formatter", "filters")


def elsewhere(function: Any) -> Callable[..., Any] | None:
    """What a rank that is silent calls with the same arguments, to take the same messages; None for other functions."""
    config = sys.modules.get("logging.config")
    if config is not None and function is config.dictConfig:
        return partial(_from_dict, function)
    if config is not None and function is config.fileConfig:
        return partial(_from_file, function)
    owner = getattr(function, "__self__", None)
    if type(owner).__module__.partition(".")[0] == "loguru" and function.__name__ == "add":
        return partial(_add, function)
    return None


def _add(add: Callable[..., Any], sink: Any, **settings: Any) -> Any:
    return add(lambda _: None, **{name: settings[name] for name in _OF_MESSAGES if name in settings})


def _from_dict(configure: Callable[..., None], config: Mapping[str, Any]) -> None:
    handlers = {}
    for name, each in config.get("handlers", {}).items():
        takes = {"class": "logging.StreamHandler", **{key: each[key] for key in _OF_HANDLERS if key in each}}
        handlers[name] = each if each.get("class") == "logging.NullHandler" else takes
    configure({**config, "handlers": handlers})


def _from_file(configure: Callable[..., None], fname: Any, *args: Any, **kwargs: Any) -> None:
    """Of defaults what is beyond the parser of the file is not needed: they are names in arguments of handlers."""
    if isinstance(fname, RawConfigParser):
        parser = fname
    else:
        parser = RawConfigParser(kwargs.get("defaults") or (args[0] if args else None))
        parser.read_file(fname) if hasattr(fname, "readline") else parser.read(os.fspath(fname), kwargs.get("encoding"))
    for section in parser.sections():
        if section.startswith("handler_") and parser.get(section, "class", fallback="") != "NullHandler":
            parser.set(section, "class", "StreamHandler")
            parser.set(section, "args", "()")
            parser.remove_option(section, "kwargs")
    configure(parser, *args, **kwargs)
