#!/usr/bin/env bash
# Sets up what the tests need, and runs them all: ruff, mypy, everything on one Python, real DeepSpeed included, what depends
# on the interpreter on the others, what depends on libraries on the oldest, with the lowest version of each, and the
# extension in the real VS Code. A second call reuses the environments.
#
#   bash tests/run.sh              all of it
#   bash tests/run.sh fast         a minute: ruff, mypy, and the unit tests nearest to what has changed
#   bash tests/run.sh unit         three minutes: the unit suite on one Python
#   bash tests/run.sh --setup      only set up
#   bash tests/run.sh --vscode     the extension alone, in the real VS Code
#   PYTHON=python3.12 bash tests/run.sh
#
# What follows `fast` and `unit` goes to pytest.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_QUIET=2
export UV_SYSTEM_CERTS=1  # a network may have an authority of its own, as pip is told by its settings
unset PYTHONDONTWRITEBYTECODE  # hundreds of tests start Python, which would compile the package each time

TORCH=2.13.0
DEEPSPEED=0.19.8
ACCELERATE=1.15.0
TRANSFORMERS=5.23.0
SUPPORTED=(3.10 3.11 3.12 3.13)
export TORCH_EXTENSIONS_DIR="${TORCH_EXTENSIONS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/dsmigrate/torch_extensions}"

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

apt_install() {  # packages, at once: each call of apt-get reads all that is known of packages
    command -v apt-get >/dev/null || die "$* is missing, and there is no apt-get to install it with"
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    say "installing $*"
    local get=("${sudo[@]}" apt-get -qq -o DPkg::Lock::Timeout=600)  # more is set up in the background
    "${get[@]}" install -y "$@" >/dev/null 2>&1 && return
    "${get[@]}" update && "${get[@]}" install -y "$@" || die "$* could not be installed"
}

# Installs what no command of that name, or where there is none no package, says is there: command:package or package.
system() {
    local each missing=()
    for each in "$@"; do
        command -v "${each%%:*}" >/dev/null || dpkg -s "${each##*:}" >/dev/null 2>&1 || missing+=("${each##*:}")
    done
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
}

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# The interpreter of a version: on PATH, or among pyenv's.
find_python() {
    local candidate
    for candidate in "python$1" python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if [ "$(version_of "$candidate")" = "$1" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

main_python() {
    local version
    if [ -n "${PYTHON:-}" ]; then
        printf '%s\n' "$PYTHON"
        return
    fi
    for version in "$(version_of python3)" 3.11 3.12 3.13; do  # Transformers needs 3.11
        if [[ " ${SUPPORTED[*]/3.10/} " == *" $version "* ]] && find_python "$version"; then
            return
        fi
    done
    return 1
}

# uv makes an environment in a tenth of the time that pip takes. Its own is the one that Python's venv makes.
UV=.venv-test-uv/bin/uv

own_uv() {  # interpreter
    [ -x "$UV" ] && return
    "$1" -m venv --clear .venv-test-uv >/dev/null 2>&1 || {
        apt_install "python$(version_of "$1")-venv"
        "$1" -m venv --clear .venv-test-uv || die "$1 cannot make a virtual environment"
    }
    .venv-test-uv/bin/python -m pip install uv || die "uv could not be installed"
}

make_venv() {  # interpreter, folder
    [ -x "$2/bin/python" ] && [ "$(version_of "$2/bin/python")" = "$(version_of "$1")" ] && return
    rm -rf "$2"
    "$UV" -q venv --seed --python "$1" "$2" || die "$1 cannot make a virtual environment"
}

# Runs the installation once for each state of what it depends on: install VENV COMMANDS…
once() {
    local venv=$1 state
    shift
    state="$(cat pyproject.toml "${BASH_SOURCE[0]}" | cksum) $PWD $*"
    [ "$(cat "$venv/.state" 2>/dev/null)" = "$state" ] && return
    "$@" "$venv/bin/python" || die "the packages for $venv could not be installed"
    printf '%s' "$state" >"$venv/.state"
}

get() {  # interpreter, what follows `pip install`
    "$UV" -q pip install --python "$@"
}

install_unit() { get "$1" -e '.[test]'; }

# The lowest versions are taken after what the tests need, some of which asks for newer ones and is not obeyed.
install_lowest() { install_unit "$1" && get "$1" --upgrade --resolution lowest-direct -e .; }

# torch comes first and alone, so that DeepSpeed finds it, and by pip, which takes the build that its index offers. What
# Python compiles of it is what the tests import.
install_all() {
    "$1" -m pip install --no-compile "torch==$TORCH" &&
        get "$1" ninja setuptools wheel numpy &&
        DS_BUILD_OPS=0 get "$1" --no-build-isolation "deepspeed==$DEEPSPEED" &&
        get "$1" "accelerate==$ACCELERATE" "transformers==$TRANSFORMERS" &&
        install_unit "$1"
}

compiler() {  # DeepSpeed compiles its CPU operators when it first needs them
    command -v g++ >/dev/null || apt_install g++
    "$1" -c 'import pathlib, sysconfig, sys; sys.exit(not (pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h").exists())' ||
        apt_install "python$(version_of "$1")-dev"
}

editors() { system nvim:neovim emacs:emacs-nox elpa-eglot elpa-lsp-mode; }  # tests/e2e/editors drives them

vscode() {  # tests/e2e/vscode drives it, in a window of Chromium
    system npm chromium fonts-dejavu-core libkrb5-dev
    (cd vscode-extension && npm ci --silent --no-audit && npm run --silent test:install) >/dev/null ||
        die "the real VS Code could not be installed"
}

failed=()
step() {
    say "$1"
    shift
    "$@" || failed+=("$*")
}

declare -A begun=()
begin() {  # name, command: in the background
    "${@:2}" >"$said/$1" 2>&1 &
    begun[$1]=$!
}
end() {  # name: waits, and shows what it said
    say "$1"
    wait "${begun[$1]}" || failed+=("$1")
    cat "$said/$1"
}

# The unit suite: what goes through many values, and what needs more than Python, is left to the run of everything.
UNIT="not e2e and not slow and not broad and not node and not derivation"
TWO=(-q -n 2 --dist worksteal -p no:cacheprovider)
# What a version of Python can change beside syntax: start and end of processes, files, threads.
INTERPRETER=(tests/cli/test_{follow,process,work}.py tests/{files,launchers,migration})
# The same, on the oldest and the newest alone.
ENDS=(tests/cli/test_{check,migrate}.py tests/{language_server,settings})
# The same, on the newest alone: tables of Unicode, what is read with Python's own ast, and what takes long.
NEWEST=(tests/cli/test_hostile_text.py tests/codemod/{analysis,test_examples.py} tests/verify)
# What goes through libraries of which an old version may do otherwise: LibCST, deepdiff, jsonschema, readers of YAML.
LIBRARIES=(tests/codemod/{analysis,test_examples.py,test_properties.py} tests/{convert,diff,document,editing,schemas}
    tests/test_lowest.py --ignore=tests/diff/test_git.py --ignore=tests/diff/test_no_program_runs.py)

unit_python() {  # an environment for the unit suite alone: that of all tests where it is set up
    if [ -f .venv-test/.state ]; then
        quick=.venv-test
        once "$quick" install_all
        return
    fi
    quick=".venv-test-$(version_of "$python")"
    make_venv "$python" "$quick"
    once "$quick" install_unit
}

python=$(main_python) || die "no Python of ${SUPPORTED[*]/3.10/} is installed"
own_uv "$python"
case "${1:-}" in
fast)
    unit_python
    "$quick/bin/ruff" check . && "$quick/bin/ruff" format --check . || exit 1
    "$quick/bin/mypy" & types=$!
    "$quick/bin/python" -m tests.fast "${TWO[@]}" --dist load "${@:2}"
    tests=$?
    wait "$types" && exit "$tests"
    exit 1
    ;;
unit)
    unit_python
    exec "$quick/bin/python" -m pytest tests --ignore=tests/e2e -m "$UNIT" "${TWO[@]}" "${@:2}"
    ;;
