"""Files of rows."""

from pathlib import Path


def rows_file(folder: Path, *lines: str, name: str = "rows.jsonl") -> str:
    """A file with these lines; gives its path."""
    file = folder / name
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(file)
