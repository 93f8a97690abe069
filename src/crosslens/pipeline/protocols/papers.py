"""The protocols of five papers."""

from __future__ import annotations

from crosslens.pipeline.protocols.protocol import Convention, Protocol, add_protocol

_HITS = ("Hit@1", "Hit@5", "Hit@10")
_ARGSORT = "the lower index first among equal scores; the paper says nothing of ties"


def _at(metric: str) -> tuple[str, ...]:
    return tuple(f"{metric}@{k}" for k in (1, 5, 10))


_FIVE_PHI = ("cider:split", "spice")
add_protocol(
    Protocol(
        "five",
        "Biten et al., Is an Image Worth Five Sentences? (WACV 2022)",
        "Recall beside graded metrics: what was retrieved counts by its similarity to the query's captions.",
        metrics=(
            *_HITS, *_at("Recall"), "Rsum",
            *(name for phi in _FIVE_PHI for name in (
                *_at(f"NCS[{phi}, zero]"), f"Nsum[{phi}, zero]", *_at(f"NCS[{phi}, non-gt, zero]"),
                f"Nsum[{phi}, non-gt, zero]", *_at(f"SR[{phi}, m=5, non-gt, by-image]"),
            )),
        ),
        phi={
            "cider:split": "captions in lower case, split at spaces",
            "spice": "scene graphs of the captions: lemmas, synonyms by WordNet",
        },
        settings={"evaluate": {"ties": "stable"}, "agreement": {"phi": _FIVE_PHI}, "curve": {"phi": "spice"}},
        conventions=(
            Convention("R@k", "Hit@k", "the tables' R@k is 1 if any relevant item is in the top k; Recall@k is the R "
                       "of the paper's equations"),
            Convention("φ", "cider:split and spice", "the paper evaluates with SPICE, and its own code splits captions "
                       "at spaces for CIDEr", ("evaluate", "agreement", "curve")),
            Convention("NCS, nothing similar", "0", "a query whose ideal sum is 0 counts as 0, as in the paper's code"),
            Convention("NCS, N columns", "non-gt", "ground-truth items are taken out of the retrieved and the ideal "
                       "list"),
            Convention("SR", "by-image, non-gt, m = 5", "the captions of the query's image vote for the 5 most similar "
                       "other images, in both directions; figure 3 varies m", ("evaluate", "curve")),
            Convention("ties", "stable", _ARGSORT),
            Convention("correlation", "Pearson", "Table 1 has Pearson's coefficient, for all pairs and for those "
                       "outside the ground truth", ("agreement",)),
        ),
    )
)  # fmt: skip

_BRIT_PERTURBATIONS = (
    "char_swap", "missing_char", "extra_char[any]", "nearby_char", "synonym_noun[released]", "synonym_adj[released]",
    "distraction_true", "distraction_false", "shuffle_nouns_and_adj", "shuffle_all_words",
    "shuffle_allbut_nouns_and_adj", "shuffle_within_trigrams", "shuffle_trigrams",
)  # fmt: skip
add_protocol(
    Protocol(
        "brit",
        "Hendriksen et al., Assessing Brittleness of Image-Text Retrieval Benchmarks",
        "Capped recall, sums per direction and cross-modal DCG; thirteen perturbations of text queries.",
        metrics=(*_at("CappedRecall"), "i2t/Rsum[capped]", "t2i/Rsum[capped]", "DCGcm@10"),
        settings={
            "evaluate": {"ties": "stable"},
            "robustness": {
                "directions": ("t2i",), "perturbations": _BRIT_PERTURBATIONS, "metrics": _HITS, "match_by": "text",
            },
            "granularity": {
                "features": (
                    "adjectives", "complement_phrases", "determiners", "cardinals", "concept_depth", "characters",
                    "words", "diversity",
                )
            },
        },
        conventions=(
            Convention("R@k", "CappedRecall@k", "relevant items in the top k, divided by the smaller of k and their "
                       "number"),
            Convention("rsum", "i2t/Rsum[capped], t2i/Rsum[capped]", "R@1 + R@5 + R@10 of one direction, in percent"),
            Convention("DCG_CM", "DCGcm@10", "the paper has one relevance encoder for all models, CLIP ViT-B/32: pass "
                       "its scores by --scores-from; without, the model's own scores are used, and the name says so. "
                       "The paper rounds values to 4 decimals, which the 2 it prints do not show"),
            Convention("gallery", "every photo of the folder", "the paper's text queries search all of val2014, or all "
                       "31k photos of Flickr30k, not the test images alone", ("evaluate", "robustness")),
            Convention("ties", "stable", _ARGSORT),
            Convention("direction", "t2i", "text queries are perturbed, and nothing else", ("robustness",)),
            Convention("perturbations", "the paper's thirteen", "an extra character is any letter; synonyms as in the "
                       "released code: the first noun or adjective that has one, its first other lemma, no inflection",
                       ("robustness",)),
            Convention("decrease of rsum", "percent", "Table 4 is nearer to percent of the rsum before than to points; "
                       "both are shown", ("robustness",)),
            Convention("groups", "Hit@1 + Hit@5 + Hit@10", "a caption is decreased, increased or unchanged by this sum "
                       "of t2i; captions are matched by their text, where texts are known", ("robustness",)),
            Convention("articles", "determiners (tag DT)", "the figures printed as articles are those of determiners",
                       ("granularity",)),
            Convention("quantifiers", "cardinals (tag CD)", "the figures printed as quantifiers are those of cardinal "
                       "numbers", ("granularity",)),
        ),
    )
)  # fmt: skip