"" | --setup | --vscode) ;;
*) die "there is no $1: fast, unit, --setup, --vscode, or nothing for all of it" ;;
esac
declare -A others=()
missing=()
for version in "${SUPPORTED[@]}"; do
    [ "$version" = "$(version_of "$python")" ] && continue
    if other=$(find_python "$version"); then others[$version]=$other; else missing+=("$version"); fi
done

main_environment() {
    make_venv "$python" .venv-test
    once .venv-test install_all
}

other_environment() {  # version
    local install=install_unit
    [ "$1" = "${SUPPORTED[0]}" ] && install=install_lowest
    make_venv "${others[$1]}" ".venv-test-$1"
    once ".venv-test-$1" "$install"
}

say "setting up .venv-test with $python ($(version_of "$python"))"
compiler "$python"
bin=.venv-test/bin
case "${1:-}" in
--setup)
    editors
    main_environment
    exit 0
    ;;
--vscode)
    main_environment
    vscode
    exec "$bin/python" -m pytest tests/e2e/vscode
    ;;
esac

# Packages are fetched while the first tests run, and the real VS Code is driven while others compute: most of what a
# window does is waiting. It goes first where it wants the processor, or it would lose keys and patience; the other
# Pythons take what everything else leaves.
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$said"' EXIT
in_vscode() { vscode && "$bin/python" -m pytest -q tests/e2e/vscode; }
lint() { "$bin/ruff" check . && "$bin/ruff" format --check . && nice "$bin/mypy"; }
main_environment
begin editors editors
begin "the extension in the real VS Code" in_vscode
begin "ruff, mypy" lint

other_pythons() {  # each by itself: what one of them finds is shown, and the next goes on
    local version status=0 lowest what which
    for version in "${SUPPORTED[@]}"; do
        [ -n "${others[$version]:-}" ] || continue
        lowest='' which=("${INTERPRETER[@]}") what='what depends on the interpreter'
        case "$version" in
        "${SUPPORTED[0]}")
            lowest=1 what='what depends on the interpreter or on libraries, with the lowest versions of these,'
            which+=("${ENDS[@]}" "${LIBRARIES[@]}")
            ;;
        "${SUPPORTED[-1]}") which+=("${ENDS[@]}" "${NEWEST[@]}") ;;
        esac
        say "$what on Python $version"
        (other_environment "$version") &&
            nice -n 15 env DSMIGRATE_LOWEST=$lowest ".venv-test-$version/bin/python" -m pytest "${which[@]}" -m "$UNIT" "${TWO[@]}" ||
            status=1
    done
    return "$status"
}
[ ${#missing[@]} -eq 0 ] || say "not tested, as they are not installed: Python ${missing[*]}"
begin "the other Pythons" other_pythons
end editors

say "everything on Python $(version_of "$bin/python"), with torch $TORCH and DeepSpeed $DEEPSPEED"
# Two processes; what trains stays in one of them, in the order of its tests.
nice "$bin/python" -m pytest -n 2 --dist loadgroup -m "not vscode" --durations=20 || failed+=(pytest)

end "ruff, mypy"
end "the other Pythons"
end "the extension in the real VS Code"
[ ${#failed[@]} -eq 0 ] || printf '\nFAILED:\n%s\n' "$(printf '  %s\n' "${failed[@]}")"
[ ${#failed[@]} -eq 0 ]
