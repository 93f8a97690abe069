"""Scorers of pairs: BLIP's matching head, and models that answer whether a caption fits a picture."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from crosslens.core import CrosslensError, Notify, UsageError
from crosslens.encode.batches import as_pictures
from crosslens.encode.chat import MEDIA, WORKERS, Endpoint, picture_file_url, picture_url, read_address
from crosslens.encode.encoder import named_with
from crosslens.encode.loading import PretrainedModel, ids_and_mask
from crosslens.encode.options import EncodeOptions
from crosslens.encode.pairs import PAIR_SCORERS, PairScorer
from crosslens.storage import Array, fingerprint


class _Matcher(PretrainedModel):
    """A model of the transformers library with an image tower and a head that says whether a text matches."""

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """Logit of "matches" minus logit of "does not"; an image that occurs again is looked at once."""
        keys = [str(image) if isinstance(image, str | Path) else id(image) for image in images]
        distinct = list(dict(zip(keys, images, strict=True)).items())
        row_of = {key: row for row, (key, _) in enumerate(distinct)}
        pixels = self._pixels(as_pictures([image for _, image in distinct]))
        text_inputs = ids_and_mask(self._tokens(texts))
        with self._compute.torch.inference_mode():
            image_states = self.model.vision_model(**pixels).last_hidden_state
            image_states = image_states[[row_of[key] for key in keys]]
            mask = image_states.new_ones(image_states.shape[:2]).long()
            image_inputs = {"encoder_hidden_states": image_states, "encoder_attention_mask": mask}
            logits = self._logits(text_inputs, image_inputs)
            return self._compute.numpy(logits[:, 1] - logits[:, 0])

    @abstractmethod
    def _logits(self, text_inputs: dict[str, Any], image_inputs: dict[str, Any]) -> Any:
        """Two logits per pair: that the text does not match, and that it does."""


@PAIR_SCORERS.register("blip", example="Salesforce/blip-itm-base-coco", extra="encoders", names=named_with("blip"))
class BlipMatcher(_Matcher):
    """BLIP's matching head (ITM): the log-odds that the text describes the image."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("blip", source, options, "a pair scorer", "BlipForImageTextRetrieval", types=("blip",))

    def _logits(self, text_inputs: dict[str, Any], image_inputs: dict[str, Any]) -> Any:
        return self.model.itm_head(self.model.text_encoder(**text_inputs, **image_inputs).last_hidden_state[:, 0])


@PAIR_SCORERS.register("blip2", example="Salesforce/blip2-itm-vit-g", extra="encoders", names=named_with("blip2"))
class Blip2Matcher(_Matcher):
    """BLIP-2's matching head (ITM): the log-odds that the text describes the image, a mean over the query tokens."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        super().__init__("blip2", source, options, "a pair scorer", "Blip2ForImageTextRetrieval", types=("blip-2",))

    def _logits(self, text_inputs: dict[str, Any], image_inputs: dict[str, Any]) -> Any:
        mask = text_inputs["attention_mask"]
        queries = self.model.query_tokens.expand(len(mask), -1, -1)
        count = queries.shape[1]
        outputs = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=text_inputs["input_ids"], query_embeds=queries),
            query_length=count,
            attention_mask=self._compute.torch.cat([mask.new_ones(len(mask), count), mask], dim=1),
            **image_inputs,
        )
        head = self.model.itm_head
        return head(outputs.last_hidden_state[:, :count].to(head.weight.dtype)).mean(dim=1)


QUESTION = 'Does this figure show "{}"? Please answer yes or no.'
YES, NO = "yes", "no"
_QUESTION_HASH = fingerprint("vqa", {"question": QUESTION})[:12]
"""Other questions, other scores."""
_SPELLINGS = ("Yes", "yes", " Yes", " yes")


@PAIR_SCORERS.register(
    "vqa", example="llava-hf/llava-1.5-7b-hf", extra="encoders", names=named_with("vqa", "llava", "vl")
)
def load_vqa(source: str, options: EncodeOptions) -> PairScorer:
    """VQAScore: the probability of "Yes" from a vision-language model, local or http://…/v1?model=NAME."""
    if not source.startswith(("http://", "https://")):
        return LocalVqa(source, options)
    endpoint, keywords = read_address(source, "scorer vqa", {"workers": WORKERS}, {})
    return HttpVqa(endpoint, options.notify, **keywords)


