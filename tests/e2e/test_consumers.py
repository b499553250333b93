"""What Transformers and Accelerate make of "auto", each fact against the real packages.

For every key, and every parameter of an optimizer or scheduler: what is said to be filled gets the value of the source
that is named, in scripts that differ in every argument; what is said to be refused stops the script; what is said to be
left alone arrives as it is. And beside "auto": which values must match, which are replaced, what becomes of a key that
is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.document import parse
from dsmigrate.facts.sources import read
from dsmigrate.knowledge import Auto, AutoEffect, Consumer
from dsmigrate.rules import Settings, Severity, check

from .consumer_child import Judge
from .consumer_paths import concrete, every_path, found, known, placed, same, stated
from .consumer_scripts import PROCESSES, SCRIPTS, SILENT, Config, expected

pytestmark = [pytest.mark.deepspeed, pytest.mark.e2e, pytest.mark.xdist_group("facts")]

FACTS = read(Path(__file__).resolve().parents[2] / "schemas" / "deepspeed").consumers
NO_OBJECT = "AttributeError: 'str' object has no attribute 'get'"
"""What both say of a text in the place of a section that they look into."""


def show(what: str, count: int) -> None:
    print(f"{what}: {count}")


def none(wrong: Mapping[str, Any]) -> None:
    """Fail with a line for each fact that does not hold."""
    assert not wrong, "\n".join(["", *(f"{fact}: {found}" for fact, found in wrong.items())])


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    """The packages, imported once."""
    child = Judge(tmp_path_factory.mktemp("consumers") / "talk.txt")
    yield child
    child.close()


each_consumer = pytest.mark.parametrize("consumer", list(SCRIPTS), ids=lambda consumer: consumer.value)


def test_the_facts_are_about_the_packages_that_are_asked(judge: Judge) -> None:
    assert {consumer.value: judge.versions[consumer.value] for consumer in SCRIPTS} == {
        consumer.value: FACTS[consumer.value]["version"] for consumer in SCRIPTS
    }


@each_consumer
def test_the_scripts_tell_every_source_from_every_other(consumer: Consumer) -> None:
    autos = {auto.source: auto for auto in stated(consumer, AutoEffect.FILLED).values()}
    told = {source: [expected(auto, script) for script in SCRIPTS[consumer]] for source, auto in autos.items()}
    one_thing = ("DummyOptim(lr=…)", "the learning rate of the optimizer")  # which is the dummy where there is one
    none(
        {
            f"{one} / {other}": told[one]
            for one, other in combinations(told, 2)
            if same(told[one], told[other]) and (one, other) != one_thing
        }
    )
    assert {path for path, fill in FACTS[consumer.value]["fills"].items() if fill} == set(
        stated(consumer, AutoEffect.FILLED)
    )


@each_consumer
def test_what_is_filled_has_the_value_of_the_stated_source(judge: Judge, consumer: Consumer) -> None:
    cases = [
        (path, auto, script)
        for path, auto in stated(consumer, AutoEffect.FILLED).items()
        for script in SCRIPTS[consumer]
    ]
    answers = judge.ask([script.asks(placed(path, "auto", script)) for path, _, script in cases])
    wrong = {
        f"{path} at stage {script.stage}, said to be {auto.source}, here {expected(auto, script)!r}": answer
        for (path, auto, script), answer in zip(cases, answers, strict=True)
        if "error" in answer or not same(found(path, answer["config"]), expected(auto, script))
    }
    show(f'{consumer.title}: keys whose "auto" is filled', len(cases) // len(SCRIPTS[consumer]))
    none(wrong)
    fallbacks = {path: auto for path, auto, _ in cases if auto.fallback is not None}
    silent = SCRIPTS[consumer][1]  # neither a variable nor an argument of the plugin
    none({path: auto for path, auto in fallbacks.items() if not same(expected(auto, silent), auto.fallback)})


def test_what_is_usual_arrives_when_every_argument_has_its_default(judge: Judge) -> None:
    usual = {
        path: auto for path, auto in stated(Consumer.TRANSFORMERS, AutoEffect.FILLED).items() if auto.usual is not None
    }
    assert len(usual) >= 10
    answers = judge.ask([SILENT.asks(placed(path, "auto", SILENT)) for path in usual])
    none(
        {
            f"{path}, said to be {auto.usual!r} as a rule": answer
            for (path, auto), answer in zip(usual.items(), answers, strict=True)
            if "error" in answer or not same(found(path, answer["config"]), auto.usual)
        }
    )


@each_consumer
def test_what_is_refused_stops_the_script(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][0]
    refused = list(stated(consumer, AutoEffect.REFUSED))
    sections = {path.rpartition(".")[0] for path in every_path()}
    needed = {"tensor_parallel.autotp_size": "TypeError: '>' not supported between instances of 'str' and 'int'"}
    answers = judge.ask([script.asks(placed(path, "auto", script)) for path in refused])
    counts: Counter[str] = Counter()
    wrong = {}
    for path, answer in zip(refused, answers, strict=True):
        error = answer.get("error", "")
        if error.startswith(f"ValueError: `{concrete(path)}` not found in kwargs"):
            counts["refused by name"] += 1
        elif path in sections and error == NO_OBJECT:
            counts["a section that is looked into"] += 1
        elif path in needed and error == needed[path]:
            counts["a value that is needed before"] += 1
        else:
            wrong[path] = answer
    for how, count in counts.items():
        show(f'{consumer.title}: keys whose "auto" is refused, {how}', count)
    none(wrong)
    assert counts["refused by name"] > 600
    assert counts["a value that is needed before"] == len(needed)


@each_consumer
def test_what_is_left_alone_arrives_as_text(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][0]
    left = list(stated(consumer, None))
    assert left
    assert all("[]" in path for path in left)
    dotted = ({"my.own": "auto"}, {"my_own": {"layer.0": "auto"}}, {"layer.0": {"rate": "auto"}}, {"my_own": ["auto"]})
    configs = [placed(path, "auto", script) for path in left]
    configs += [{"zero_optimization": {"stage": script.stage}} | config for config in dotted]
    answers = judge.ask([script.asks(config) for config in configs])
    show(f'{consumer.title}: places where "auto" stays a text', len(configs))
    none(
        {
            json.dumps(config): answer
            for config, answer in zip(configs, answers, strict=True)
            if "error" in answer or any(answer["config"][name] != value for name, value in config.items())
        }
    )


@each_consumer
def test_what_keeps_a_key_from_being_filled_does_so(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][0]
    cases = [(path, auto) for path, auto in stated(consumer, AutoEffect.FILLED).items() if auto.unless]
    assert cases
    answers = judge.ask([script.asks(placed(path, "auto", script) | {auto.unless: {}}) for path, auto in cases])
    none(
        {
            path: answer
            for (path, _), answer in zip(cases, answers, strict=True)
            if f"`{path}` not found in kwargs" not in answer.get("error", "")
        }
    )


@each_consumer
def test_the_rules_find_an_error_exactly_where_the_packages_stop(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][0]
    batch = expected(known(consumer, "train_micro_batch_size_per_gpu"), script)
    accumulated = expected(known(consumer, "gradient_accumulation_steps"), script)
    beside = {"train_micro_batch_size_per_gpu": batch, "gradient_accumulation_steps": accumulated}
    configs = {path: beside | placed(path, "auto", script) for path in every_path()}
    answers = judge.ask([script.asks(config) for config in configs.values()])
    wrong = {}
    for (path, config), answer in zip(configs.items(), answers, strict=True):
        findings = check(parse(json.dumps(config)), Settings(consumer=consumer))
        errors = [finding.code for finding in findings if finding.severity is Severity.ERROR]
        if bool(errors) is not ("error" in answer):
            wrong[path] = (errors, answer)
    show(f'{consumer.title}: configs with an "auto" that were given to the rules', len(configs))
    none(wrong)


def other_value(auto: Auto, consumer: Consumer) -> object:
    """Return another value than the last script has, of the same kind: that of another script, where there is one."""
    here = expected(auto, SCRIPTS[consumer][-1])
    others = [expected(auto, script) for script in SCRIPTS[consumer][:-1]]
    fixed: Mapping[str, object] = {"0": 1e-6, "true": False, "infinity": 7}
    return fixed.get(auto.source, next((value for value in others if not same(value, here)), None))


@each_consumer
def test_values_that_must_match_must_and_no_others(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][-1]
    autos = stated(consumer, AutoEffect.FILLED)
    pairs = [
        (path, value) for path, auto in autos.items() for value in (expected(auto, script), other_value(auto, consumer))
    ]
    assert all(value is not None for _, value in pairs)
    answers = judge.ask([script.asks(placed(path, value, script)) for path, value in pairs])
    wrong = {}
    counts: Counter[str] = Counter()
    for (path, value), answer in zip(pairs, answers, strict=True):
        auto, argument = autos[path], expected(autos[path], script)
        if auto.must_match and not same(value, argument):
            counts["refused"] += 1
            holds = (
                "mismatch TrainingArguments" in answer.get("error", "")
                and f"- ds {path}={value} vs " in answer["error"]
            )
        else:
            wanted = argument if auto.overwrites else value
            counts["overwritten" if auto.overwrites else "kept"] += 1
            holds = "config" in answer and same(found(path, answer["config"]), wanted)
        if not holds:
            wrong[f"{path} = {value!r}, where the script says {argument!r}"] = answer
    for what, count in sorted(counts.items()):
        show(f"{consumer.title}: values that are {what}", count)
    none(wrong)


def test_every_mismatch_is_listed_at_once(judge: Judge) -> None:
    script = SCRIPTS[Consumer.TRANSFORMERS][-1]
    matched = [(path, auto) for path, auto in stated(script.consumer, AutoEffect.FILLED).items() if auto.must_match]
    config: Config = {"zero_optimization": {"stage": script.stage}}
    for path, auto in matched:
        section, _, name = path.rpartition(".")
        place = config
        for part in section.split(".") if section else ():
            place = place.setdefault(part, {})
        place[name] = other_value(auto, script.consumer)
    config["fp16"]["enabled"] = False
    (answer,) = judge.ask([script.asks(config)])
    assert {path for path, _ in matched if f"- ds {path}=" in answer["error"]} == {path for path, _ in matched}


@each_consumer
def test_only_what_is_said_to_be_written_anyway_is_added(judge: Judge, consumer: Consumer) -> None:
    facts = stated(consumer, AutoEffect.FILLED)
    always = {path: auto for path, auto in facts.items() if auto.overwrites}
    sections = {path.partition(".")[0] for path, auto in facts.items() if auto.adds_section}
    for script in SCRIPTS[consumer]:
        zero = {"zero_optimization": {"stage": script.stage, "offload_optimizer": {}, "offload_param": {}}}
        full = zero | {
            "optimizer": {"type": "AdamW", "params": {}},
            "scheduler": {"type": "WarmupDecayLR", "params": {}},
            "fp16": {"loss_scale": 0},
            "bf16": {},
            "gradient_accumulation_steps": expected(known(consumer, "gradient_accumulation_steps"), script),
        }
        bare, kept = (answer["config"] for answer in judge.ask([script.asks(zero), script.asks(full)]))
        written = {path: expected(auto, script) for path, auto in always.items()}
        precision = {kind: {"enabled": kind == script.precision} for kind in ("fp16", "bf16")}
        precision["fp16"] |= {"auto_cast": True} if script.precision == "fp16" else {}
        assert sections == set(precision)
        assert bare == zero | written | precision | {"gradient_accumulation_steps": 1}
        assert kept == full | {path: value for path, value in written.items() if always[path].unless not in full}


@each_consumer
def test_the_old_name_of_bf16_is_never_read(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][-1]
    (answer,) = judge.ask([script.asks({"zero_optimization": {}, "bfloat16": {"enabled": True}})])
    assert answer["config"]["bf16"] == {"enabled": False}  # which DeepSpeed prefers to the old name


PREFETCH = "zero_optimization.stage3_prefetch_bucket_size"
BUCKET = "zero_optimization.reduce_bucket_size"
SCHEDULE = "scheduler.params.total_num_steps"
WITHOUT: Sequence[tuple[Consumer, str, Mapping[str, Any], str]] = (
    (Consumer.ACCELERATE, "train_micro_batch_size_per_gpu", {"loaders": []}, "requires you to pass at least one of"),
    (Consumer.ACCELERATE, SCHEDULE, {"scheduler": {"warmup_num_steps": 1}}, f"`{SCHEDULE}` not found in kwargs"),
    (Consumer.ACCELERATE, SCHEDULE, {"scheduler": None}, f"`{SCHEDULE}` not found in kwargs"),
    (Consumer.ACCELERATE, BUCKET, {"model": None}, f"auto` entries in the DeepSpeed config file: ['{BUCKET}']"),
    (Consumer.ACCELERATE, BUCKET, {"model": {"text_config": {"hidden_size": 3}}}, "Can find neither"),
    (Consumer.TRANSFORMERS, BUCKET, {"model": None}, f"auto` entries in the DeepSpeed config file: ['{BUCKET}']"),
)


def test_what_has_no_source_is_refused(judge: Judge) -> None:
    scripts = [SCRIPTS[consumer][1] for consumer, *_ in WITHOUT]
    answers = judge.ask(
        [
            script.asks(placed(path, "auto", script), **changed)
            for script, (_, path, changed, _) in zip(scripts, WITHOUT, strict=True)
        ]
    )
    none(
        {
            f"{path} without {changed}": answer
            for (_, path, changed, error), answer in zip(WITHOUT, answers, strict=True)
            if error not in answer.get("error", "")
        }
    )


def test_accelerate_needs_the_micro_batch_to_fill_the_total(judge: Judge) -> None:
    script = SCRIPTS[Consumer.ACCELERATE][0]
    zero: Config = {"zero_optimization": {}, "train_batch_size": "auto"}
    alone, beside = judge.ask([script.asks(zero), script.asks(zero | {"train_micro_batch_size_per_gpu": 11})])
    assert "`train_batch_size` not found in kwargs" in alone["error"]
    assert beside["config"]["train_batch_size"] == 11 * PROCESSES  # an absent accumulation is 1


def test_the_hidden_size_of_a_nested_config_is_found_by_the_trainer_alone(judge: Judge) -> None:
    script = SCRIPTS[Consumer.TRANSFORMERS][0]
    model = {"text_config": {"hidden_size": 3}}
    answers = judge.ask(
        [
            script.asks({"zero_optimization": {"stage": stage, path.partition(".")[2]: "auto"}}, model=model)
            for path, stage in ((BUCKET, 2), (PREFETCH, 3), (PREFETCH, 2))
        ]
    )
    assert found(BUCKET, answers[0]["config"]) == 9
    assert found(PREFETCH, answers[1]["config"]) == 8
    assert "Can find neither `model.config.hidden_size` nor" in answers[2]["error"]


@each_consumer
def test_the_file_is_strict_json(judge: Judge, consumer: Consumer) -> None:
    script = SCRIPTS[consumer][0]
    start, end = '{"zero_optimization": {"stage": 1},', ' "prescale_gradients": true}'
    commented, comma, bare, twice = judge.ask(
        [
            script.asks(text)
            for text in (
                f"{start} # comment\n{end}",
                f"{start} {end[:-1]},}}",
                f"{start} dump_state: true, {end}",
                f'{start} "zero_optimization": {{"stage": 2}}, {end}',
            )
        ]
    )
    assert consumer.reads_strict_json
    assert all("error" in answer for answer in (commented, comma, bare))
    assert twice["config"]["zero_optimization"] == {"stage": 2}  # json sees the last of them alone
