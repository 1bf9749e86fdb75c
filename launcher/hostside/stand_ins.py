"""Stand-ins for the kernel packages of the engine, which need a GPU: every name exists and nothing is computed.

What the engine decides by a stand-in is a doubt, see `Doubts`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
import types

# Kernel packages: they need a GPU, or are built for another torch. They are stand-ins even where one is installed.
KERNELS = frozenset({
    "aiter", "cuda", "cutlass", "deep_ep", "deep_gemm", "fast_hadamard_transform", "flash_attn", "flash_mla",
    "flashinfer", "mooncake", "nixl", "pynvml", "quack", "sgl_kernel", "torch_memory_saver", "torchao", "torchcodec",
    "tvm_ffi", "vllm", "compressed_tensors", "xgrammar", "llguidance", "kernels", "decord", "timm",
})  # fmt: skip
IMPORT_NAMES = {
    "sglang-kernel": "sgl_kernel", "flashinfer-python": "flashinfer", "flash-attn-4": "flash_attn",
    "nvidia-cutlass-dsl": "cutlass", "nvidia-ml-py": "pynvml", "cuda-python": "cuda", "quack-kernels": "quack",
    "mooncake-transfer-engine": "mooncake", "apache-tvm-ffi": "tvm_ffi", "pyzmq": "zmq", "pillow": "PIL",
    "python-multipart": "multipart", "decord2": "decord", "py-spy": "py_spy", "opencv-python-headless": "cv2",
}  # fmt: skip
_ENGINE = "/sglang/"


class Doubts:
    """What the engine asked that nothing here can answer, each once; `touched`: whether it used a stand-in at all."""

    def __init__(self):
        self.texts = []
        self.touched = False

    def add(self, text):
        if importing():  # a module looks around when it is imported; what it decides by that shows later
            self.touched = True
        elif text not in self.texts and len(self.texts) < 20:
            self.texts.append(text)


def importing():
    """Whether an import runs now, besides the import system's own look-up of modules."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>" and frame.f_code.co_name == "_load_unlocked":
            return True
        frame = frame.f_back
    return False


def import_name(distribution):
    """Return the name under which a distribution is imported: `flashinfer-python` → `flashinfer`."""
    name = normal(distribution)
    return IMPORT_NAMES.get(name, name.replace("-", "_"))


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_by_engine():
    """Whether the innermost frame that is not the import system's is in the engine."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen") and "importlib" not in file and file != __file__ and file != "<stdin>":
            return _ENGINE in file
        frame = frame.f_back
    return False


class StandInClass(type):
    """The class of every name inside a stand-in package: attributes are stand-ins too."""

    doubts = Doubts()

    def __getattr__(cls, name):
        return made(cls, name)

    def __getitem__(cls, _key):
        return cls

    def __iter__(cls):
        return iter(())

    def __or__(cls, _other):
        return cls

    __ror__ = __or__

    def __bool__(cls):
        return cls.asked(True)

    def __eq__(cls, other):
        return cls.asked(cls is other)

    def __hash__(cls):
        return id(cls)

    def asked(cls, answer):
        """Note that the engine decides by a stand-in."""
        StandInClass.doubts.add("the engine asked a kernel package: %s" % cls.__name__)
        return answer


def made(owner, name):
    """Return the stand-in for an attribute, which its owner keeps; a special method is not one."""
    if name.startswith("__"):
        raise AttributeError(name)
    StandInClass.doubts.touched = True
    value = stand_in(name)
    if owner is not None:
        setattr(owner, name, value)
    return value


def stand_in(name):
    def attribute(_self, inner):
        return made(None, inner)

    def call(_self, *arguments, **_options):  # a decorator returns what it decorates
        return arguments[0] if arguments and callable(arguments[0]) else stand_in("result")

    body = {"__init__": lambda _self, *_arguments, **_options: None, "__getattr__": attribute, "__call__": call,
            "__get_pydantic_core_schema__": classmethod(_any_value),
            "__bool__": lambda instance: bool(type(instance)), "__hash__": id,
            "__eq__": lambda instance, other: type(instance).asked(instance is other)}  # fmt: skip
    return StandInClass(name, (), body)


def _any_value(_kind, _source, _handler):
    """Return the schema of a field whose type is a stand-in: pydantic accepts any value."""
    return importlib.import_module("pydantic_core.core_schema").any_schema()


class StandInPackage(types.ModuleType):
    """A package whose every name is a stand-in."""

    __path__ = []

    def __getattr__(self, name):
        return made(self, name)


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds stand-ins for packages that the host has and this environment lacks, if the engine imports them.

    transformers and torch probe for packages too; a stand-in would mislead them.
    """

    def __init__(self, names, versions):
        self.names, self.versions = names, versions

    def find_spec(self, fullname, _path=None, _target=None):
        top = fullname.split(".")[0]
        if top in self.names and (isinstance(sys.modules.get(top), StandInPackage) or asked_by_engine()):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        module = StandInPackage(spec.name)
        module.__dict__["__version__"] = self.versions.get(spec.name.split(".")[0], "0")
        return module

    def exec_module(self, module):
        pass


class HidingFinder(importlib.abc.MetaPathFinder):
    """Finds what is installed here, except packages that the host is known to lack and kernel packages."""

    def __init__(self, finder, hidden):
        self.finder, self.hidden = finder, hidden

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] in self.hidden:
            return None
        return self.finder.find_spec(fullname, path, target)

    def find_distributions(self, context=None):
        return self.finder.find_distributions(context) if context else self.finder.find_distributions()


def simulate_packages(packages, kept):
    """Let the engine find the packages of the facts: distribution → version, or None where it is not installed.

    `kept` are distributions that stay importable: without them nothing of the engine can be imported.
    """
    # two distributions may provide one name: `sgl-kernel` is `sglang-kernel` in newer releases
    present = {import_name(item): version for item, version in packages.items() if version is not None}
    absent = {import_name(item) for item in packages} - set(present) - {import_name(item) for item in kept}
    sys.meta_path[:] = [
        HidingFinder(finder, absent | KERNELS) if finder is importlib.machinery.PathFinder else finder
        for finder in sys.meta_path
    ]
    sys.meta_path.append(StandInFinder(set(present) - absent, present))
    versions = {normal(item): version for item, version in packages.items()}
    real = importlib.metadata.version

    def version(distribution):
        if normal(distribution) in versions and asked_by_engine():
            known = versions[normal(distribution)]
            if known is None:
                raise importlib.metadata.PackageNotFoundError(distribution)
            return known
        return real(distribution)

    importlib.metadata.version = version
    find = importlib.util.find_spec

    def find_spec(name, package=None):  # finds what is imported already, whoever asks
        spec = find(name, package)
        hidden = spec is not None and isinstance(spec.loader, StandInFinder) and not asked_by_engine()
        return None if hidden else spec

    importlib.util.find_spec = find_spec