class LocalVqa(PretrainedModel):
    """A vision-language model of the transformers library, asked on this machine."""

    def __init__(self, source: str, options: EncodeOptions) -> None:
        kind = "AutoModelForImageTextToText"
        super().__init__("vqa", source, options, "a pair scorer", kind, images=False, texts=False, joint=True)
        self.revision += f"-{_QUESTION_HASH}"
        tokenizer = self._processor.tokenizer
        tokenizer.padding_side = "left"  # the answer begins right after the last token of the question
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        # The tokens that say yes.
        encoded = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in _SPELLINGS]
        single = {ids[0] for ids in encoded if len(ids) == 1} - {tokenizer.unk_token_id}
        if not single:
            raise UsageError(f"{source} has no single token for Yes", fix="use another vision-language model")
        self._yes = sorted(single)

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """The probability that the first token of the answer is "Yes", in any of its spellings."""
        prompts = [self._prompt(QUESTION.format(text)) for text in texts]
        # One list per prompt: processors of models that take several pictures ask for that.
        pictures = [[picture] for picture in as_pictures(images)]
        inputs = self._processor(images=pictures, text=prompts, padding=True, return_tensors="pt")
        torch = self._compute.torch
        with torch.inference_mode():
            answer = self.model.generate(
                **self._compute.inputs(dict(inputs)), max_new_tokens=1, do_sample=False,
                output_logits=True, return_dict_in_generate=True,
            )  # fmt: skip
            probabilities = torch.softmax(answer.logits[0].float(), dim=-1)
            return self._compute.numpy(probabilities[:, self._yes].sum(dim=-1))

    def _prompt(self, question: str) -> str:
        if getattr(self._processor, "chat_template", None):
            content = [{"type": "image"}, {"type": "text", "text": question}]
            message = [{"role": "user", "content": content}]
            return str(self._processor.apply_chat_template(message, add_generation_prompt=True, tokenize=False))
        mark = getattr(self._processor, "image_token", None)
        return f"{mark}\n{question}" if isinstance(mark, str) else question


class HttpVqa:
    """A vision-language model behind an OpenAI-compatible address, several requests at a time."""

    def __init__(self, endpoint: Endpoint, notify: Notify, workers: int = 4) -> None:
        self.name = f"vqa:{endpoint.model}@{endpoint.host}"
        self.revision = _QUESTION_HASH
        self._endpoint, self._notify, self._workers = endpoint, notify, workers
        self._announced = False

    def score_pairs(self, images: Sequence[Any], texts: Sequence[str]) -> Array:
        """The probability of "Yes" among the likeliest first tokens that the server names."""
        if not self._announced:
            self._announced = True
            where = f"{self._endpoint.host} (model {self._endpoint.model})"
            self._notify(f"note: captions and pictures are sent to {where}")
        with ThreadPoolExecutor(self._workers) as pool:
            return np.array(list(pool.map(self._ask, images, texts)), np.float32)

    def _ask(self, image: Any, text: str) -> float:
        if isinstance(image, str | Path) and Path(image).suffix.lower() in MEDIA and Path(image).is_file():
            url = picture_file_url(Path(image))
        else:
            buffer = io.BytesIO()
            as_pictures([image])[0].save(buffer, format="PNG")
            url = picture_url(buffer.getvalue())
        content = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": QUESTION.format(text)},
        ]
        tokens = self._endpoint.first_token([{"role": "user", "content": content}])
        shares = {
            word: sum(exp(value) for token, value in tokens.items() if token.strip(" ▁Ġ.,!\n\"'").lower() == word)
            for word in (YES, NO)
        }
        if not shares[YES] and not shares[NO]:
            likeliest = max(tokens, key=lambda token: tokens[token])
            raise CrosslensError(
                f"{self._endpoint.model} answers {likeliest!r}, and neither yes nor no is among its likeliest words",
                fix="use a model that answers directly, without thinking first",
            )
        return min(1.0, shares[YES])
