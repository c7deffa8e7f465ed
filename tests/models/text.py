"""Models of words and of sound, from transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import transformers as tf
from torch import Tensor, nn

from .table import Entry, own_loss

WORDS = 99
LENGTH = 12


def ragged(samples: int) -> Tensor:
    """An attention mask of sequences of several lengths, the longest of them as long as the tensor."""
    lengths = torch.randint(3, LENGTH + 1, (samples,))
    lengths[int(torch.randint(0, samples, ()))] = LENGTH
    return (torch.arange(LENGTH) < lengths[:, None]).long()


def words(samples: int) -> dict[str, Tensor]:
    return {"input_ids": torch.randint(3, WORDS, (samples, LENGTH)), "attention_mask": ragged(samples)}


def classified(samples: int) -> dict[str, Tensor]:
    return words(samples) | {"labels": torch.randint(0, 3, (samples,))}


def tagged(samples: int) -> dict[str, Tensor]:
    given = words(samples)
    labels = torch.randint(0, 3, (samples, LENGTH)).masked_fill(given["attention_mask"] == 0, -100)
    return given | {"labels": labels}


def masked(samples: int) -> dict[str, Tensor]:
    given = words(samples)
    chosen = (torch.rand(samples, LENGTH) < 0.3) & given["attention_mask"].bool()
    return given | {"labels": given["input_ids"].masked_fill(~chosen, -100)}


def continued(samples: int) -> dict[str, Tensor]:
    given = words(samples)
    return given | {"labels": given["input_ids"].masked_fill(given["attention_mask"] == 0, -100)}


def unpadded(samples: int) -> dict[str, Tensor]:
    ids = torch.randint(3, WORDS, (samples, LENGTH))
    return {"input_ids": ids, "labels": ids}


def translated(samples: int) -> dict[str, Tensor]:
    labels = torch.randint(3, WORDS, (samples, 7))
    labels[:, 5:] = labels[:, 5:].masked_fill(torch.rand(samples, 2) < 0.5, -100)
    return words(samples) | {"labels": labels}


def answered(samples: int) -> dict[str, Tensor]:
    places = torch.randint(0, LENGTH, (2, samples))
    return words(samples) | {"start_positions": places[0], "end_positions": places[1]}


SMALL = dict(
    vocab_size=WORDS,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=32,
)


def bert(kind: str, config: str = "BertConfig", **options: Any) -> Callable[[float], Any]:
    def build(dropout: float) -> Any:
        settings = dict(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, num_labels=3)
        return getattr(tf, kind)(getattr(tf, config)(**(SMALL | settings | options)))

    return build


def decoder(kind: str, config: str, dropout: str = "attention_dropout", **options: Any) -> Callable[[float], Any]:
    def build(probability: float) -> Any:
        settings: dict[str, Any] = dict(num_key_value_heads=1, pad_token_id=0, bos_token_id=1, eos_token_id=2)
        return getattr(tf, kind)(getattr(tf, config)(**(SMALL | settings | {dropout: probability} | options)))

    return build


def gpt2(kind: str = "GPT2LMHeadModel", **options: Any) -> Callable[[float], Any]:
    def build(dropout: float) -> Any:
        settings = dict(resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout, pad_token_id=0, num_labels=3)
        made = tf.GPT2Config(
            vocab_size=WORDS,
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=32,
            bos_token_id=1,
            eos_token_id=2,
            **(settings | options),
        )
        return getattr(tf, kind)(made)

    return build


def distilbert(kind: str) -> Callable[[float], Any]:
    def build(dropout: float) -> Any:
        config = tf.DistilBertConfig(
            vocab_size=WORDS,
            dim=16,
            n_layers=2,
            n_heads=2,
            hidden_dim=24,
            max_position_embeddings=32,
            dropout=dropout,
            attention_dropout=dropout,
            seq_classif_dropout=dropout,
            num_labels=3,
        )
        return getattr(tf, kind)(config)

    return build


def deberta(dropout: float, kind: str = "DebertaV2ForSequenceClassification") -> Any:
    return bert(
        kind,
        "DebertaV2Config",
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=4,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pooler_hidden_size=16,
        pooler_dropout=dropout,
    )(dropout)


def t5(dropout: float) -> Any:
    return tf.T5ForConditionalGeneration(
        tf.T5Config(
            vocab_size=WORDS,
            d_model=16,
            d_kv=8,
            d_ff=24,
            num_layers=2,
            num_heads=2,
            dropout_rate=dropout,
            decoder_start_token_id=0,
            pad_token_id=0,
        )
    )


def bart(dropout: float, kind: str = "BartForConditionalGeneration", layerdrop: float = 0.0) -> Any:
    return getattr(tf, kind)(
        tf.BartConfig(
            vocab_size=WORDS,
            d_model=16,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            max_position_embeddings=32,
            dropout=dropout,
            attention_dropout=dropout,
            encoder_layerdrop=layerdrop,
            decoder_layerdrop=layerdrop,
            num_labels=3,
        )
    )


def whisper(dropout: float) -> Any:
    return tf.WhisperForConditionalGeneration(
        tf.WhisperConfig(
            vocab_size=WORDS,
            num_mel_bins=8,
            d_model=16,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            max_source_positions=16,
            max_target_positions=16,
            dropout=dropout,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    )


def heard(samples: int) -> dict[str, Tensor]:
    return {"input_features": torch.randn(samples, 8, 32), "labels": torch.randint(3, WORDS, (samples, 7))}


SOUND = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    conv_dim=(8, 8),
    conv_stride=(4, 4),
    conv_kernel=(8, 4),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=8,
    num_conv_pos_embedding_groups=2,
    vocab_size=20,
    classifier_proj_size=8,
)


def wav2vec2(dropout: float, kind: str = "Wav2Vec2ForSequenceClassification", **options: Any) -> Any:
    settings: dict[str, Any] = dict(
        hidden_dropout=dropout,
        attention_dropout=dropout,
        activation_dropout=dropout,
        feat_proj_dropout=dropout,
        final_dropout=dropout,
        layerdrop=0.0,
        mask_time_prob=0.0,
        num_labels=3,
    )
    return getattr(tf, kind)(tf.Wav2Vec2Config(**(SOUND | settings | options)))


def waves(samples: int) -> dict[str, Tensor]:
    return {"input_values": torch.randn(samples, 400), "labels": torch.randint(0, 3, (samples,))}


def spoken(samples: int) -> dict[str, Tensor]:
    labels = torch.randint(1, 20, (samples, 5))
    labels[:, 3:] = labels[:, 3:].masked_fill(torch.rand(samples, 2) < 0.5, -100)
    return {"input_values": torch.randn(samples, 400), "labels": labels}


def lora(dropout: float) -> Any:
    import peft

    config = peft.LoraConfig(r=2, lora_alpha=4, lora_dropout=dropout, target_modules=["q_proj", "v_proj"])
    model: nn.Module = peft.get_peft_model(decoder("LlamaForCausalLM", "LlamaConfig")(0.0), config)
    return model


def lora_bert(dropout: float) -> Any:
    import peft

    config = peft.LoraConfig(
        r=2, lora_alpha=4, lora_dropout=dropout, target_modules=["query", "value"], task_type="SEQ_CLS"
    )
    model: nn.Module = peft.get_peft_model(bert("BertForSequenceClassification")(0.0), config)
    return model


def adapted(build: Callable[[float], Any], config: str, dropout: float, **options: Any) -> Any:
    import peft

    model: nn.Module = peft.get_peft_model(build(0.0), getattr(peft, config)(**options))
    return model


def mamba(dropout: float) -> Any:
    config = tf.MambaConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=2,
        state_size=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return tf.MambaForCausalLM(config)


def checkpointed(build: Callable[[float], Any], dropout: float, **options: Any) -> Any:
    model: Any = build(dropout)
    model.gradient_checkpointing_enable(options or None)
    made: nn.Module = model
    return made


def in_bfloat16(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        loss: Tensor = model(**batch).loss
    return loss


def compiled(build: Callable[[float], Any], dropout: float) -> Any:
    return torch.compile(build(dropout), backend="aot_eager")


entry = partial(Entry, library="transformers", loss=own_loss)
SINGLE = 1e-6  # its norms compute in float32 whatever it is given
llama = decoder("LlamaForCausalLM", "LlamaConfig")

ENTRIES = [
    entry("BERT, sequences", build=bert("BertForSequenceClassification"), batch=classified, dropout=True, cheap=True),
    entry("BERT, tokens", build=bert("BertForTokenClassification"), batch=tagged, dropout=True, ranks=3),
    entry("BERT, masked words", build=bert("BertForMaskedLM"), batch=masked, dropout=True),
    entry("BERT, answers", build=bert("BertForQuestionAnswering", num_labels=2), batch=answered, dropout=True),
    entry(
        "BERT, eager attention",
        build=bert("BertForSequenceClassification", attn_implementation="eager"),
        batch=classified,
        dropout=True,
    ),
    entry(
        "RoBERTa, sequences",
        build=bert("RobertaForSequenceClassification", "RobertaConfig"),
        batch=classified,
        dropout=True,
    ),
    entry("RoBERTa, masked words", build=bert("RobertaForMaskedLM", "RobertaConfig"), batch=masked, dropout=True),
    entry(
        "DistilBERT, sequences",
        build=distilbert("DistilBertForSequenceClassification"),
        batch=classified,
        dropout=True,
        cheap=True,
    ),
    entry("DistilBERT, masked words", build=distilbert("DistilBertForMaskedLM"), batch=masked, dropout=True),
    entry("DeBERTa-v2, sequences", build=deberta, batch=classified, dropout=True),
    entry(
        "DeBERTa-v2, tokens, 3 ranks",
        build=partial(deberta, kind="DebertaV2ForTokenClassification"),
        batch=tagged,
        dropout=True,
        ranks=3,
    ),
    entry(
        "ModernBERT, sequences",
        build=bert(
            "ModernBertForSequenceClassification",
            "ModernBertConfig",
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            cls_token_id=1,
            sep_token_id=2,
            local_attention=6,
        ),
        batch=classified,
    ),
    entry(
        "ESM, masked words",
        build=bert(
            "EsmForMaskedLM",
            "EsmConfig",
            pad_token_id=1,
            mask_token_id=2,
            token_dropout=True,
            position_embedding_type="rotary",
        ),
        batch=masked,
        dropout=True,
        tolerance=SINGLE,
    ),
    entry(
        "ALBERT, sequences",
        build=bert("AlbertForSequenceClassification", "AlbertConfig", embedding_size=8, classifier_dropout_prob=0.0),
        batch=classified,
        dropout=True,
    ),
    entry(
        "ELECTRA, tokens",
        build=bert("ElectraForTokenClassification", "ElectraConfig", embedding_size=8),
        batch=tagged,
        dropout=True,
    ),
    entry("GPT-2 as it comes", build=gpt2(), batch=continued, dropout=True, cheap=True),
    entry("GPT-2, no mask", build=gpt2(), batch=unpadded, dropout=True),
    entry("GPT-2, no cache", build=gpt2(use_cache=False), batch=continued, dropout=True),
    entry("GPT-2, sequences", build=gpt2("GPT2ForSequenceClassification"), batch=classified, dropout=True),
    entry(
        "GPT-NeoX",
        build=decoder("GPTNeoXForCausalLM", "GPTNeoXConfig", hidden_dropout=0.0),
        batch=continued,
        dropout=True,
    ),
    entry("Llama", build=llama, batch=continued, cheap=True),
    entry("Llama, 3 ranks", build=llama, batch=continued, ranks=3, tolerance=SINGLE),
    entry("Mistral", build=decoder("MistralForCausalLM", "MistralConfig", sliding_window=6), batch=continued),
    entry("Qwen2", build=decoder("Qwen2ForCausalLM", "Qwen2Config"), batch=continued),
    entry("Qwen3", build=decoder("Qwen3ForCausalLM", "Qwen3Config", head_dim=8), batch=continued),
    entry("Gemma", build=decoder("GemmaForCausalLM", "GemmaConfig", head_dim=8), batch=continued, tolerance=SINGLE),
    entry(
        "Gemma 3",
        build=decoder("Gemma3ForCausalLM", "Gemma3TextConfig", head_dim=8, sliding_window=6),
        batch=continued,
        tolerance=SINGLE,
    ),
    entry("Phi-3", build=decoder("Phi3ForCausalLM", "Phi3Config"), batch=continued, tolerance=SINGLE),
    entry("Mamba", build=mamba, batch=continued, tolerance=SINGLE),
    entry(
        "Mixtral, all experts at once",
        build=decoder("MixtralForCausalLM", "MixtralConfig", num_local_experts=4),
        batch=continued,
        double=False,
        tolerance=1e-5,
    ),
    entry(
        "Mixtral",
        most=1.0,
        build=decoder(
            "MixtralForCausalLM",
            "MixtralConfig",
            num_local_experts=4,
            output_router_logits=True,
            experts_implementation="eager",
        ),
        batch=continued,
    ),
    entry(
        "OPT",
        build=decoder("OPTForCausalLM", "OPTConfig", "dropout", ffn_dim=24, word_embed_proj_dim=16),
        batch=continued,
        dropout=True,
    ),
    entry("T5", build=t5, batch=translated, dropout=True, cheap=True),
    entry("BART", build=bart, batch=translated, dropout=True),
    entry("BART, layer drop", build=partial(bart, layerdrop=0.3), batch=translated, dropout=True),
    entry("Whisper", build=whisper, batch=heard, dropout=True),
    entry("Wav2Vec2, sequences", build=wav2vec2, batch=waves, dropout=True),
    entry("Wav2Vec2, CTC", build=partial(wav2vec2, kind="Wav2Vec2ForCTC"), batch=spoken, dropout=True, cheap=True),
    entry(
        "Wav2Vec2, CTC, masks in time",
        build=partial(wav2vec2, kind="Wav2Vec2ForCTC", mask_time_prob=0.2, mask_time_length=2, layerdrop=0.2),
        batch=spoken,
        dropout=True,
        most=0.56,
    ),
    entry("LoRA on Llama", library="peft", build=lora, batch=continued, dropout=True),
    entry("LoRA on BERT", library="peft", build=lora_bert, batch=classified, dropout=True),
    entry(
        "DoRA on Llama",
        library="peft",
        build=partial(
            adapted, llama, "LoraConfig", r=2, use_dora=True, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"
        ),
        batch=continued,
    ),
    entry(
        "IA3 on Llama",
        library="peft",
        build=partial(
            adapted,
            llama,
            "IA3Config",
            target_modules=["k_proj", "v_proj", "down_proj"],
            feedforward_modules=["down_proj"],
            task_type="CAUSAL_LM",
        ),
        batch=continued,
    ),
    entry(
        "Prefixes on BERT",
        library="peft",
        build=partial(
            adapted,
            bert("BertForSequenceClassification"),
            "PrefixTuningConfig",
            num_virtual_tokens=4,
            task_type="SEQ_CLS",
            prefix_projection=True,
            encoder_hidden_size=8,
        ),
        batch=classified,
    ),
    entry("Llama, checkpointed", build=partial(checkpointed, llama), batch=continued),
    entry(
        "BERT, checkpointed",
        build=partial(checkpointed, bert("BertForSequenceClassification")),
        batch=classified,
        dropout=True,
    ),
    entry(
        "BERT, checkpointed reentrantly",
        build=partial(checkpointed, bert("BertForSequenceClassification"), use_reentrant=True),
        batch=classified,
        dropout=True,
        most=1.0,
    ),
    entry("Llama, compiled", build=partial(compiled, llama), batch=continued),
    entry(
        "BERT, autocast",
        build=bert("BertForSequenceClassification"),
        batch=classified,
        loss=in_bfloat16,
        double=False,
        tolerance=2e-2,
        dropout=True,
    ),
    entry("Llama, autocast", build=llama, batch=continued, loss=in_bfloat16, double=False, tolerance=2e-2),
]
