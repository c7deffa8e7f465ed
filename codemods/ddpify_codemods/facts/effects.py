"""What a script does outside of itself: files, directories, processes, loggers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from .called_modules import last_name
from .distributed import depends_on_rank
from .loaders import is_false
from .on_rank_zero import made_on_rank_zero
from .only_read import mode_to_read
from .origins import assigned, origins
from .own_methods import is_own_function, is_own_module, may_be_own
from .paths import is_path
from .script import KEPT, Script
from .transforms import calls_of_transforms

# Library functions that write, by their full name.
_WRITER_NAMES = """
    torch.save torch.jit.save torch.onnx.export torch.export.save torch.utils.tensorboard.SummaryWriter
    torch.utils.tensorboard.writer.SummaryWriter tensorboardX.SummaryWriter tensorboardX.GlobalSummaryWriter
    tensorboardX.FileWriter tensorboardX.writer.SummaryWriter tensorboardX.writer.FileWriter
    tensorboard.SummaryWriter tensorboard.FileWriter tensorboard.writer.SummaryWriter tensorboard.writer.FileWriter
    safetensors.torch.save_file safetensors.torch.save_model
    torchvision.utils.save_image torchvision.io.write_png torchvision.io.write_jpeg torchvision.io.write_video
    torchaudio.save soundfile.write scipy.io.savemat scipy.io.wavfile.write scipy.misc.imsave scipy.sparse.save_npz
    librosa.output.write_wav skimage.io.imsave cv2.imwrite cv2.VideoWriter joblib.dump
    tensorflow.summary.FileWriter tensorflow.summary.create_file_writer tensorflow.compat.v1.summary.FileWriter
    imageio.imwrite imageio.imsave imageio.mimsave imageio.mimwrite imageio.get_writer
    numpy.save numpy.savez numpy.savez_compressed numpy.savetxt pandas.ExcelWriter
    matplotlib.pyplot.savefig matplotlib.pyplot.imsave matplotlib.pyplot.show matplotlib.pyplot.pause
    os.makedirs os.mkdir os.remove os.unlink os.rename os.renames os.replace os.rmdir os.removedirs os.symlink os.link
    os.truncate os.mkfifo os.system os.utime os.chmod os.chown
    splitfolders.ratio splitfolders.fixed split_folders.ratio split_folders.fixed
    shutil.chown shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move shutil.rmtree shutil.make_archive
    subprocess.run subprocess.call subprocess.check_call subprocess.Popen os.popen
    visdom.Visdom loguru.logger.add logging.config.dictConfig logging.config.fileConfig
    smtplib.SMTP smtplib.SMTP_SSL
    filelock.FileLock filelock.SoftFileLock filelock.UnixFileLock portalocker.Lock fasteners.InterProcessLock
    requests.post requests.put requests.patch requests.delete httpx.post httpx.put httpx.patch httpx.delete
    torch.cuda.memory._dump_snapshot
    huggingface_hub.upload_file huggingface_hub.upload_folder huggingface_hub.create_repo
"""
_WRITERS = frozenset(_WRITER_NAMES.split())
_WRITER_CLASSES = frozenset(name for name in (full.rpartition(".")[2] for full in _WRITERS) if name[0].isupper())
# Methods of library objects that write, whatever the object is called.
_METHOD_NAMES = """
    savefig tofile to_csv to_json to_pickle to_excel to_parquet to_hdf to_sql to_feather
    write_text write_bytes write_html write_image
    export_chrome_trace export_stacks export_memory_timeline
    mkdir rmdir unlink touch symlink_to hardlink_to save_pretrained push_to_hub
