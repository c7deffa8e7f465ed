"""`python -m tests.update_docs` writes docs/rules: a page for each rule, made of the rule itself, and their table."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods import RULES, Result, Rule, convert
from ddpify_codemods.rule import OPTIONS

from ddpify.diff import diff
from ddpify.report import FileReport, Report, Status, text

FOLDER = Path(__file__).parents[1] / "docs" / "rules"
NAME = "train.py"  # what the examples are called

_TABLE = """\
# The rules

What `ddpify rules` lists and `ddpify explain ID` shows. Each page is written from the rule by
`python -m tests.update_docs`; its example is run as a test. Letters with a number, such as D6 or M3, are the ids of
hazards: what goes wrong in a script that is distributed without care.

`# ddpify: ignore[DDP105]` at the end of a line switches a rule off for that line; without the bracket, all rules.
A refusal that is switched off is no longer a promise: what the rule guards against then happens. That a script is
distributed already (DDP302) is not switched off: it would be divided twice. `# ddpify: skip-file` on a line of its own
passes a file over.

| rule | what it does | example for |
|---|---|---|
"""


def main() -> None:
    """Write the pages, and remove those of rules that are gone."""
    found = pages()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in found:
            path.unlink()
    for name, page in found.items():
        (FOLDER / name).write_text(page, encoding="utf-8", newline="\n")


def pages() -> dict[str, str]:
    """What docs/rules holds: file name -> text."""
    return {"README.md": _table(), **{f"{rule.id}.md": _page(rule) for rule in RULES}}


def _table() -> str:
    return _TABLE + "".join(f"| [{rule.id}]({rule.id}.md) | {rule.title} | {_kind(rule)} |\n" for rule in RULES)


def _kind(rule: Rule) -> str:
    if rule.folder == "lint":
        return "distributed scripts"
    style = ", plain" if rule.style == "plain" else ""
    return (rule.target if rule.after else "refused") + style


def _page(rule: Rule) -> str:
    modernize = rule.folder == "modernize"
    program = {Path(NAME): rule.before}
    result = convert(program, rule.target, modernize=modernize, style=rule.style, **rule.options)[Path(NAME)]
    said = _said(rule, result)
    parts = [f"# {rule.id}: {rule.title}", rule.why.strip()]
    if rule.folder == "lint":
        said = "\n".join(line for line in said.split("\n") if f"[{rule.id}]" in line)
        better = diff(NAME, rule.before.encode(), rule.after.encode()).decode()
        parts += ["It reads scripts that are distributed already, which stay as they are. Of this one:"]
        parts += [_block("python", rule.before), "it says:", _block("text", said)]
        parts += ["and has nothing to say after:", _block("diff", better)]
    elif rule.after:
        change = diff(NAME, rule.before.encode(), rule.after.encode()).decode()
        request = " --modernize" if rule.folder == "modernize" else ""
        request += " --style plain" if rule.style == "plain" else ""
        request += f" {OPTIONS[rule.option]}" if rule.option else ""
        parts += [f"`ddpify {NAME} --target {rule.target}{request}`:", _block("diff", change)]
        parts += ["It also says:", _block("text", said)] if said else []
    else:
        parts += ["A script like this is refused:", _block("python", rule.before)]
        parts += ["What ddpify says, before it leaves the file as it is:", _block("text", said)]
    return "\n\n".join(parts) + "\n"


def _said(rule: Rule, result: Result) -> str:
    """What the command prints about the example, besides the list of its changes."""
    status: Status = "nothing to do" if rule.after else "refused"
    remarks, refusals = text(Report((FileReport(NAME, status, findings=result.findings),), rule.target))
    return "\n".join(line for line in [*remarks, *refusals] if line.startswith(f"{NAME}:"))


def _block(language: str, code: str) -> str:
    return f"```{language}\n{code.rstrip()}\n```"


if __name__ == "__main__":
    main()
