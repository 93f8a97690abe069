"""Protocols of papers: what they set, what they refuse, what is left out, and what a result says of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crosslens as cl
from crosslens.core import InputError, MissingExtraError, UnknownNameError, UsageError
from crosslens.metrics import parse_metric, parse_metrics
from crosslens.perturbations import chosen_perturbations
from crosslens.pipeline import PROTOCOLS, Convention, Protocol, ProtocolList, Recipe, add_protocol, find_protocol
from crosslens.pipeline.protocols import protocol as following
from crosslens.pipeline.protocols.protocol import COMMANDS
from crosslens.report import EXPORTS
from tests.pipeline.graded_data import DATASET, SCORES
from tests.pipeline.robustness_study.letters import Letters, captions, text_study

FIVE_CIDER = (
    *(f"NCS[cider:split, zero]@{k}" for k in (1, 5, 10)),
    *(f"NCS[cider:split, non-gt, zero]@{k}" for k in (1, 5, 10)),
    *(f"SR[cider:split, m=5, non-gt, by-image]@{k}" for k in (1, 5, 10)),
)
SMALL = {"resamples": 0}


@pytest.fixture(scope="module")
def five() -> cl.Run:
    return cl.evaluate(DATASET, scores=SCORES, protocol="five", name="model", **SMALL)


def test_the_five_papers() -> None:
    assert PROTOCOLS.names() == ("brit", "expl", "five", "imp", "recos")


@pytest.mark.parametrize("name", ["expl", "five", "imp", "recos"])
def test_every_metric_exists(name: str) -> None:
    assert parse_metrics(PROTOCOLS[name].value.metrics)


def test_papers_that_mean_the_literal_form_have_it() -> None:
    brit, expl = (PROTOCOLS[name].value.setting("robustness", "perturbations") for name in ("brit", "expl"))
    assert "extra_char[any]" in brit
    assert "extra_char" not in brit
    assert expl == ("antonym[any]", "color_all", "color_in", "size")


def test_everything_that_brit_names_exists() -> None:
    protocol = PROTOCOLS["brit"].value
    assert parse_metrics(protocol.metrics)
    perturbations = protocol.setting("robustness", "perturbations")
    assert chosen_perturbations(list(perturbations)) == perturbations
    measured = cl.granularity(captions(2)).table.columns
    assert set(protocol.setting("granularity", "features")) <= set(measured)


@pytest.mark.parametrize("entry", list(PROTOCOLS), ids=lambda entry: entry.name)
def test_every_convention_is_a_sentence(entry: object) -> None:
    protocol = entry.value
    assert protocol.paper
    assert set(protocol.settings) <= set(COMMANDS)
    for convention in protocol.conventions:
        assert convention.value
        assert len(convention.about.split()) >= 2, convention
        assert set(convention.commands) <= set(protocol.settings), convention
    assert str(ProtocolList((protocol,))).startswith(f"{protocol.name}: ")


def test_five_has_its_metrics_in_both_directions(five: cl.Run) -> None:
    for metric in (*FIVE_CIDER, *(name.replace("cider:split", "spice") for name in FIVE_CIDER), "Hit@1", "Recall@5"):
        assert {f"i2t/{metric}", f"t2i/{metric}"} <= set(five)
    assert {"Rsum", "Nsum[cider:split, zero]", "Nsum[spice, non-gt, zero]"} <= set(five)


def test_five_measures_what_its_metrics_measure(five: cl.Run) -> None:
    """The figures are those of the same metrics asked for by name, with φ as a matrix."""
    matrix = cl.relevance_matrix(DATASET, "cider:split")
    names = " ".join(name.replace("cider:split", "mine") for name in FIVE_CIDER)
    plain = cl.evaluate(DATASET, scores=SCORES, metrics=names, phi={"mine": matrix}, **SMALL)
    for name in plain:
        np.testing.assert_allclose(plain[name].values, five[name.replace("mine", "cider:split")].values, rtol=1e-6)


def test_run_json_names_phi_tokens_and_variants(five: cl.Run, tmp_path: Path) -> None:
    five.save(tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    protocol = content["protocol"]
    assert (protocol["name"], protocol["phi"]) == ("five", ["cider:split", "spice"])
    assert protocol["paper"].startswith("Biten et al.")
    assert protocol["tokens"]["cider:split"] == "captions in lower case, split at spaces"
    assert protocol["variants"]["NCS"][:2] == ["cider:split, zero", "cider:split, non-gt, zero"]
    assert protocol["variants"]["SR"][0] == "cider:split, m=5, non-gt, by-image"
    assert {"R@k", "SR", "ties"} <= {row["key"] for row in protocol["conventions"]}
    assert "protocol" not in content["provenance"]
    loaded = cl.Run.load(tmp_path / "run")
    assert (loaded.protocol, loaded.label) == (five.protocol, "model (protocol five)")
    assert loaded.as_dict()["protocol"] == protocol


def test_every_table_carries_the_label(five: cl.Run) -> None:
    table = five.text()
    assert table.startswith("model (protocol five)\n\nmetric (protocol five)")
    assert "Protocol five: Biten et al." in table
    assert "tokens: captions in lower case, split at spaces" in table
    for row in five.protocol["conventions"]:
        assert row["key"] in table
    assert str(five).startswith("model (protocol five)")
    for form in ("latex", "markdown"):
        (text,) = EXPORTS[form].value([five]).values()
        assert "protocol five" in text
        (text,) = EXPORTS[form].value([five, five]).values()
        assert "model (protocol five)" in text
    (csv,) = EXPORTS["csv"].value([five]).values()
    header, first, *_ = csv.splitlines()
    assert header.endswith(",protocol")
    assert first.endswith(",five")


def test_without_a_protocol_nothing_is_labelled(tmp_path: Path) -> None:
    run = cl.evaluate(DATASET, scores=SCORES, name="model", metrics="Hit@1", **SMALL)
    assert (run.protocol, run.label) == ({}, "model")
    assert "protocol" not in run.as_dict()
    assert "protocol" not in run.text()
    (csv,) = EXPORTS["csv"].value([run]).values()
    assert csv.splitlines()[0].endswith(",level")


def test_runs_of_different_protocols_are_compared_with_a_note(five: cl.Run) -> None:
    without_protocol = cl.evaluate(DATASET, scores=SCORES, name="own", metrics="Hit@1", resamples=100)
    comparison = cl.compare(five, without_protocol, metrics="Hit@1", permutations=100)
    assert comparison.runs == ("model (protocol five)", "own")
    assert "The runs follow different protocols: model five, own crosslens' own." in comparison.notes
    assert not [note for note in cl.compare(five, five, metrics="Hit@1", permutations=9).notes if "protocol" in note]


def test_named_metrics_are_added() -> None:
    run = cl.evaluate(DATASET, scores=SCORES, protocol="recos", metrics="MRR Hit@5", **SMALL)
    assert set(run) == {
        f"{direction}/{metric}" for direction in ("i2t", "t2i") for metric in ("Hit@1", "Hit@5", "Hit@10", "MRR")
    }
    assert run.protocol["metrics"] == ["Hit@1", "Hit@5", "Hit@10"]
    assert "not part of the protocol recos: MRR" in run.provenance["notes"]


def test_contradictions_and_unknown_names() -> None:
    with pytest.raises(UsageError, match="ties='expected' contradicts the protocol five, which has stable"):
        cl.evaluate(DATASET, scores=SCORES, protocol="five", ties="expected")
    with pytest.raises(UnknownNameError, match="did you mean five"):
        cl.evaluate(DATASET, scores=SCORES, protocol="fiv")
    with pytest.raises(UsageError, match="the protocol imp says nothing about robustness"):
        find_protocol("imp", "robustness")
    assert find_protocol(None, "evaluate") is None


def test_without_a_parser_spice_is_left_out(no_parser: None) -> None:
    run = cl.evaluate(DATASET, scores=SCORES, protocol="five", **SMALL)
    assert run.protocol["phi"] == ["cider:split"]
    assert not [name for name in run if "spice" in name]
    (note,) = run.provenance["notes"]
    assert note.startswith("left out of the protocol five, as parsing captions needs the package 'spacy', which")
    assert "NCS[spice, zero]@1,5,10" in note
    with pytest.raises(MissingExtraError):
        following.load_similarity("spice")


def test_metrics_named_on_purpose_are_never_left_out() -> None:
    lists = {caption: {"i0": 1.0, "i1": 0.5} for caption in DATASET.caption_ids}
    with pytest.raises(InputError, match="cannot be computed"):
        cl.evaluate(DATASET, run=lists, directions=["t2i"], protocol="recos", metrics="Hit@10", **SMALL)


def test_lists_without_captions_and_short_lists() -> None:
    truth = {caption: [DATASET.image_ids[image]] for caption, image in
             zip(DATASET.caption_ids, DATASET.caption_image, strict=True)}  # fmt: skip
    lists = {
        caption: dict(zip(DATASET.image_ids[:6], SCORES[:6, column].tolist(), strict=True))
        for column, caption in enumerate(DATASET.caption_ids)
    }
    run = cl.evaluate(run=lists, relevance=truth, directions=["t2i"], protocol="five", **SMALL)
    assert set(run) == {"t2i/Hit@1", "t2i/Hit@5", "t2i/Recall@1", "t2i/Recall@5"}
    notes = " ".join(run.provenance["notes"])
    assert "as they require a dataset with captions: NCS[cider:split, zero]@1,5,10, NCS[" in notes
    assert "as there is one direction only: Rsum" in notes
    assert "left out, as the lists are too short for them: Hit@10, Recall@10" in notes


def test_the_relevance_encoder_that_is_given() -> None:
    protocol = Protocol("mine", "A paper", "A summary.", metrics=("DCGcm@10",), settings={"evaluate": {}})
    asked = {"dataset": True, "directions": ("t2i",), "phi": {}}
    metrics_requested = following.requested_metrics(protocol, None, encoders={}, **asked)
    assert [str(request) for request in metrics_requested.requests] == ["DCGcm[scores_from=own]@10"]
    fixed = following.requested_metrics(protocol, None, encoders={"clip": SCORES}, **asked)
    assert [str(request) for request in fixed.requests] == ["DCGcm[scores_from=clip]@10"]


def test_expl_is_text_only(tmp_path: Path) -> None:
    run = cl.evaluate(DATASET, scores=SCORES, protocol="expl", **SMALL)
    assert {name.split("/")[1] for name in run} == {
        *("Hit@1", "Hit@5", "Hit@10", "MRR@5", "MRR@10", "MRR", "MedR", "Fails")
    }
    assert run.protocol["conventions"][0]["value"] == "t2t"


def test_imp_takes_ranks_over_pairs() -> None:
    run = cl.evaluate(DATASET, scores=SCORES, protocol="imp", **SMALL)
    assert {"i2t/MedR[all]", "t2i/MeanR[all]", "i2t/mAP@R", "t2i/AP"} <= set(run)
    assert "t2i/mAP@R" not in run.values


def test_a_recipe_keeps_the_protocol(tmp_path: Path) -> None:
    DATASET.save(tmp_path / "data")
    np.save(tmp_path / "scores.npy", SCORES)
    text = (
        '[dataset]\nsource = "data"\n[inputs]\nscores = "scores.npy"\n[options]\nprotocol = "imp"\n'
        'metrics = ["MRR"]\nresamples = 0\n'
    )
    (tmp_path / "recipe.toml").write_text(text)
    from crosslens.pipeline import run_recipe

    run = run_recipe(Recipe.read(tmp_path / "recipe.toml"), tmp_path / "run")
    assert run.protocol["name"] == "imp"
    assert "i2t/MRR" in run.values
    stored = (tmp_path / "run" / "recipe.toml").read_text()
    assert 'protocol = "imp"' in stored
    assert 'metrics = ["MRR"]' in stored
    again = run_recipe(Recipe.read(tmp_path / "run" / "recipe.toml"), tmp_path / "again")
    assert again.fingerprint == run.fingerprint
    with pytest.raises(InputError, match=r"line 6[\s\S]*unknown protocol 'imq'[\s\S]*did you mean imp"):
        Recipe.parse(text.replace("imp", "imq"), tmp_path)


def test_the_protocol_is_part_of_a_run(tmp_path: Path) -> None:
    from crosslens.core import ConflictError

    cl.evaluate(DATASET, scores=SCORES, metrics="Hit@1 Hit@5 Hit@10", output=tmp_path / "run", **SMALL)
    with pytest.raises(ConflictError, match="different run"):
        cl.evaluate(DATASET, scores=SCORES, protocol="recos", output=tmp_path / "run", **SMALL)


@pytest.mark.parametrize(
    "stored", ["five", {"name": 5}, {"name": "five", "conventions": [3]}, {"name": "five", "phi": "cider"}]
)
def test_a_damaged_protocol_is_refused(stored: object, tmp_path: Path) -> None:
    cl.evaluate(DATASET, scores=SCORES, protocol="recos", output=tmp_path / "run", **SMALL)
    file = tmp_path / "run" / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "protocol": stored}))
    with pytest.raises(InputError):
        cl.Run.load(tmp_path / "run", verify=False)


def brit_study(**options: object) -> cl.Robustness:
    """Random vectors of a small dataset, and of its captions with swapped letters."""
    random = np.random.default_rng(2)
    images, original, changed = (random.normal(size=(rows, 5)) for rows in (12, 24, 24))
    return cl.robustness(
        DATASET, images=images, captions=original, variants={"char_swap": changed}, protocol="brit", resamples=50,
        permutations=50, **options,
    )  # fmt: skip


def test_a_robustness_study_follows_a_protocol(tmp_path: Path) -> None:
    study = brit_study(output=tmp_path / "rob", metrics="MRR@3")
    assert (study.direction, study.about["protocol"]["name"]) == ("t2i", "brit")
    assert study.about["options"]["directions"] in (("t2i",), ["t2i"])
    assert set(study.drops["metric"]) == {"t2i/Hit@1", "t2i/Hit@5", "t2i/Hit@10", "t2i/MRR@3", "t2i/Rsum"}
    text = study.text()
    assert "1 perturbation, protocol brit" in text
    assert "Protocol brit: Hendriksen" in text
    loaded = cl.Robustness.load(tmp_path / "rob")
    assert loaded.text() == text
    assert loaded.as_dict()["protocol"]["settings"]["directions"] == ["t2i"]


def test_a_study_that_contradicts_its_protocol() -> None:
    with pytest.raises(UsageError, match="directions='i2t' contradicts the protocol brit, which has t2i"):
        brit_study(directions=["i2t"])
    with pytest.raises(UsageError, match="perturbations='antonym' contradicts the protocol brit"):
        brit_study(perturbations="antonym")
    with pytest.raises(UsageError, match="perturbations='char_swap' contradicts the protocol expl"):
        text_study(captions(3), Letters(), "char_swap", protocol="expl")


def test_a_protocol_of_ones_own() -> None:
    mine = Protocol(
        "mine", "A paper", "A summary of it.", metrics=("Hit@1",), settings={"evaluate": {"ties": "expected"}},
        conventions=(Convention("ties", "expected", "as the paper says"),),
    )  # fmt: skip
    with pytest.raises(UsageError, match="has settings of 'plot'"):
        add_protocol(Protocol("other", "A paper", "A summary.", settings={"plot": {}}))
    add_protocol(mine)
    try:
        run = cl.evaluate(DATASET, scores=SCORES, protocol="mine", **SMALL)
        assert run.provenance["options"]["ties"] == "expected"
        assert run.protocol["conventions"] == [{"key": "ties", "value": "expected", "about": "as the paper says"}]
    finally:
        PROTOCOLS._entries.pop("mine")


def test_names_parse_as_agreed() -> None:
    assert str(parse_metric("SR[cider:split, 5, by-image, non-gt]@10")) == "SR[cider:split, m=5, non-gt, by-image]@10"
    assert str(parse_metric("NCS[cider:split, zero]@10")) == "NCS[cider:split, zero]@10"


def test_recos_has_no_i2t_where_images_have_no_captions(tmp_path: Path) -> None:
    """v2 adds images without text: its i2t would be that of v1, and is left out; other protocols print both."""
    wider = DATASET.with_extra_images(["similar one", "similar two"])
    scores = np.vstack([SCORES, np.zeros((2, SCORES.shape[1]))])
    run = cl.evaluate(wider, scores=scores, protocol="recos", output=tmp_path / "run", **SMALL)
    assert set(run.values) == {"t2i/Hit@1", "t2i/Hit@5", "t2i/Hit@10"}
    assert run.provenance["protocol"]["settings"]["directions"] == ["t2i"]
    assert any("as 2 images have no caption: i2t" in note for note in run.provenance["notes"])
    v1 = cl.evaluate(DATASET, scores=SCORES, protocol="recos", **SMALL)
    both = cl.evaluate(wider, scores=scores, metrics="Hit@1 Hit@5 Hit@10", **SMALL)
    for k in (1, 5, 10):
        assert both.values[f"i2t/Hit@{k}"].mean == v1.values[f"i2t/Hit@{k}"].mean, "why it is left out"
        assert both.values[f"t2i/Hit@{k}"].mean == run.values[f"t2i/Hit@{k}"].mean
    assert any(name.startswith("i2t/") for name in cl.evaluate(wider, scores=scores, protocol="imp", **SMALL).values)
    with pytest.raises(UsageError, match="contradicts the protocol recos, which has t2i"):
        cl.evaluate(wider, scores=scores, protocol="recos", directions=["i2t"], **SMALL)
