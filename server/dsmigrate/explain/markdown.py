"""A subject as Markdown."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea
from dsmigrate.convert.explained import Explained
from dsmigrate.diff.registry import Explanation
from dsmigrate.docs import changes, conversions, keys, known_bugs, messages, rules
from dsmigrate.docs.pages import page
from dsmigrate.explain.subject import Messages, Overview, ParameterOf, Subject
from dsmigrate.knowledge import Key, Knowledge, TypeFacts
from dsmigrate.knowledge.bugs import Bug
from dsmigrate.languages import say
from dsmigrate.rules import Rule


def text(subject: Subject, known: Knowledge) -> str:
    """Return the Markdown of a subject, without marks of generation."""
    if isinstance(subject, Idea):
        return page(subject).split("\n", 2)[2]
    if isinstance(subject, Rule):
        return rules.page(subject)
    if isinstance(subject, Explanation):
        return changes.page(subject)
    if isinstance(subject, Explained):
        return conversions.page(subject)
    if isinstance(subject, Bug):
        return known_bugs.text(subject)
    if isinstance(subject, Key):
        return keys.key_text(subject, known)
    if isinstance(subject, TypeFacts):
        return keys.type_text(subject)
    if isinstance(subject, ParameterOf):
        return "\n".join(keys.parameter_text(facts, parameter) for facts, parameter in subject.described)
    if isinstance(subject, Messages):
        return _messages(subject)
    return _overview(subject, known)


def _messages(subject: Messages) -> str:
    parts = [messages.text(match.entry, match.text) for match in subject.matches]
    if subject.near:
        parts.insert(0, say("No known message reads like this. Nearest:") + "\n")
    return "\n".join(parts)


def _overview(subject: Overview, known: Knowledge) -> str:
    if subject.codes:
        rows = [f"- `{idea.code}`: {idea.title}" for idea in subject.codes]
        rows += [f"- `{rule.code}`: {say(rule.summary)}" for rule in subject.rules]
        rows += [f"- `{item.code}`: {say(item.summary)}" for item in subject.explanations]
        rows += [f"- `{item.code}`: {say(item.summary)}" for item in subject.conversions]
        return say("# Codes") + "\n\n" + "\n".join(rows) + "\n"
    sections = [key for key in subject.keys if key.is_section]
    others = [key for key in subject.keys if not key.is_section]
    parts = [
        say("# Keys of ds_config.json in DeepSpeed {known_version}", known_version=known.version),
        say("## Sections"),
    ]
    parts.append("\n".join(f"- `{key.path}`: {key.summary}" for key in sections))
    parts += [say("## Keys at the top level"), "\n".join(f"- `{key.path}`: {key.summary}" for key in others)]
    parts.append(say("## Types"))
    parts.append(say("Optimizers: {names}.", names=say(", ").join(f"`{facts.name}`" for facts in known.optimizers())))
    parts.append(say("Schedulers: {names}.", names=say(", ").join(f"`{facts.name}`" for facts in known.schedulers())))
    parts.append(
        say("`dsmigrate explain zero_optimization.stage` prints a key, `dsmigrate explain codes` lists the codes.")
    )
    return "\n\n".join(parts) + "\n"
