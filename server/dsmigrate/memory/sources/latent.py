"""Tensors of DeepSeek-V3: attention through a latent vector, dense blocks first, experts after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsmigrate.memory.shape import Shape
from dsmigrate.memory.sources import decoder
from dsmigrate.memory.sources.config import ModelConfig
from dsmigrate.memory.sources.decoder import dense, linear


def tensors(config: ModelConfig) -> Iterator[int]:
    """Yield the elements of each tensor; the layers that predict further tokens are not part of the class."""
    hidden, vocabulary = config.positive("hidden_size"), config.positive("vocab_size")
    yield vocabulary * hidden
    for layer in range(config.count("num_hidden_layers")):
        yield from _attention(config, hidden)
        if layer < config.count("first_k_dense_replace"):
            yield from dense(hidden, config.positive("intermediate_size"), gated=True)
        else:
            yield from _experts(config, hidden)
        yield from (hidden, hidden)
    yield hidden
    yield from decoder.head(config, vocabulary, hidden)


def shape(config: ModelConfig) -> Shape:
    """Return the dimensions that activations follow from: keys are made for every head."""
    heads, inner = config.positive("num_attention_heads"), config.count("moe_intermediate_size")
    return replace(
        decoder.shape(config),
        key_value_heads=heads,
        head_size=config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
        inner=inner * (config.count("num_experts_per_tok") + config.count("n_shared_experts")),
        gated=True,
        kept_inner=4,
    )


def _attention(config: ModelConfig, hidden: int) -> Iterator[int]:
    heads, biased = config.positive("num_attention_heads"), config.flag("attention_bias")
    plain, turned, value = (config.count(name) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
    queries, latent = config.count("q_lora_rank", 0), config.positive("kv_lora_rank")
    if queries:
        yield from linear(queries, hidden, bias=biased)
        yield queries
        yield heads * (plain + turned) * queries
    else:
        yield heads * (plain + turned) * hidden
    yield from linear(latent + turned, hidden, bias=biased)
    yield latent
    yield heads * (plain + value) * latent
    yield from linear(hidden, heads * value, bias=biased)


def _experts(config: ModelConfig, hidden: int) -> Iterator[int]:
    count, inner = config.positive("n_routed_experts"), config.positive("moe_intermediate_size")
    yield count * hidden
    yield count * 2 * inner * hidden
    yield count * inner * hidden
    shared = config.count("n_shared_experts") * inner
    if shared:
        yield from dense(hidden, shared, gated=True)
