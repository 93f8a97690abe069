"""The datasets that crosslens knows by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from crosslens.data.known.entry import Download, FileForm, KnownDataset

_COCO = ("coco", "COCO", "mscoco", "")
_COCO_LICENCE = "COCO's annotations: CC BY 4.0; the photos: Flickr's terms of use, each with a licence of its own"
_FLICKR_LICENCE = "the photos: Flickr's terms of use, provided for non-commercial research and education only"
_KARPATHY = "https://cs.stanford.edu/people/karpathy/deepimagesent/caption_datasets.zip"
_VAL2014 = (("", "val2014"), ("images", "images/val2014"))
_VAL2017 = (("val2017", "val2017"), ("images/val2017", "images/val2017"))
_FLICKR30K_PHOTOS = tuple((name, name) for name in ("flickr30k-images", "flickr30k_images", "images"))
_PHOTOS_2014 = Download("photos", "http://images.cocodataset.org/zips/val2014.zip", ("coco/val2014",))
_PHOTOS_2017 = Download("photos", "http://images.cocodataset.org/zips/val2017.zip", ("coco/val2017",))

_BY_KARPATHY = FileForm(
    "karpathy", (*_COCO, "caption_datasets"), {"captions": "dataset_coco.json"}, {"split": "test"}, pictures=_VAL2014
)
_BY_BLIP = FileForm(
    "blip", (*_COCO, "coco/annotations"), {"captions": "coco_karpathy_test.json"}, {"coco_ids": True}, pictures=_VAL2014
)
_AS_TABLE = FileForm(
    "plain", ("coco_karpathy_test",), {"captions": "captions.tsv"},
    {"image_column": "coco_image_id", "caption_column": "coco_caption_id", "text_column": "raw_caption"},
)  # fmt: skip

_KARPATHY_5K = KnownDataset(
    "coco-karpathy-5k",
    "COCO captions, Karpathy's test split: 5,000 images with five captions each",
    (_BY_KARPATHY, _AS_TABLE, _BY_BLIP),
    (Download("captions", f"{_KARPATHY} (dataset_coco.json in it)", ("coco/dataset_coco.json",)), _PHOTOS_2014),
    _COCO_LICENCE,
    images=5000,
)
_JUDGED = replace(_KARPATHY_5K, forms=(_BY_KARPATHY, _AS_TABLE), called="coco-karpathy-5k")
_JUDGEMENTS = "pip install 'crosslens[eccv]'"


def _built(name: str, title: str, folder: str, command: str, images: str) -> KnownDataset:
    """A benchmark that crosslens builds: nothing to download, a command to run."""
    return KnownDataset(
        name,
        title,
        (FileForm("", (folder,), {"": "header.json"}, is_folder=True),),
        (Download("the benchmark", f"built by `{command}`", (folder,)),),
        images,
    )


_ENTRIES: Iterable[KnownDataset] = (
    _KARPATHY_5K,
    replace(
        _KARPATHY_5K,
        name="coco-karpathy-1k",
        title="COCO captions, “1K”: Karpathy's test split in five folds of 1,000 images, figures averaged",
        folds=5,
        called="coco-karpathy-5k",
    ),
    replace(
        _JUDGED,
        name="eccv",
        title="ECCV Caption: the COCO 5K test split with positives that people verified",
        relevance="eccv",
        downloads=(*_KARPATHY_5K.downloads, Download("judgements", f"{_JUDGEMENTS} (they are in eccv_caption)")),
        licence=f"ECCV Caption (https://github.com/naver-ai/eccv-caption): MIT; {_COCO_LICENCE}",
    ),
    replace(
        _JUDGED,
        name="cxc",
        title="Crisscrossed Captions: the COCO 5K test split with the positives of CxC",
        relevance="cxc",
        downloads=(*_KARPATHY_5K.downloads, Download("judgements", f"{_JUDGEMENTS} (they are in eccv_caption)")),
        licence="CxC: see https://github.com/google-research-datasets/Crisscrossed-Captions; " + _COCO_LICENCE,
    ),
    KnownDataset(
        "coco-val2017",
        "COCO val2017: 5,000 images with captions and boxes of objects",
        (
            FileForm(
                "coco",
                _COCO,
                {"captions": "annotations/captions_val2017.json", "instances": "annotations/instances_val2017.json"},
                optional=("instances",),
                pictures=_VAL2017,
            ),
            FileForm(
                "coco",
                ("coco_val2017",),
                {"captions": "captions.json", "instances": "instances.json"},
                optional=("instances",),
                pictures=(("images", "images"), ("val2017", "val2017")),
            ),
        ),
        (
            Download(
                "captions and boxes",
                "http://images.cocodataset.org/annotations/annotations_trainval2017.zip",
                ("coco/annotations/captions_val2017.json", "coco/annotations/instances_val2017.json"),
            ),
            _PHOTOS_2017,
        ),
        _COCO_LICENCE,
        images=5000,
    ),
    KnownDataset(
        "flickr30k",
        "Flickr30k, Karpathy's test split: 1,000 images with five captions each",
        (
            FileForm(
                "karpathy",
                ("flickr30k", "Flickr30k", "caption_datasets", ""),
                {"captions": "dataset_flickr30k.json"},
                {"split": "test"},
                pictures=_FLICKR30K_PHOTOS,
            ),
            FileForm(
                "blip",
                ("flickr30k", "Flickr30k", ""),
                {"captions": "flickr30k_test.json"},
                pictures=(("", "flickr30k-images"),),
            ),
        ),
        (
            Download("captions", f"{_KARPATHY} (dataset_flickr30k.json in it)", ("flickr30k/dataset_flickr30k.json",)),
            Download(
                "photos",
                "on request: https://shannon.cs.illinois.edu/DenotationGraph/",
                ("flickr30k/flickr30k-images",),
            ),
        ),
        _FLICKR_LICENCE,
        images=1000,
    ),
    KnownDataset(
        "flickr8k",
        "Flickr8k, the test split: 1,000 images with five captions each",
        (
            FileForm(
                "flickr",
                ("flickr8k", "Flickr8k", "Flickr8k_text", ""),
                {"captions": "Flickr8k.token.txt", "images": "Flickr_8k.testImages.txt"},
                pictures=(("Flicker8k_Dataset", "Flicker8k_Dataset"), ("images", "images")),
            ),
            FileForm(
                "karpathy",
                ("flickr8k", "Flickr8k", "caption_datasets", ""),
                {"captions": "dataset_flickr8k.json"},
                {"split": "test"},
                pictures=(("Flicker8k_Dataset", "Flicker8k_Dataset"), ("images", "images")),
            ),
        ),
        (
            Download(
                "captions (Flickr8k_text.zip) and photos (Flickr8k_Dataset.zip)",
                "on request: https://forms.illinois.edu/sec/1713398",
                ("flickr8k/Flickr8k.token.txt", "flickr8k/Flickr_8k.testImages.txt", "flickr8k/Flicker8k_Dataset"),
            ),
        ),
        _FLICKR_LICENCE,
        images=1000,
    ),
    KnownDataset(
        "coco-fg",
        "MSCOCO-FG: finer captions of the COCO 5K test images",
        (
            FileForm(
                "fine_grained",
                ("coco-fg", "MSCOCO-Flikcr30K_FG/Annotations", "MSCOCO-Flikcr30K_FG", "coco", ""),
                {"captions": "MSCOCO_FG_ann.json"},
                {"coco_ids": True},
            ),
        ),
        (
            Download(
                "captions",
                "https://github.com/cwj1412/MSCOCO-Flikcr30K_FG (Annotations/MSCOCO_FG_ann.json in it)",
                ("coco-fg/MSCOCO_FG_ann.json",),
            ),
            _PHOTOS_2014,
        ),
        f"no licence is stated for the captions; {_COCO_LICENCE}",
    ),
    KnownDataset(
        "visual-genome",
        "Visual Genome: region descriptions, objects, attributes and relationships",
        (
            FileForm(
                "visual_genome",
                ("visual-genome", "visual_genome", "VisualGenome", "vg"),
                {"folder": "image_data.json"},
                is_folder=True,
                pictures=(("", "VG_100K"),),
            ),
        ),
        (
            Download(
                "image_data.json, region_descriptions.json, objects.json, attributes.json, relationships.json",
                "https://homes.cs.washington.edu/~ranjay/visualgenome/api.html",
                ("visual-genome",),
            ),
        ),
        "CC BY 4.0; the photos are from Flickr",
    ),
    KnownDataset(
        "sugar-crepe",
        "SugarCrepe: hard negatives in seven files, on photos of COCO val2017",
        (
            FileForm(
                "",
                ("sugar-crepe", "sugar_crepe", "SugarCrepe", "sugar-crepe/data"),
                {"": "replace_obj.json"},
                is_folder=True,
                pictures=tuple(
                    (f"../{root}{folder}", f"../{root}{probe}")
                    for folder, probe in _VAL2017
                    for root in ("coco/", "../coco/", "")
                ),
            ),
        ),
        (
            Download(
                "the seven files", "https://github.com/RAIVNLab/sugar-crepe (the folder data in it)", ("sugar-crepe",)
            ),
            _PHOTOS_2017,
        ),
        f"SugarCrepe: MIT; {_COCO_LICENCE}",
        "hard negatives",
    ),
    KnownDataset(
        "winoground",
        "Winoground: 400 pairs of images and captions with the same words",
        (FileForm("", ("winoground", "winoground/data", "Winoground"), {"": "examples.jsonl"}, is_folder=True),),
        (
            Download(
                "examples.jsonl and images.zip, to be unpacked there",
                "after its terms are accepted: https://huggingface.co/datasets/facebook/winoground (data/ in it)",
                ("winoground/examples.jsonl", "winoground/images"),
            ),
        ),
        "for research only; the licence agreement is among the dataset's files",
        "hard negatives",
    ),
    *(
        KnownDataset(
            f"aro-{kind}",
            f"ARO, Visual Genome {kind}: captions with {what} swapped",
            (FileForm("", ("aro", "ARO", ""), {"": f"visual_genome_{kind}.json"}),),
            (
                Download(
                    f"visual_genome_{kind}.json and the photos",
                    "https://github.com/mertyg/vision-language-models-are-bows (its dataset_zoo downloads them)",
                    (f"aro/visual_genome_{kind}.json", "aro/images"),
                ),
            ),
            "ARO: MIT; Visual Genome: CC BY 4.0",
            "hard negatives",
        )
        for kind, what in (("relation", "the order of two objects"), ("attribution", "the attributes of two objects"))
    ),
    *(
        _built(
            f"recos-{version}",
            f"A RECOS-like benchmark of your own, version {version}",
            f"recos/{version}",
            "crosslens build recos -o recos",
            "that of the captions and images it was built from",
        )
        for version in ("v0", "v1", "v2")
    ),
    _built(
        "imp",
        "A polysemy benchmark of your own, built as IMP was",
        "imp/dataset",
        "crosslens build imp -o imp",
        "that of the captions and images it was built from (IMP: the Unsplash Lite Dataset, https://unsplash.com/data)",
    ),
)
KNOWN = {entry.name: entry for entry in _ENTRIES}
"""Name → what is known of the dataset, in the order in which people read them."""
