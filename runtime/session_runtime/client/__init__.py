"""What speaks to a running daemon from outside its process."""
