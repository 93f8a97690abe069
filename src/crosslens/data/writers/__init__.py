"""One module per output format; each registers its writer and says what its format cannot hold."""
