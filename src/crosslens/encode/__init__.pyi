from crosslens.encode.adapters.stored_embeddings import StoredEmbeddings as StoredEmbeddings
from crosslens.encode.cache import Cache as Cache
from crosslens.encode.dataset import (
    Encoded as Encoded,
    caption_rows as caption_rows,
    encode_captions as encode_captions,
    encode_dataset as encode_dataset,
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
from crosslens.encode.options import (
    EACH as EACH,
    MEAN as MEAN,
    QUERY_CAPTION as QUERY_CAPTION,
    SHARED_IMAGES as SHARED_IMAGES,
    EncodeOptions as EncodeOptions,
    Notify as Notify,
    query_choice as query_choice,
    to_stderr as to_stderr,
)
from crosslens.encode.pair_scorers import (
    PAIR_SCORERS as PAIR_SCORERS,
    PairCache as PairCache,
    PairScorer as PairScorer,
    SecondStage as SecondStage,
    load_pair_scorer as load_pair_scorer,
    score_pairs as score_pairs,
)
from crosslens.encode.similarity import word_encoder as word_encoder
from crosslens.encode.stream import encode_images as encode_images, encode_texts as encode_texts
from crosslens.encode.summaries import (
    SUMMARISERS as SUMMARISERS,
    Summariser as Summariser,
    load_summariser as load_summariser,
)
from crosslens.encode.text_retrieval import (
    TextOnly as TextOnly,
    TextQueries as TextQueries,
    images_from_captions as images_from_captions,
    sentence_parts as sentence_parts,
    text_only as text_only,
    text_queries as text_queries,
)
from crosslens.encode.writing import save_encoded as save_encoded
