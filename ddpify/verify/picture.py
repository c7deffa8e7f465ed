"""The curves of two runs, as a picture and as a page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ddpify.verify.verdict import Verdict

LEAST = 1e-10  # what a difference of zero is drawn as

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
h1 {{ font-size: 1.3rem }} .equal {{ color: #176b2c }} .different {{ color: #a11 }}
pre {{ background: #f4f4f4; padding: 1rem; overflow-x: auto; font-size: 0.85rem; white-space: pre-wrap }}
img {{ max-width: 100% }} table {{ border-collapse: collapse; font-size: 0.85rem }}
td, th {{ padding: 0.15rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd }}
</style>
<h1>{title}: <span class="{kind}">{verdict}</span></h1>
{image}
<pre>{report}</pre>
<table>
<tr><th>step<th>loss, one process<th>loss, many<th>difference of gradients<th>of parameters</tr>
{rows}
</table>
</html>
"""


def write(found: Verdict, folder: Path, title: str, report: Sequence[str]) -> Iterator[str]:
    """Write report.html, and curves.png where matplotlib is installed; yield what to tell about it.

    Args:
        found: what to show. folder: where to; made if it is not there. title: of the page. report: its lines.
    """
    folder.mkdir(parents=True, exist_ok=True)
    image = _draw(found)
    if image:
        (folder / "curves.png").write_bytes(image)
        yield f"wrote {folder / 'curves.png'}"
    else:
        yield "no picture: matplotlib is not installed; pip install matplotlib"
    (folder / "report.html").write_text(_page(found, title, report, image), encoding="utf-8")
    yield f"wrote {folder / 'report.html'}"


def _draw(found: Verdict) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return b""
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    losses, differences = figure.subplots(2, 1, sharex=True)
    steps = range(1, found.steps + 1)
    original, other = (loss[: found.steps] for loss in found.losses)
    losses.plot(steps, original, color="#bbb", linewidth=5, label="one process")
    losses.plot(steps, other, color="#06c", linewidth=1.5, label="many processes")
    losses.set_ylabel("loss")
    losses.legend()
    for sizes, name, color in ((found.parameters, "parameters", "#06c"), (found.gradients, "gradients", "#e80")):
        differences.plot(steps, [_drawn(size) for size in sizes], color=color, linewidth=1.5, label=name)
    differences.axhline(found.tolerance, color="#a11", linestyle="--", linewidth=1, label="tolerance")
    differences.set_yscale("log")
    differences.set_ylabel("relative difference")
    differences.set_xlabel("optimizer step")
    differences.legend()
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    return stream.getvalue()


def _drawn(size: float) -> float:
    return max(size, LEAST)


def _page(found: Verdict, title: str, report: Sequence[str], image: bytes) -> str:
    data = base64.b64encode(image).decode()
    rows = zip(*found.losses, found.gradients, found.parameters, strict=False)
    return _PAGE.format(
        title=html.escape(title),
        kind="different" if found.differences else "equal",
        verdict="not equal" if found.differences else "equal",
        image=f'<img alt="losses and differences by step" src="data:image/png;base64,{data}">' if image else "",
        report=html.escape("\n".join(report)),
        rows="\n".join(_row(number, values) for number, values in enumerate(rows, 1)),
    )


def _row(number: int, values: Sequence[Any]) -> str:
    one, many, gradient, parameter = values
    return f"<tr><td>{number}<td>{one:.6g}<td>{many:.6g}<td>{gradient:.1e}<td>{parameter:.1e}</tr>"
