"""Fitting graphret to labelled questions."""
