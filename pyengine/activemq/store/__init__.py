"""What a broker keeps in its directory: the journal, and the database that takes it over."""
