from crosslens.encode.adapters.stored_embeddings import StoredEmbeddings as StoredEmbeddings
from crosslens.encode.cache import Cache as Cache
from crosslens.encode.dataset import (
    MEAN as MEAN,
    Encoded as Encoded,
    TextOnly as TextOnly,
    caption_rows as caption_rows,
    encode_captions as encode_captions,
    encode_dataset as encode_dataset,
    query_captions as query_captions,
    text_only as text_only,
)
from crosslens.encode.encoder import (
    ENCODERS as ENCODERS,
    IMAGES as IMAGES,
    TEXTS as TEXTS,
    Array as Array,
    Encoder as Encoder,
    label as label,
    load_encoder as load_encoder,
    map_path as map_path,
    require_modality as require_modality,
)
from crosslens.encode.images import as_picture as as_picture, decode_image as decode_image, read_ahead as read_ahead
from crosslens.encode.options import EncodeOptions as EncodeOptions, Notify as Notify, to_stderr as to_stderr
from crosslens.encode.pair_scorers import (
    PAIR_SCORERS as PAIR_SCORERS,
    PairCache as PairCache,
    PairScorer as PairScorer,
    SecondStage as SecondStage,
    load_pair_scorer as load_pair_scorer,
    score_pairs as score_pairs,
)
from crosslens.encode.stream import encode_images as encode_images, encode_texts as encode_texts
from crosslens.encode.summaries import (
    SUMMARISERS as SUMMARISERS,
    Summariser as Summariser,
    load_summariser as load_summariser,
)
from crosslens.encode.writing import save_encoded as save_encoded