"""
_METHODS = frozenset(_METHOD_NAMES.split())
_OF_ONE_PATH = frozenset({"rename", "replace", "chmod"})  # of paths, with one argument
_LOG_FILES = ("FileHandler", "RotatingFileHandler", "TimedRotatingFileHandler", "WatchedFileHandler")
_LOG_HANDLERS = frozenset(f"logging.{place}{name}" for place in ("", "handlers.") for name in _LOG_FILES)
_GIVE_TEXT_WITHOUT_PATH = frozenset({"to_csv", "to_json"})
# They write into an open file, which comes first.
_FILLS = frozenset({"csv.writer", "csv.DictWriter"})
# Openers that take a path and a mode, and the place of the mode among their arguments.
_READERS = frozenset({"torch.load", "numpy.load", "numpy.loadtxt", "pandas.read_csv", "torch.jit.load"})
FETCHERS = frozenset(
    {"urllib.request.urlretrieve", "torch.hub.download_url_to_file", "shutil.unpack_archive"}
    | {"gdown.download", "wget.download"}
)
_UNPACKING = frozenset({"extractall", "extract"})
_ARCHIVERS = frozenset({"tarfile", "zipfile", "rarfile", "py7zr"})
_ARCHIVES = frozenset({"h5py.File", "zipfile.ZipFile", "tarfile.open"})
_OPENERS = frozenset({"open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open"})
FOLDERS = frozenset({"os.makedirs", "os.mkdir"})
# What calls a function that it is given, now or in its turn; what starts it beside the rest.
_IN_TURN = frozenset({"map", "partial", "filter", "starmap"})
_BESIDE = frozenset({"Thread", "Process", "Timer", "submit", "apply_async"})
_OF_POOLS = frozenset({"map", "starmap", "imap", "imap_unordered", "map_async"})
_STREAMS = frozenset({"BytesIO", "StringIO", "TemporaryFile", "NamedTemporaryFile", "open", "File"})


def writes(script: Script, call: ast.Call) -> bool:
    """Whether a call writes a file, a directory or a log, or starts a process, in a library."""
    name = script.qualified(call.func)
    if fetches(script, call):
        return True
    if any(_is_stream(script, argument) for argument in call.args):
        return False
    if _is_imported(script, call.func) and (_is_writer(script, name) or made_on_rank_zero(script, call)):
        return True
    if name in _ARCHIVES:
        return _is_writing(mode_of(script, call)) and mode_to_read(script, call) is None
    if name == "lmdb.open":
        return not any(word.arg == "readonly" and not is_false(word.value) for word in call.keywords)
    if _opens_file(script, name):  # the null device exists, so "x" would fail on the other ranks
        return "x" in (mode_of(script, call) or "")
    if not isinstance(call.func, ast.Attribute) or may_be_own(script, call.func):
        return False
    method = call.func.attr
    if _is_imported_in_the_run(script, call.func.value):
        return method in _WRITER_CLASSES
    if method == "save":
        return bool(call.args) and not _is_imported(script, call.func) and script.qualified(call.func.value) != "self"
    if method in _OF_ONE_PATH:
        return len(call.args) + len(call.keywords) == 1 and is_path(script, call.func.value)
    if method == "dump":
        return bool(call.args) and _is_array(script, call.func.value)
    if method == "open":
        return not _is_imported(script, call.func) and _is_writing(mode_of(script, call, place=0))
    return method in _METHODS and not (method in _GIVE_TEXT_WITHOUT_PATH and not call.args and not call.keywords)


def _is_array(script: Script, node: ast.expr) -> bool:
    calls = (each for each in origins(script, node) if isinstance(each, ast.Call))
    return any(script.qualified(call.func).startswith("numpy.") for call in calls)


def _is_writer(script: Script, name: str) -> bool:
    return name in _WRITERS and not is_own_module(script, name)


def handed_on(script: Script) -> Iterator[tuple[ast.expr, ast.Call, bool]]:
    """Where a function that writes is given to another one, which calls it: `map(os.remove, files)`.

    Yields the function, the call that it is given to, and whether that comes to it at any time, in a thread.
    """
    for call in script.find(ast.Call):
        called = last_name(call.func)
        of_pool = isinstance(call.func, ast.Attribute) and not _is_imported(script, call.func)
        beside = called in _BESIDE or (of_pool and called in _OF_POOLS)
        for given in (*call.args, *(word.value for word in call.keywords)):
            named = isinstance(given, ast.Name | ast.Attribute) and _is_imported(script, given)
            calls = beside or called in _IN_TURN or called in script.defined
            if named and calls and _is_writer(script, script.qualified(given)):
                yield given, call, beside


def fetches(script: Script, call: ast.Call) -> bool:
    """Whether a statement fetches or unpacks files, over what is there: `urlretrieve(url, path)`."""
    if not isinstance(script.parents[call], ast.Expr):
        return False
    if script.qualified(call.func) in FETCHERS:
        return True
    return unpacks(script, call.func)


def unpacks(script: Script, called: ast.expr) -> bool:
    """Whether what is called is a method that unpacks an archive."""
    method = called.attr if isinstance(called, ast.Attribute) else ""
    archives = any(name.split(".")[0] in _ARCHIVERS for name in script.imported.values())
    return archives and method in _UNPACKING and not may_be_own(script, called)


def opened_for_writing(script: Script, call: ast.Call) -> ast.expr | None:
    """The path of an `open(path, "w")` or of a logging file, if the call is one."""
    name = script.qualified(call.func)
    if _opens_file(script, name):
        mode = mode_of(script, call)
        return _first(call, "file", "filename") if _is_writing(mode) and "x" not in (mode or "") else None
    if name in _LOG_HANDLERS:
        return _first(call, "filename")
    if name == "logging.basicConfig":
        return next((keyword.value for keyword in call.keywords if keyword.arg == "filename"), None)
    return None


def opened_path(script: Script, call: ast.Call) -> ast.expr | None:
    """The path of a `path.open("w")`, if the call is one of pathlib."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "open" or _is_imported(script, call.func):
        return None
    mode = mode_of(script, call, place=0)
    return call.func.value if _is_writing(mode) and not {"x", "+"} & set(mode or "") else None


