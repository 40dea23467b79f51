"""The decoder of the course, for chapters that train it and generate with it."""

from autograde.decoder.model import Config, Decoder

__all__ = ["Config", "Decoder"]
