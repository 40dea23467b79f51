"""The course's decoder, for chapters that train it, take it apart and generate with it."""

from autograde.decoder.model import Config, Decoder

__all__ = ["Config", "Decoder"]
