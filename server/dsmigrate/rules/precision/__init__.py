"""Rules about fp16, bf16, autocast, loss scaling, the formats of gradients, and keys that their switches leave idle."""
