"""Dataset formats; each module registers its readers under the names people load them by."""