def reads_and_writes(script: Script, call: ast.Call) -> bool:
    """Whether a file is opened to be read and written through one object, of which more is used than its `write`."""
    if not _opens_file(script, script.qualified(call.func)) or "+" not in (mode_of(script, call) or ""):
        return False
    parent = script.parents[call]
    name = parent.optional_vars if isinstance(parent, ast.withitem) else None
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        name = parent.targets[0]
    if isinstance(name, ast.Name):
        uses: list[ast.expr] = [node for node in script.find(ast.Name) if node.id == name.id]
    elif isinstance(name, ast.Attribute):  # of whatever object, `self.file` and `logger.file`
        uses = [node for node in script.find(ast.Attribute) if node.attr == name.attr]
    else:
        return True
    reads = [node for node in uses if isinstance(node.ctx, ast.Load)]  # type: ignore[attr-defined]
    if not reads:
        return not _is_of_function(script, call, name)
    return not all(_only_fills(script, node) for node in reads)


def _is_of_function(script: Script, call: ast.Call, name: ast.expr) -> bool:
    """Whether a name is a variable of the function around a call, which nothing outside of it can read."""
    shared = (each for each in script.nodes if isinstance(each, ast.Global | ast.Nonlocal))
    own = isinstance(script.scope(call), ast.FunctionDef | ast.AsyncFunctionDef)
    return own and isinstance(name, ast.Name) and not any(name.id in each.names for each in shared)


def _only_fills(script: Script, file: ast.expr) -> bool:
    """Whether an open file is written to where it is named."""
    parent = script.parents[file]
    if isinstance(parent, ast.keyword):
        return parent.arg == "file"
    if isinstance(parent, ast.Call) and script.qualified(parent.func) in _FILLS:
        return parent.args[:1] == [file]
    return isinstance(parent, ast.Attribute) and parent.attr in ("write", "writelines", "flush", "close")


def reads(script: Script, call: ast.Call) -> bool:
    """Whether a call reads a file that its first argument names."""
    name = script.qualified(call.func)
    if name in _OPENERS:
        return not _is_writing(mode_of(script, call))
    return name in _READERS


def has_unknown_mode(script: Script, call: ast.Call) -> bool:
    """Whether a file is opened in a mode that only the run knows."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "open" and not _is_imported(script, call.func):
        made = (each for each in origins(script, call.func.value) if isinstance(each, ast.Call))
        is_path = any(script.qualified(each.func).startswith("pathlib.") for each in made)
        return is_path and mode_of(script, call, place=0) is None
    return _opens_file(script, script.qualified(call.func)) and mode_of(script, call) is None


@lru_cache(maxsize=KEPT)
def effects(script: Script) -> tuple[ast.Call, ...]:
    """Every call that writes something."""
    calls = script.find(ast.Call)
    return tuple(call for call in calls if writes(script, call) or opened_for_writing(script, call) is not None)


def makes_folder(script: Script, call: ast.Call) -> bool:
    """Whether a call makes a folder, which every rank does."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir"
    return is_method or script.qualified(call.func) in FOLDERS


