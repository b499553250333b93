"""The sub-commands of ``python -m dsmigrate.derivation``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from dsmigrate.derivation import known_bugs, store
from dsmigrate.derivation import report as reports
from dsmigrate.derivation.checkout import Checkout
from dsmigrate.derivation.consumers import READ
from dsmigrate.derivation.consumers import derive as derive_consumers
from dsmigrate.derivation.errors import DerivationError
from dsmigrate.derivation.messages import derive as derive_messages
from dsmigrate.derivation.messages import wheel
from dsmigrate.derivation.names import derive as derive_names
from dsmigrate.derivation.release import Release, derive, derive_all
from dsmigrate.derivation.sources import Sources, default_cache, default_index
from dsmigrate.derivation.versions import in_order, parsed
from dsmigrate.facts.sources import read_toml


@dataclass(frozen=True)
class Context:
    """What every sub-command works with."""

    checkout: Checkout
    sources: Sources
    processes: int


class Group(click.Group):
    """A group that shows a DerivationError as one line and exits with 2."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the sub-command."""
        try:
            return super().invoke(ctx)
        except DerivationError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(2)


@click.group(cls=Group)
@click.option("--index-url", default=default_index, metavar="URL", help="Package index [the one pip uses].")
@click.option("--cache", type=click.Path(path_type=Path), default=default_cache, help="Folder for fetched sources.")
@click.option(
    "--sources", type=click.Path(path_type=Path), help="Use unpacked sources DIR/<release> instead of fetching."
)
@click.option("--root", type=click.Path(path_type=Path), default=Path(), help="Root of the checkout [here].")
@click.option("--jobs", type=click.IntRange(min=1), default=os.cpu_count() or 1, help="Releases derived at a time.")
@click.pass_context
def main(context: click.Context, *, index_url: str, cache: Path, sources: Path | None, root: Path, jobs: int) -> None:
    """Derive what every config key is in every DeepSpeed release from DeepSpeed's own config code.

    The code of each release runs in a process of its own, without torch. Facts are stored under
    schemas/deepspeed/derived.
    """
    context.obj = Context(
        Checkout(root / "schemas" / "deepspeed"), Sources(cache=cache, index_url=index_url, folder=sources), jobs
    )


@main.command()
@click.argument("release")
@click.pass_obj
def add(context: Context, release: str) -> None:
    """Derive a new RELEASE, store it, and report what changed since the release before it.

    Deriving a release that is known already replaces its facts. Exits with 1 when keys lack documentation; when none
    does, the compiled facts, the schemas and the pages are written again as well.
    """
    parsed(release)
    checkout = context.checkout
    known = [name for name in checkout.releases() if name != release]
    facts = checkout.stored(known)
    facts[release] = derive(release, context.sources.root(release))
    order = in_order(facts)
    before = order[order.index(release) - 1] if order.index(release) else None
    changed = checkout.write(facts)
    checkout.add_release(release)
    for name in changed:
        click.echo(f"wrote {name}", err=True)
    if before is not None:
        click.echo(f"DeepSpeed {before} -> {release}\n")
        click.echo(reports.text(reports.differences(facts[before], facts[release])))
    _undocumented(context, facts[release])
    _generate(context.checkout.folder.parent.parent)


def _generate(root: Path) -> None:
    """Write what is generated from the facts, where the checkout has such files; exits as the generators do."""
    if not (root / "schemas" / "deepspeed" / "compiled").is_dir():
        return
    for module in ("dsmigrate.facts", "dsmigrate.docs"):
        done = subprocess.run([sys.executable, "-m", module], cwd=root, check=False)  # noqa: S603 - our own modules
        if done.returncode:
            sys.exit(done.returncode)


def _undocumented(context: Context, release: Release) -> None:
    missing = reports.undocumented(release.keys, context.checkout.documented())
    if missing:
        click.echo(reports.text([reports.Section("without documentation in keys/*.toml", missing)]), nl=False)
        sys.exit(1)


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.pass_obj
def rebuild(context: Context, *, check: bool) -> None:
    """Derive every release of releases.json from scratch."""
    checkout = context.checkout
    facts = derive_all(context.sources.roots(checkout.releases()), context.processes)
    if check:
        changed = store.differing(checkout.derived, store.texts(facts))
        for name in changed:
            click.echo(f"{name} is stale: run python -m dsmigrate.derivation rebuild")
        sys.exit(1 if changed else 0)
    for name in checkout.write(facts):
        click.echo(f"wrote {name}")


