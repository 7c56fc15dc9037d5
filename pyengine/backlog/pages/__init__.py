"""Offline HTML pages, in English and Chinese."""
