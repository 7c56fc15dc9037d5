"""C below the rules: bits of a word, intrusive lists, lookups in a dict, large pages, digests."""
