"""Pretrained models opened up: their modules, tokens and pixels, to train them further or to use their inner states."""
