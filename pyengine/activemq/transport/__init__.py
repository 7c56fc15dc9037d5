"""What passes between a client and a broker."""
