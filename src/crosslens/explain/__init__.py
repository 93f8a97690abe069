"""Why a retrieval failed, and what would have mended it."""
