"""What running brokers and clients show, and what is wrong there."""
