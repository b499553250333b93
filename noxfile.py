"""``nox`` runs lint, types, docs and the unit suite; ``nox -s e2e``, ``coverage`` and ``bench -- FOLDER`` the rest."""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "types", "docs", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


@nox.session
def lint(session: nox.Session) -> None:
    session.install("ruff>=0.9")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    session.install("-e", ".[test]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    session.install("-e", ".")
    session.run("python", "-m", "dsmigrate.docs", "--check")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    session.install("-e", ".[test]")
    session.run("pytest", "tests", "--ignore=tests/e2e", "-n", "auto", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    session.install("-e", ".[test]")
    session.run("pytest", "tests", "--ignore=tests/e2e", "-n", "auto", "--cov", "--cov-report=term", *session.posargs)


@nox.session
def e2e(session: nox.Session) -> None:
    session.install("torch==2.13.0")
    session.install("ninja", "setuptools", "wheel", "numpy")
    session.install("--no-build-isolation", "deepspeed==0.19.8", env={"DS_BUILD_OPS": "0"})
    session.install("accelerate==1.15.0", "transformers==5.23.0")
    session.install("-e", ".[test]")
    session.run("pytest", "tests/e2e", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.benchmarks.startup")
    session.run("python", "-m", "tests.benchmarks.directory")
    session.run("python", "-m", "tests.benchmarks.diff_speed")
    for folder in session.posargs:
        session.run("python", "-m", "tests.benchmarks.migration_cost", folder)
        session.run("python", "-m", "tests.benchmarks.corpus_table", folder, success_codes=[0, 1])
