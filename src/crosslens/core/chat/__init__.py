"""Language models behind an OpenAI-compatible address: one exchange that ends, retries, pictures to send."""
