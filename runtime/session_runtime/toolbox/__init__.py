"""What bundled tools stand on: folders, web pages and notes, each safe to hand to a model."""
