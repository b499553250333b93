"""What activations and tensors follow from: the dimensions of a transformer."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.memory.model import Model


@dataclass(frozen=True, slots=True)
class Shape:
    """The dimensions of a transformer, in elements.

    ``layers`` counts all blocks, those of a decoder beside an encoder as well; ``cross`` those of them that also look
    at the encoder. ``heads`` and ``key_value_heads`` have ``head_size`` elements each. ``inner`` is the width inside of
    the MLP, of all experts that one token passes together; ``gated`` is whether there is a second product there.
    ``vocabulary`` is 0 where no logits over words are made. ``dropout`` is whether masks are kept. ``upcasts`` is
    whether norms and softmax work in fp32 and keep their input so, as the library's models since LLaMA do.
    ``kept_inner`` is how many tensors of the inner width the MLP keeps: what its function needs, and its last product.
    """

    layers: int
    hidden: int
    heads: int
    key_value_heads: int
    head_size: int
    inner: int
    gated: bool = False
    kept_inner: int = 2
    vocabulary: int = 0
    dropout: bool = True
    upcasts: bool = False
    cross: int = 0
    positions: int | None = None
    """The longest sequence that the model is made for; None where it does not say."""
    tokens: int | None = None
    """Tokens per sample where the model fixes them, as for images."""
    plain_loss: bool = False
    """Whether its class in Transformers hands the logits to torch as they are, and does not bring them to fp32."""
    answer: int | None = None
    """The most tokens of the decoder beside an encoder, where its own are others than those of the encoder."""

    @classmethod
    def of_gpt(cls, layers: int, hidden: int, heads: int, vocabulary: int) -> Shape:
        """Return the shape that papers take for granted: an MLP four times as wide, as many heads for keys, dropout."""
        return cls(layers, hidden, heads, heads, hidden // heads, 4 * hidden, vocabulary=vocabulary)


WHOLE = "All parameters are taken to train; --trainable says otherwise."


@dataclass(frozen=True, slots=True)
class Described:
    """A model as far as somebody described it.

    ``source`` says in words where the count comes from; ``exact`` is whether every tensor is known, and not a typical
    shape. ``notes`` are whole sentences.
    """

    name: str
    model: Model
    shape: Shape | None
    source: str
    exact: bool
    notes: tuple[str, ...] = ()
    block: str = ""
    """The class around the experts, where those may be modules of their own; "" for none."""
    base: str = "16bit"
    """How the file keeps the weights, as a name of ``memory.trained.BASES``."""