add_protocol(
    Protocol(
        "expl",
        "Lymperaiou et al., Towards Explainable Evaluation of Language Models (COLING 2022)",
        "Text-only retrieval: ranks of the first relevant item, and failures explained by concepts.",
        metrics=(*_HITS, "MRR@5", "MRR@10", "MRR", "MedR", "Fails"),
        settings={
            "evaluate": {"ties": "stable"},
            "robustness": {
                "image_text": "mean", "perturbations": ("antonym[any]", "color_all", "color_in", "size"),
                "metrics": (*_HITS, "MRR@5", "MRR@10", "MRR", "MedR", "Fails"),
            },
            "explain": {"threshold": 1.0, "base": "ground_truth", "areas": "share"},
        },
        conventions=(
            Convention("direction", "t2t", "a caption searches texts that stand for the images (--image-text); figures "
                       "of i2t and t2i are not the paper's setting", ("evaluate", "robustness", "explain")),
            Convention("Recall@k", "Hit@k", "every query has one relevant item, so recall and hit rate are the same"),
            Convention("MRR@k", "rank ≤ k", "the paper prints the condition the other way round"),
            Convention("ties", "stable", _ARGSORT),
            Convention("perturbations", "antonym[any], color_all, color_in, size", "the paper's adversarial words: an "
                       "antonym is any that WordNet has for any adjective", ("robustness",)),
            Convention("CA, NCS, CE", "concepts of both images", "agreement, similarity of what is not common "
                       "(NonCommonSimilarity) and differences in counts, over WordNet synsets", ("explain",)),
            Convention("SD", "binary, T = 1, base A_g", "a matched pair of boxes differs if |A_g − A_r| / A_g is at "
                       "least 1; a box that shrank never does", ("explain",)),
        ),
    )
)  # fmt: skip

add_protocol(
    Protocol(
        "recos",
        "ReCoS: A Novel Benchmark for Cross-Modal Image-Text Retrieval in Complex Real-Life Scenarios",
        "Hit rates in both directions, per task.",
        metrics=_HITS,
        settings={"evaluate": {"ties": "stable"}},
        conventions=(
            Convention("R@k", "Hit@k", "1 if any relevant item is in the top k"),
            Convention("tasks", "Hit@1 by task", "figures 6 and 7: crosslens show RUN --by task --metrics Hit@1"),
            Convention("v2", "t2i", "its additional images have no captions, so the paper leaves i2t out; so it is "
                       "here wherever images have none"),
            Convention("dis(t)", "T = 1", "the temperature of the discriminability check: build recos --temperature 1"),
            Convention("ties", "stable", _ARGSORT),
        ),
        without_captions=("t2i",),
    )
)  # fmt: skip

add_protocol(
    Protocol(
        "imp",
        "Image Polysemy in Contrastive Vision-Language Learning",
        "Hit rates, and ranks over every relevant pair.",
        metrics=(*_HITS, "MeanR[all]", "MedR[all]", "i2t/mAP@R", "t2i/AP"),
        settings={"evaluate": {"ties": "stable"}},
        conventions=(
            Convention("R@K", "Hit@k", "1 if any relevant item is in the top k"),
            Convention("meanR, medR", "MeanR[all], MedR[all]", "over every pair of a query and a relevant item: a medR "
                       "of 531 beside an R@10 of 38.8 % cannot be that of the best-ranked item"),
            Convention("mAP@R", "i2t/mAP@R, t2i/AP", "a t2i mAP@R above R@1 with one relevant item can only be the "
                       "full average precision"),
            Convention("Easy, Medium, Hard", "analyze categories", "t2i R@5 of Table 4 divides by all captions: its "
                       "columns add up to Table 3; crosslens shows the share of the category's own beside it"),
            Convention("AUPRC", "average precision", "each category's pairs against one rejected caption per image: "
                       "analyze categories --rejected FILE"),
            Convention("ties", "stable", _ARGSORT),
        ),
    )
)  # fmt: skip
