"""Dispatch of whole tables, in batches and in streams, without a live broker."""
