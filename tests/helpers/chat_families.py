"""Chat templates of the large families of models, written small: what each puts around messages, and nothing else."""

from dataclasses import dataclass, field
from typing import Any

import tiny_tokenizers
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
QWEN_2_5 = "{% if messages[0].role != 'system' %}<|im_start|>system\nBe helpful.<|im_end|>\n{% endif %}" + CHATML
QWEN_3 = (
    "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% set answer = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{{ '<|im_start|>assistant\n' }}{% if loop.index0 > ns.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ answer + '<|im_end|>\n' }}"
    "{% else %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{% endif %}"
)
LLAMA_2 = (
    "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0].content %}"
    "{% else %}{% set rest = messages %}{% set system = false %}{% endif %}"
    "{% for m in rest %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if loop.index0 == 0 and system %}{% set content = '<<SYS>>\n' + system + '\n<</SYS>>\n\n' + m.content %}"
    "{% else %}{% set content = m.content %}{% endif %}"
    "{% if m.role == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
LLAMA_3 = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
MISTRAL_1 = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}"
)
SYSTEM_IN_LAST_USER = (
    "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% set system = messages[0].content %}"
    "{% else %}{% set rest = messages %}{% set system = '' %}{% endif %}"
    "{{ bos_token }}{% for m in rest %}"
    "{% if m.role == 'user' %}{{ '[INST]' + SPACE }}"
    "{% if loop.last and system %}{{ system + '\n\n' }}{% endif %}{{ m.content + '[/INST]' }}"
    "{% else %}{{ SPACE + m.content + eos_token }}{% endif %}{% endfor %}"
)
MISTRAL_3 = SYSTEM_IN_LAST_USER.replace("SPACE", "' '")
MISTRAL_TEKKEN = SYSTEM_IN_LAST_USER.replace("SPACE", "''")
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}{% set role = 'model' if m.role == 'assistant' else m.role %}"
    "{{ '<start_of_turn>' + role + '\n' + m.content | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
PHI_3 = (
    "{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
DEEPSEEK_R1 = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ m.content }}"
    "{% elif m.role == 'user' %}{{ '<｜User｜>' + m.content }}"
    "{% else %}{{ '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜><think>\n' }}{% endif %}"
)
GLM_4 = (
    "[gMASK]<sop>{% for m in messages %}{{ '<|' + m.role + '|>\n' }}"
    "{% if m.role == 'assistant' %}{{ '<think></think>\n' }}{{ m.content.strip() }}{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '\n<think></think>' }}{% endif %}{% endif %}"
)
HARMONY = (
    "{{ '<|start|>system<|message|>You are a model.<|end|>' }}{% for m in messages %}"
    "{% if m.role == 'system' %}{{ '<|start|>developer<|message|># Instructions\n\n' + m.content + '<|end|>' }}"
    "{% elif m.role == 'user' %}{{ '<|start|>user<|message|>' + m.content + '<|end|>' }}"
    "{% elif loop.last and not add_generation_prompt %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|return|>' }}"
    "{% else %}{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
ZEPHYR = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
)
VICUNA = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content + ' ' }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' %}{{ 'USER: ' + m.content }}"
    "{% elif m.role == 'assistant' %}{{ ' ASSISTANT: ' + m.content + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' ASSISTANT:' }}{% endif %}"
)
COMMAND_R = (
    "{{ bos_token }}{% for m in messages %}"
    "{% set name = {'user': 'USER', 'system': 'SYSTEM', 'assistant': 'CHATBOT'}[m.role] %}"
    "{{ '<|START_OF_TURN_TOKEN|><|' + name + '_TOKEN|>' "
    "+ m.content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"
)


@dataclass(frozen=True)
class Family:
    """A kind of model.

    Attributes:
        template: of its conversations.
        control: its control tokens, beside `<s>` and `</s>`.
        kind: of its tokenizer, in `tiny_tokenizers`.
        flags: of its control tokens.
        has_system: whether it takes a system turn.
        later: why what was sent in earlier calls is not what the template writes in a later one; None where it is.
        options: of its template.
        answers_with: the white space that its models begin an answer with.
        start: why its prompts have a beginning token that transformers does not give them; None where they don't.
    """

    template: str
    control: tuple[str, ...] = ()
    kind: str = "byte_level"
    flags: dict[str, bool] = field(default_factory=dict)
    has_system: bool = True
    later: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    answers_with: str = ""
    start: str | None = None

    def backend(self) -> Tokenizer:
        backend: Tokenizer = getattr(tiny_tokenizers, self.kind)()
        backend.add_special_tokens([AddedToken(text, normalized=False, **self.flags) for text in self.control])
        backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in ("<think>", "</think>")])
        return backend

    def tokenizer(self) -> PreTrainedTokenizerFast:
        return PreTrainedTokenizerFast(
            tokenizer_object=self.backend(), bos_token="<s>", eos_token="</s>", chat_template=self.template
        )


HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
TAGS = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
THOUGHTS_KEPT = "the thoughts that the generation prompt opened or closed stay, where the template drops them"
START_KEPT = "the tokenizer puts a beginning token before all text, and the template writes none"
SYSTEM_KEPT = "the system text stays in the first user turn, where the template moves it into the last"

FAMILIES = {
    "ChatML": Family(CHATML),
    "Qwen 2.5": Family(QWEN_2_5),
    "Qwen 3": Family(QWEN_3),
    "Qwen 3 without thinking": Family(QWEN_3, later=THOUGHTS_KEPT, options={"enable_thinking": False}),
    "Llama 2": Family(LLAMA_2, kind="sentence_piece", answers_with=" "),
    "Llama 3": Family(LLAMA_3, HEADERS),
    "Mistral v1": Family(MISTRAL_1, kind="sentence_piece", has_system=False, answers_with=" "),
    "Mistral v3": Family(MISTRAL_3, ("[INST]", "[/INST]"), kind="metaspace_first", later=SYSTEM_KEPT, answers_with=" "),
    "Mistral tekken": Family(MISTRAL_TEKKEN, ("[INST]", "[/INST]"), later=SYSTEM_KEPT),
    "Gemma": Family(
        GEMMA,
        ("<start_of_turn>", "<end_of_turn>"),
        kind="sentence_piece_with_runs_of_spaces",
        has_system=False,
    ),
    "Phi 3": Family(PHI_3, TAGS, kind="sentence_piece", flags={"rstrip": True}, answers_with=" "),
    "DeepSeek R1": Family(DEEPSEEK_R1, ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"), later=THOUGHTS_KEPT),
    "GLM 4": Family(
        GLM_4, ("[gMASK]", "<sop>", *TAGS), later="the template closes thoughts that the generation prompt left open"
    ),
    "gpt-oss": Family(
        HARMONY,
        ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>"),
        later="the channel's header is the model's to write",
    ),
    "Zephyr": Family(ZEPHYR, kind="sentence_piece", start=START_KEPT),
    "Vicuna": Family(VICUNA, kind="metaspace", answers_with=" "),
    "Command R": Family(
        COMMAND_R,
        ("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|CHATBOT_TOKEN|>"),
    ),
}
