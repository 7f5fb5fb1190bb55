"""Small tokenizers of the kinds that models come with."""

import json

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

CORPUS = [
    "The quick brown fox jumps over the lazy dog. The dog sleeps; the fox runs over the hill.",
    "<|im_start|>user\nHow are you?<|im_end|> </s> <s> <tool_call> [CLS]",
    "Übergröße café naïve 世界 🙂 0123456789",
]

SPECIALS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def _with_specials(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    return tokenizer


def byte_level(add_prefix_space: bool = False) -> Tokenizer:
    """As in GPT-2, Qwen and SmolLM."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return _with_specials(tokenizer)


def sentence_piece() -> Tokenizer:
    """As in Llama 2: a space before the text, bytes for what the vocabulary lacks, and a beginning token."""
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[*SPECIALS, *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.train_from_iterator(["the fox the dog"], trainer)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    start = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", start)])
    definition = tokenizer.to_str()
    return _without_byte_tokens_added(definition)


def _without_byte_tokens_added(definition: str) -> Tokenizer:
    parsed = json.loads(definition)
    parsed["added_tokens"] = [token for token in parsed["added_tokens"] if token["content"] in SPECIALS]
    return Tokenizer.from_str(json.dumps(parsed))


def unigram_with_specials_as_pieces() -> Tokenizer:
    """A vocabulary that holds a control token as an ordinary, likely piece."""
    pieces = [
        ("<unk>", -20.0),
        ("▁", -2.0),
        *((chr(code), -5.0) for code in range(0x21, 0x7F)),
        ("</s>", -0.1),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _with_specials(tokenizer)


def metaspace() -> Tokenizer:
    """SentencePiece's Unigram with a space put before a text, as in T5 and XLM; characters it lacks are bytes."""
    words = ["▁the", "▁fox", "▁dog", "▁dogs", "the", "fox", "do", "um", "▁j", "END"]
    pieces = [
        ("<unk>", -20.0),
        *((f"<0x{byte:02X}>", -9.0) for byte in range(256)),
        ("▁", -4.0),
        *((chr(code), -6.0) for code in range(0x21, 0x7F)),
        *((word, -2.0 - len(word) / 10) for word in words),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return _with_specials(tokenizer)


def spaceless() -> Tokenizer:
    """Longest match first, as WordPiece finds it, in a vocabulary where no piece begins with a space."""
    characters = [chr(code) for code in range(0x20, 0x7F)] + list("\n\téü世界🙂☃")
    words = ["the", "fox", "dog", "dogs", "jump", "jumps", "EN", "END"]
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", *characters, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix=""))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return _with_specials(tokenizer)


def sentence_piece_with_runs_of_spaces() -> Tokenizer:
    """As in Gemma 3: no space before the text, and runs of spaces that are added tokens, but no control tokens."""
    pieces = ["▁", *(chr(code) for code in range(0x21, 0x7F)), "th", "the", "▁the", "▁▁", "▁▁▁▁"]
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", *(f"<0x{b:02X}>" for b in range(256)), *pieces])}
    merges = [("t", "h"), ("th", "e"), ("▁", "▁"), ("▁▁", "▁▁"), ("▁", "the")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_tokens([AddedToken(run, special=False, normalized=False) for run in ("▁▁", "▁▁▁▁", "\n\n")])
    return _with_specials(tokenizer)


def byte_level_with_wide_bars() -> Tokenizer:
    """As in DeepSeek: the vocabulary holds its control tokens too, with characters that spell no byte."""
    definition = json.loads(byte_level().to_str())
    name = "<｜begin▁of▁sentence｜>"
    token = len(definition["model"]["vocab"]) + len(definition["added_tokens"])
    definition["model"]["vocab"][name] = token
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": True}
    definition["added_tokens"].append({"id": token, "content": name, **flags})
    return Tokenizer.from_str(json.dumps(definition))


def metaspace_first() -> Tokenizer:
    """As `metaspace`, with the space put before what nothing precedes alone, as in Mistral v3 and later Llamas."""
    tokenizer = metaspace()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return tokenizer


def word_piece() -> Tokenizer:
    """As in BERT: words without their spaces, whose later parts begin with `##`."""
    characters = [chr(code) for code in range(0x21, 0x7F)]
    words = ["[UNK]", *characters, *(f"##{character}" for character in characters), "the", "fox", "jump", "##ed"]
    vocabulary = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