def under_rank_guard(script: Script, node: ast.AST) -> bool:
    """Whether the author lets only one process come here: `if rank == 0:`."""
    if script.only_asks_for_group:
        return False  # without a group every process takes itself for the first
    child = node
    for parent in script.ancestors(node):
        guarded = isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test
        if guarded and depends_on_rank(script, parent.test):  # type: ignore[attr-defined]
            return True
        child = parent
    return False


def runs_beside(script: Script, node: ast.AST) -> bool:
    """Whether a function that a thread or another process is given does something: it comes there at any time."""
    around = {each.name for each in script.ancestors(node) if isinstance(each, ast.FunctionDef)}
    calls = (call for call in script.find(ast.Call) if last_name(call.func) in _BESIDE)
    given = (each for call in calls for each in (*call.args, *(word.value for word in call.keywords)))
    return any(last_name(each) in around for each in given)


def sample_code(script: Script) -> frozenset[ast.AST]:
    """The code on a data set's way to a sample, which each process takes for its own samples only."""
    return sample_code_of(script, script.for_samples)


@lru_cache(maxsize=KEPT)
def sample_code_of(script: Script, also: frozenset[str]) -> frozenset[ast.AST]:
    """The same; also: the functions of the file that data sets of other files call."""
    functions = {function.name: function for function in script.find(ast.FunctionDef)}
    waiting: list[ast.AST] = [functions[name] for name in (*_worker_functions(script), *also) if name in functions]
    waiting += [
        function
        for owner in script.find(ast.ClassDef)
        for function in owner.body
        if isinstance(function, ast.FunctionDef) and function.name in ("__getitem__", "__getitems__")
    ]
    waiting += calls_of_transforms([script], script)
    found: set[ast.AST] = set()
    while waiting:
        function = waiting.pop()
        if function not in found:
            found.add(function)
            calls = (call for call in ast.walk(function) if isinstance(call, ast.Call))
            names = {script.qualified(call.func).rpartition(".")[2] for call in calls}
            waiting += [functions[name] for name in names if name in functions]
    return frozenset(node for function in found for node in ast.walk(function))


def _worker_functions(script: Script) -> Iterator[str]:
    for keyword in script.find(ast.keyword):
        if keyword.arg in ("collate_fn", "worker_init_fn", "transform"):
            yield script.qualified(keyword.value)


def _is_stream(script: Script, argument: ast.expr) -> bool:
    """Whether an argument is an open file or a buffer in memory, not a path."""
    return isinstance(argument, ast.Name) and argument.id in _streams(script)


@lru_cache(maxsize=KEPT)
def _streams(script: Script) -> frozenset[str]:
    bindings = [(node.targets[0], node.value) for node in script.find(ast.Assign)]
    bindings += [(item.optional_vars, item.context_expr) for item in script.find(ast.withitem) if item.optional_vars]
    return frozenset(
        name.id
        for name, value in bindings
        if isinstance(name, ast.Name) and isinstance(value, ast.Call) and _opens(script, value)
    )


def _opens(script: Script, call: ast.Call) -> bool:
    """Whether a call opens a file or a buffer; what opens a picture gives that."""
    return last_name(call.func) in _STREAMS and script.qualified(call.func) != "PIL.Image.open"


def _is_imported_in_the_run(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.qualified(node.func) in ("importlib.import_module", "__import__")


def _is_imported(script: Script, node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in script.imported


def _opens_file(script: Script, name: str) -> bool:
    return name in _OPENERS and not is_own_function(script, name)


def _first(call: ast.Call, *names: str) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)


def mode_of(script: Script, call: ast.Call, place: int = 1) -> str | None:
    """The mode of an open call; None where only the run knows it."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] + call.args[place : place + 1]
    if not given:
        return "r"
    made = [*_ways(script, given[0])]
    modes = [each.value for each in made if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    alike = len(modes) == len(made) and len({(_is_writing(each), "b" in each) for each in modes}) == 1
    return max(modes) if alike else None


def _ways(script: Script, node: ast.expr) -> Iterator[ast.expr]:
    """What an expression may be: both ways of `"a" if resume else "w"`, of a name what it is assigned."""
    made = assigned(script, node) if isinstance(node, ast.Name) else []
    for each in made or [node]:
        yield from (each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,)


def _is_writing(mode: str | None) -> bool:
    return mode is not None and bool(re.fullmatch(r"[rwaxbtU+]*", mode)) and bool(set(mode) & set("wax+"))
