__version__ = "0+source"  # the release writes it