@main.command()
@click.argument("packages", metavar="[PACKAGE]...", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.pass_obj
def messages(context: Context, packages: tuple[str, ...], *, check: bool) -> None:
    """Derive what the packages of packages.toml, or those named, say when something is wrong, release by release.

    pip fetches the wheels of the others. What messages.toml says of the texts is not touched.
    """
    checkout = context.checkout
    _write(derive_messages(checkout.folder, context.sources, checkout.releases(), packages), check=check)


@main.command()
@click.argument("packages", metavar="[PACKAGE]...", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.pass_obj
def names(context: Context, packages: tuple[str, ...], *, check: bool) -> None:
    """Derive which names the packages of packages.toml, or those named, have, release by release."""
    checkout = context.checkout
    _write(derive_names(checkout.folder, context.sources, checkout.releases(), packages), check=check)


def _write(made: Mapping[Path, str], *, check: bool) -> None:
    """Write files that differ from what is derived, or only name them; exits with 1 if one was to be named."""
    changed = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made[path], encoding="utf-8", newline="\n")
        click.echo(f"{path} is stale" if check else f"wrote {path}")
    sys.exit(1 if check and changed else 0)


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file would change.")
@click.pass_obj
def consumers(context: Context, *, check: bool) -> None:
    """Derive what each release of Transformers and Accelerate fills into a config; pip fetches the wheels."""
    _write(derive_consumers(context.checkout.folder, context.sources), check=check)


@main.command()
@click.pass_obj
def frameworks(context: Context) -> None:
    """Check frameworks.toml against the wheels of Transformers and Accelerate, and print a table.

    Exits with 1 when the signs of an entry are in other releases than it names.
    """
    folder = context.checkout.folder
    packages = read_toml(folder / "messages" / "packages.toml")
    wheels = {
        name: {
            release: wheel(context.sources.cache, name, release, packages[name])
            for release in packages[name]["releases"]
        }
        for name in READ
    }
    found = known_bugs.verify_in_wheels(known_bugs.read(folder / "frameworks.toml"), wheels)
    click.echo(known_bugs.table(found))
    sys.exit(0 if all(one.holds for one in found) else 1)


@main.command()
@click.argument("names", metavar="[BUG]...", nargs=-1)
@click.pass_obj
def bugs(context: Context, names: tuple[str, ...]) -> None:
    """Check the known bugs, or those named, against the sources of every release, and print a table.

    Exits with 1 when the signs of one are in other releases than it names.
    """
    every = known_bugs.read(context.checkout.folder / "known-bugs.toml")
    unknown = sorted(set(names) - every.keys())
    if unknown:
        raise DerivationError(f"known-bugs.toml has no {', '.join(unknown)}")
    asked = {name: bug for name, bug in every.items() if not names or name in names}
    releases = context.checkout.releases()
    found = known_bugs.verify(asked, releases, context.sources.roots(releases))
    click.echo(known_bugs.table(found))
    sys.exit(0 if all(one.holds for one in found) else 1)


@main.command()
@click.argument("release")
@click.pass_obj
def show(context: Context, release: str) -> None:
    """Print the stored facts of one RELEASE as JSON."""
    facts = _stored(context, [release])[release]
    content = {"release": release, "keys": facts.keys, "optimizers": facts.optimizers, "schedulers": facts.schedulers}
    click.echo(json.dumps(content, indent=2, ensure_ascii=False))


@main.command()
@click.argument("old")
@click.argument("new")
@click.pass_obj
def report(context: Context, old: str, new: str) -> None:
    """Print what changed from release OLD to release NEW, as stored."""
    facts = _stored(context, [old, new])
    click.echo(reports.text(reports.differences(facts[old], facts[new])), nl=False)


def _stored(context: Context, releases: list[str]) -> dict[str, Release]:
    known = context.checkout.releases()
    for release in releases:
        if release not in known:
            raise DerivationError(f"DeepSpeed {release} is not in releases.json; derive it with `add {release}`")
    return context.checkout.stored(releases)
