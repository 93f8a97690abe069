"""The same tasks answered by a vision-language model: prompts, strictly read answers, pace and limits."""
