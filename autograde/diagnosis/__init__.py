"""What a failed examination has to tell: the mistake that was made, or what is seen of it."""
