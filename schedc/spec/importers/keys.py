"""Keys of Hugging Face configs that no family reads: those that change nothing, and those that a spec cannot say."""

SILENT_KEYS = frozenset(
    {
        # which class and which version wrote the file
        "_name_or_path", "auto_map", "is_llama_config", "model_type", "transformers_version", "transformers.js_config",
        # training
        "attention_dropout", "attn_pdrop", "embd_pdrop", "embedding_dropout", "hidden_dropout", "initializer_range",
        "resid_pdrop", "residual_dropout",
        # how the checkpoint was stored, and splitting tricks that leave the result as it is
        "dtype", "pretraining_tp", "torch_dtype",
        # the tokenizer's business
        "bos_token_id", "pad_token_id", "unk_token_id", "sep_token_id",
        # how transformers runs it
        "_attn_implementation", "attention_softmax_in_fp32", "cache_implementation", "chunk_size_feed_forward",
        "output_attentions", "output_hidden_states", "output_router_logits", "return_dict",
        "scale_attention_softmax_in_fp32", "use_cache",
        # defaults of generation, and of transformers' own encoder-decoder models, that older versions wrote out
        "bad_words_ids", "begin_suppress_tokens", "decoder_start_token_id", "diversity_penalty", "do_sample",
        "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
        "forced_eos_token_id", "is_decoder", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size",
        "num_beam_groups", "num_beams", "num_return_sequences", "output_scores", "prefix", "remove_invalid_values",
        "repetition_penalty", "return_dict_in_generate", "suppress_tokens", "temperature", "tf_legacy_loss",
        "tokenizer_class", "top_k", "top_p", "torchscript", "typical_p", "use_bfloat16",
        # other tasks than generating text
        "id2label", "finetuning_task", "label2id", "problem_type", "task_specific_params",
    }
)  # fmt: skip

_STATE_SPACE = "state-space mixers are not supported"
_SPARSE = "sparse attention is not supported"
_CONV = "convolution mixers are not supported"

INEXPRESSIBLE_KEYS = {
    "is_encoder_decoder": "only decoders are supported",
    "add_cross_attention": "cross-attention is not supported",
    "cross_attention_hidden_size": "cross-attention is not supported",
    "pruned_heads": "pruned heads are not supported",
    "tie_encoder_decoder": "only decoders are supported",
    "compression_config": "quantised checkpoints of this form are not supported; import the bf16 config",
    "n_ctx": "learned positions are not supported",
    "n_positions": "learned positions are not supported",
    "alibi": "ALiBi is not supported",
    "parallel_attn": "attention and feed-forward in parallel are not supported",
    "use_parallel_residual": "attention and feed-forward in parallel are not supported",
    "clip_qkv": "clipped q, k and v are not supported",
    "block_configs": "layers that differ one by one are not supported",
    "hybrid_override_pattern": _STATE_SPACE,
    "index_topk": _SPARSE,
    **dict.fromkeys(
        ["mamba_num_heads", "mamba_head_dim", "mamba_d_state", "ssm_state_size"],
        _STATE_SPACE,
    ),
    **dict.fromkeys(["conv_L_cache", "conv_dim", "conv_kernel"], _CONV),
}  # fmt: skip
"""Why a spec cannot express a key, when the key's value switches something on."""

_EXPERTS = "experts are not known in this family"
_MLA = "latent attention (MLA) is not known in this family"
_LINEAR = "linear attention is not known in this family"
_DRAFT = "layers that predict further tokens are not known in this family"

OTHER_FAMILIES_KEYS = {
    "vision_config": "only text models are supported",
    "audio_config": "only text models are supported",
    "attention_chunk_size": "chunked attention is not known in this family",
    "no_rope_layers": "layers without rope are not known in this family",
    "swiglu_limit": "clamped activations are not known in this family",
    "residual_gate_temperature": "gated residuals are not known in this family",
    "attn_output_gate": "a gate of attention's output is not known in this family",
    "output_multiplier": "a multiplier of the logits is not known in this family",
    "qk_scale_factor": "a norm of q and k without weight is not known in this family",
    **dict.fromkeys(["activation_situ_beta", "activation_situ_linear_beta"], "situ is not known in this family"),
    "attn_res_block_size": "attention residuals are not known in this family",
    **dict.fromkeys(
        ["linear_attn_config", "linear_num_heads", "linear_head_dim", "linear_num_key_heads",
         "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
         "full_attention_interval", "kda_num_heads"],
        _LINEAR,
    ),
    **dict.fromkeys(
        ["num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts", "num_shared_experts",
         "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_intermediate_size",
         "moe_hidden_size", "shared_expert_intermediate_size", "first_k_dense_replace", "mlp_layer_types",
         "routed_scaling_factor", "router_aux_loss_coef", "moe_layer_freq", "moe_router_activation_func",
         "decoder_sparse_step", "routed_expert_hidden_size", "scoring_func", "topk_method"],
        _EXPERTS,
    ),
    **dict.fromkeys(["kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"], _MLA),
    **dict.fromkeys(["num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"], _DRAFT),
}  # fmt: skip
"""Keys that some family's importer reads: what they mean, for a family whose importer does not."""
