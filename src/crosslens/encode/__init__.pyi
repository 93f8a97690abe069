from crosslens.encode.adapters.user_models import require_trusted_model as require_trusted_model
from crosslens.encode.batches import as_picture as as_picture, decode_image as decode_image, read_ahead as read_ahead
from crosslens.encode.cache import Cache as Cache
from crosslens.encode.chat import (
    WORKERS as WORKERS,
    Cancelled as Cancelled,
    Endpoint as Endpoint,
    InvalidAnswer as InvalidAnswer,
    Message as Message,
    Reading as Reading,
    RecordedAnswers as RecordedAnswers,
    Tokens as Tokens,
    answers_of as answers_of,
    parse_answer as parse_answer,
    picture_file_url as picture_file_url,
    picture_url as picture_url,
    read_address as read_address,
)
from crosslens.encode.encoder import (
    ENCODERS as ENCODERS,
    IMAGES as IMAGES,
    TEXTS as TEXTS,
    Encoder as Encoder,
    FeatureReader as FeatureReader,
    MatrixScorer as MatrixScorer,
    label as label,
    load_encoder as load_encoder,
    map_path as map_path,
    name_of as name_of,
    require_modality as require_modality,
    split_model as split_model,
)
from crosslens.encode.in_memory import encoder_of as encoder_of
from crosslens.encode.loading import Compute as Compute
from crosslens.encode.options import (
    EACH as EACH,
    MEAN as MEAN,
    QUERY_CAPTION as QUERY_CAPTION,
    SHARED_IMAGES as SHARED_IMAGES,
    EncodeOptions as EncodeOptions,
    StreamKeywords as StreamKeywords,
    query_choice as query_choice,
)
from crosslens.encode.pairs import (
    PAIR_SCORERS as PAIR_SCORERS,
    PairScorer as PairScorer,
    ReadImages as ReadImages,
    SecondStage as SecondStage,
    load_pair_scorer as load_pair_scorer,
    read_features as read_features,
    score_pairs as score_pairs,
    score_texts as score_texts,
)
from crosslens.encode.similarity import word_encoder as word_encoder
from crosslens.encode.sources import (
    ONE_SOURCE as ONE_SOURCE,
    excluding_sources as excluding_sources,
    given_sources as given_sources,
    require_one_source as require_one_source,
)
from crosslens.encode.stream import (
    StoredEmbeddings as StoredEmbeddings,
    caption_rows as caption_rows,
    encode_captions as encode_captions,
    encode_dataset as encode_dataset,
    encode_images as encode_images,
    encode_texts as encode_texts,
    save_encoded as save_encoded,
)
from crosslens.encode.text_retrieval import (
    Summariser as Summariser,
    TextOnly as TextOnly,
    TextQueries as TextQueries,
    images_from_captions as images_from_captions,
    load_summariser as load_summariser,
    sentence_parts as sentence_parts,
    text_only as text_only,
    text_queries as text_queries,
)
from crosslens.encode.towers import (
    PixelRows as PixelRows,
    Pretrained as Pretrained,
    PretrainedOutput as PretrainedOutput,
    TokenArrays as TokenArrays,
    stored_pixels as stored_pixels,
)
